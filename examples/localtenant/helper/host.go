package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"time"

	"mvdan.cc/sh/v3/shell"
)

// host is what the commands use of the machine they run on.
type host struct {
	dir     string // the project folder: nothing outside is archived or written
	stdout  io.Writer
	console console
	getenv  func(string) string
	sleep   func(context.Context, time.Duration) error
}

// flag reads an on/off variable such as a feature flag; anything that is not
// clearly true is off.
func (h host) flag(name string) bool {
	on, err := strconv.ParseBool(h.getenv(name))
	return err == nil && on
}

// expand replaces variables in what the job's author wrote: the scripts pass
// artifact names and paths in single quotes, so no shell has done it.
func (h host) expand(what string, texts ...string) []string {
	expanded := make([]string, len(texts))
	for i, text := range texts {
		result, err := shell.Expand(text, h.getenv)
		if err != nil {
			h.console.warn("%s %q is used as it is: %v", what, text, err)
			result = text
		}
		expanded[i] = result
	}
	return expanded
}

// mildError is a failure the job can live with.
type mildError struct {
	err error
}

func (e *mildError) Error() string { return e.err.Error() }

func (e *mildError) Unwrap() error { return e.err }

func mild(format string, args ...any) error {
	return &mildError{fmt.Errorf(format, args...)}
}
