// Command gitlab-runner-helper is a stand-in for GitLab's program of that
// name, for the local tenant cluster only: GitLab's own comes in an image that
// cannot be had everywhere. It does what the stage scripts of a job call
// (shells/abstract.go in GitLab Runner's source): --version,
// artifacts-uploader, artifacts-downloader, cache-archiver and
// cache-extractor.
//
// On a real cluster use GitLab's helper image. This program knows no cloud
// storage clients, no zstd archives and no provenance statements; it says so
// when it is asked for them.
package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	os.Exit(run())
}

// run is main with an exit code, so that deferred calls happen.
func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	console := console{out: os.Stderr}
	dir, err := os.Getwd()
	if err != nil {
		console.fatal(err)
		return 1
	}
	h := host{
		dir:     dir,
		stdout:  os.Stdout,
		console: console,
		getenv:  os.Getenv,
		sleep:   sleep,
	}
	return exitCode(console, newRoot(h, os.Args[1:]).ExecuteContext(ctx))
}

// exitCode shows how a command ended: 0, or 1 with a line that is a warning
// where the job goes on without the result, as with a missing cache.
func exitCode(console console, err error) int {
	var mild *mildError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &mild):
		console.warn("%v", mild)
	default:
		console.fatal(err)
	}
	return 1
}

// sleep waits for d or for the end of ctx.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
