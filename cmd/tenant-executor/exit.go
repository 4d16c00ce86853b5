package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/socialweb-computer/tenant-executor/executor/failure"
	"github.com/socialweb-computer/tenant-executor/executor/job"
	"github.com/socialweb-computer/tenant-executor/executor/joblog"
)

// process is what a process is given: nothing below main reaches for the
// operating system's own.
type process struct {
	args           []string
	env            []string
	pid            int
	stdout, stderr io.Writer
	// hurry is closed by the second signal to end; the first ends the context.
	hurry <-chan struct{}
}

// run runs the command line and gives the exit code. It is the one place where
// an error becomes an exit code.
func run(ctx context.Context, p process) int {
	env := job.ParseEnvironment(p.env)
	codes, codesErr := failure.ParseCodes(env)
	a := &app{process: p, environment: env, voice: joblog.New(p.stderr)}
	root := a.rootCommand()
	root.SetArgs(p.args)
	err := root.ExecuteContext(ctx)
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
	f := failure.Of(err)
	if a.byHand && f.Cause == failure.ScriptFailed {
		a.voice.Info("%s", f.Message)
		return f.ExitCode
	}
	var untold error
	if f.Class() == failure.Build && f.ExitCode != 0 && env.ExitCodeFile() != "" {
		untold = os.WriteFile(env.ExitCodeFile(), []byte(strconv.Itoa(f.ExitCode)+"\n"), 0o600)
	}
	lastWords(func() {
		// The runner itself reports a script's exit code; a line of ours would
		// only repeat it.
		if f.Cause != failure.ScriptFailed {
			a.voice.Fail(f)
		}
		if untold != nil {
			a.voice.Warn("the runner cannot be told exit code %d: %v", f.ExitCode, untold)
		}
	})
	return codes.For(err)
}

// patience is how long the last words may take.
const patience = 5 * time.Second

// lastWords says something before the process ends. Nobody may be reading, and
// then it ends without.
func lastWords(say func()) {
	said := make(chan struct{})
	go func() {
		defer close(said)
		say()
	}()
	select {
	case <-said:
	case <-time.After(patience):
	}
}
