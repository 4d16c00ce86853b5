package runner

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"

	"github.com/socialweb-computer/tenant-executor/examples/localrunner/build"
)

// Exit codes that a driver is asked to end with
// (executors/custom/command/command.go).
const (
	buildFailureCode  = 1
	systemFailureCode = 2
)

// UnknownFailure is an end of a driver that says neither "the job failed" nor
// "the system failed". It counts as a system failure.
type UnknownFailure struct {
	Err error
	// ExitCode is -1 after a signal.
	ExitCode int
}

func (e *UnknownFailure) Error() string {
	return fmt.Sprintf("unknown Custom executor executable exit code %d; executable execution terminated with: %v", e.ExitCode, e.Err)
}

func (e *UnknownFailure) Unwrap() error { return e.Err }

// classify turns the end of a driver's process into what it means. Errors
// other than an exit status are passed on.
func classify(err error, exitCodeFile string) error {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return err
	}
	switch code := exit.ExitCode(); code {
	case buildFailureCode:
		return buildFailure(exit, exitCodeFile)
	case systemFailureCode:
		return err
	default:
		return &UnknownFailure{Err: err, ExitCode: code}
	}
}

// buildFailure reads the script's own exit code from the first line of the
// file that the driver may have written. Only a plain integer counts, and
// anything else in the file is a mistake of the driver: a system failure.
func buildFailure(exit error, file string) error {
	f, err := os.Open(file)
	if err != nil {
		return &build.Failure{Err: exit, ExitCode: buildFailureCode, Reason: build.ReasonScript}
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Scan()
	code, err := strconv.Atoi(lines.Text())
	if err != nil {
		return &UnknownFailure{Err: exit, ExitCode: systemFailureCode}
	}
	return &build.Failure{
		Err:      fmt.Errorf("exit status %s", lines.Text()),
		ExitCode: code,
		Reason:   build.ReasonScript,
	}
}

// exitCode is what the process ended with, for the report: -1 when it did not
// end by itself or was not started.
func exitCode(err error) int {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.ExitCode()
	default:
		return -1
	}
}
