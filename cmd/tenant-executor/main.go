// Command tenant-executor is a driver for GitLab Runner's custom executor: it
// runs each job as a Pod on a tenant cluster.
package main

import (
	"context"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
)

func main() {
	// The Kubernetes libraries log to stderr, which is the job log.
	klog.SetLogger(logr.Discard())
	if os.Getenv("GOTRACEBACK") == "" {
		// So is what a panic outside the command prints; see execute.
		debug.SetTraceback("none")
	}
	ctx, hurry := untilSignal()
	os.Exit(run(ctx, process{
		args:   os.Args[1:],
		env:    os.Environ(),
		pid:    os.Getpid(),
		stdin:  os.Stdin,
		stdout: os.Stdout,
		stderr: os.Stderr,
		hurry:  hurry,
		// Nobody reads the channel. A signal that was ignored would be so in
		// the programs that this one starts as well.
		survive: func() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) },
	}))
}

// untilSignal is a context that the first TERM or INT ends; the channel is
// closed by the second.
func untilSignal() (context.Context, <-chan struct{}) {
	ctx, cancel := context.WithCancel(context.Background())
	hurry := make(chan struct{})
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	go func() {
		<-signals
		cancel()
		<-signals
		close(hurry)
	}()
	return ctx, hurry
}
