// Command service-probe is a service for tests of services. By its environment
// it prints lines, listens late, ends by itself, or takes memory; over HTTP it
// says how it was started. All of it is told in settings.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	code := newProbe(os.Args[1:], os.LookupEnv, os.Stdout, os.Stderr, time.After).run(ctx)
	stop()
	os.Exit(code)
}
