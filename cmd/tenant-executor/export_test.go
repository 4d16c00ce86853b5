package main

import (
	"context"
	"io"
)

// Run is run, for tests that hand in streams of their own.
func Run(ctx context.Context, args, env []string, stdin io.Reader, stdout, stderr io.Writer) int {
	return run(ctx, process{args: args, env: env, stdin: stdin, stdout: stdout, stderr: stderr, survive: func() {}})
}
