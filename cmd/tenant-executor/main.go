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
)

func main() {
	// The Kubernetes libraries log to stderr, which is the job log.
	klog.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	os.Exit(run(ctx, process{
		args:   os.Args[1:],
		env:    os.Environ(),
		stdout: os.Stdout,
		stderr: os.Stderr,
	}))
}
