// Command tenant-executor is a driver for GitLab Runner's custom executor: it
// runs each job as a Pod on a tenant cluster.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"

	"github.com/socialweb-computer/tenant-executor/kube/crash"
)

func main() {
	// The Kubernetes libraries log to stderr, which is the job log.
	klog.SetLogger(logr.Discard())
	stderr := stderrOf(os.Args[1:])
	ctx, hurry := untilSignal()
	os.Exit(run(ctx, process{
		args:   os.Args[1:],
		env:    os.Environ(),
		pid:    os.Getpid(),
		stdin:  os.Stdin,
		stdout: os.Stdout,
		stderr: stderr,
		hurry:  hurry,
		// Nobody reads the channel. A signal that was ignored would be so in
		// the programs that this one starts as well.
		survive: func() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) },
	}))
}

// stderrOf is where this process has its words. Those of the Go runtime go there as
// well, but not into a job log, unless somebody has asked for them.
func stderrOf(args []string) *os.File {
	if len(args) == 0 || !isStage(args[0]) || os.Getenv("GOTRACEBACK") != "" {
		return os.Stderr
	}
	stderr, err := crash.Quiet()
	if err != nil {
		return os.Stderr // no job fails for that
	}
	return stderr
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
