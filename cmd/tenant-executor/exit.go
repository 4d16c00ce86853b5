package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/socialweb-computer/tenant-executor/executor/failure"
	"github.com/socialweb-computer/tenant-executor/executor/job"
	"github.com/socialweb-computer/tenant-executor/executor/joblog"
	"github.com/socialweb-computer/tenant-executor/kube/crash"
)

// process is what a process is given: nothing below main reaches for the
// operating system's own.
type process struct {
	args           []string
	env            []string
	pid            int
	stdin          io.Reader
	stdout, stderr io.Writer
	// hurry is closed by the second signal to end; the first ends the context.
	hurry <-chan struct{}
	// survive has the process go on when nobody reads what it writes. Without
	// it such a write ends the process (SIGPIPE), as is right for a command
	// that a person pipes into another.
	survive func()
}

// run runs the command line and gives the exit code. It is the one place where
// an error becomes an exit code.
func run(ctx context.Context, p process) int {
	env := job.ParseEnvironment(p.env)
	codes, codesErr := failure.ParseCodes(env)
	ctx, leave := context.WithCancel(ctx)
	defer leave()
	a := &app{process: p, leave: leave, environment: env, voice: joblog.New(p.stderr)}
	root := a.rootCommand()
	root.SetArgs(p.args)
	err := execute(ctx, root)
	a.observed.end(err)
	if err == nil && codesErr != nil {
		err = failure.Wrap(failure.Contract, codesErr, "the runner's environment")
	}
	if err == nil {
		return 0
	}
	var usage *usageError
	if errors.As(err, &usage) {
		_, _ = fmt.Fprintf(p.stderr, "tenant-executor: %v\n", err)
		return codes.System
	}
	var quiet *quietExit
	if errors.As(err, &quiet) {
		return quiet.code
	}
	f := failure.Of(err)
	if a.byHand || env.ExitCodeFile() == "" {
		f.Seen(failure.ByHand, "")
	}
	if a.byHand && f.Cause == failure.ScriptFailed {
		a.voice.Info("%s", f.Message)
		return f.ExitCode
	}
	var untold error
	// Without the file the runner takes the driver's own code for the script's, and
	// "allow_failure: exit_codes: [1]" would let pass a job that never ran. 0, where
	// no script ended, is no exit code for GitLab: the runner leaves it out
	// (executors/custom/command/command.go, parseBuildFailure; common/network.go,
	// UpdateJobRequest).
	if f.Class() == failure.Build && env.ExitCodeFile() != "" {
		untold = os.WriteFile(env.ExitCodeFile(), []byte(strconv.Itoa(f.ExitCode)+"\n"), 0o600)
	}
	lastWords(func() {
		// The runner itself reports a script's exit code; a line of ours would
		// only repeat it.
		if f.Cause != failure.ScriptFailed && !f.Said {
			a.voice.Fail(f)
		}
		if untold != nil {
			a.voice.Warn("the runner cannot be told exit code %d: %v", f.ExitCode, untold)
		}
	})
	return codes.For(err)
}

// execute runs a command. A panic is a failure like any other, in whichever
// goroutine of ours it happens: the job log is no place for a stack trace, the
// place is said, and the exit code is the one that the runner has asked for. Those
// of libraries cannot be caught; see crash.Quiet.
func execute(ctx context.Context, c *cobra.Command) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	crashed := make(chan *crash.Panic, 1)
	hear := func(p *crash.Panic) {
		select {
		case crashed <- p:
		default: // the first says enough
		}
	}
	ctx = crash.Handle(ctx, hear)
	ended := make(chan error, 1)
	crash.Go(ctx, func() { ended <- c.ExecuteContext(ctx) })
	select {
	case err := <-ended:
		select {
		case p := <-crashed: // in what the command waited for
			return failure.Wrap(failure.Internal, p, "the driver")
		default:
			return err
		}
	case p := <-crashed:
		// The rest may have to give back a terminal.
		cancel()
		select {
		case <-ended:
		case <-time.After(patience):
		}
		return failure.Wrap(failure.Internal, p, "the driver")
	}
}

// patience is how long the last words may take.
const patience = 5 * time.Second

// lastWords says something before the process ends. Nobody may be reading, and
// then it ends without.
func lastWords(say func()) {
	said := make(chan struct{})
	go func() {
		defer close(said)
		defer func() { _ = recover() }() // there is nobody left to tell
		say()
	}()
	select {
	case <-said:
	case <-time.After(patience):
	}
}
