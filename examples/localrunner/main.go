// Command localrunner runs the jobs of a pipeline file through a custom
// executor's driver exactly as GitLab Runner 19.4 would, without a GitLab.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
)

// Exit codes of the program.
const (
	exitPassed = 0
	exitFailed = 1
	exitUsage  = 2
	exitSystem = 3
)

// exitError is an error that brings an exit code with it.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string { return e.err.Error() }

func (e *exitError) Unwrap() error { return e.err }

// surroundings is what the program takes from outside.
type surroundings struct {
	stdout, stderr io.Writer
	terminal       bool
	environ        []string
	signals        <-chan os.Signal
}

func main() {
	signals, stop := catchSignals()
	code := execute(context.Background(), os.Args[1:], surroundings{
		stdout: os.Stdout, stderr: os.Stderr,
		terminal: isTerminal(os.Stdout),
		environ:  os.Environ(),
		signals:  signals,
	})
	stop()
	os.Exit(code)
}

// execute runs the command line and returns the exit code.
func execute(ctx context.Context, args []string, s surroundings) int {
	root := &cobra.Command{
		Use:   "localrunner",
		Short: "Run a pipeline file through a custom executor's driver, without a GitLab",
		Long: `localrunner takes the jobs of a pipeline file through the four stages of a
GitLab Runner custom executor: config, prepare, run and cleanup. A driver is
called as GitLab Runner 19.4 calls it. Use it to test a driver, or to run a
pipeline file against your own cluster. The repository, the artifacts and,
if you wish, the caches are served by localrunner itself.`,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(runCommand(s), exportCommand(s))
	root.SetArgs(args)
	root.SetOut(s.stdout)
	root.SetErr(s.stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitPassed
	}
	_, _ = fmt.Fprintln(s.stderr, "localrunner:", err) // there is no other place to report to
	var exit *exitError
	if errors.As(err, &exit) {
		return exit.code
	}
	return exitUsage
}

func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
