// Command localtenant runs a real Kubernetes on one machine as a tenant cluster
// is for rent: an apiserver on 127.0.0.1, and nodes that boot on demand from
// zero.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/socialweb-computer/tenant-executor/examples/localtenant/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := cli.New(cli.Environment{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr,
		Terminal: term.IsTerminal(int(os.Stdout.Fd())),
		Getenv:   os.Getenv, Environ: os.Environ, Now: time.Now,
	}).ExecuteContext(ctx)
	stop()
	var quiet cli.ExitError
	if errors.As(err, &quiet) {
		os.Exit(quiet.Code)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "localtenant:", err)
		os.Exit(1)
	}
}
