package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/socialweb-computer/tenant-executor/examples/localrunner/build"
)

// Status is how a job ended.
type Status string

// The ends of a job. Canceled also stands for an abort, TimedOut for the
// job's and the script's time limit.
const (
	Success  Status = build.StatusSuccess
	Failed   Status = build.StatusFailed
	Canceled Status = build.StatusCanceled
	TimedOut Status = build.StatusTimedOut
)

// Result of a job.
type Result struct {
	Status Status
	// FailureReason is what GitLab would be told; empty after success.
	FailureReason string
	// ExitCode is the exit code that GitLab would be told, 0 for none.
	ExitCode int
	// Message is the error, without colours; empty after success.
	Message string
	// Attempts counts the prepare attempts.
	Attempts int
	// Calls are all calls of the driver in order.
	Calls []Call
	// Duration is the time from the start to the end of cleanup.
	Duration time.Duration
}

// SystemFailure reports whether the job failed for a reason that is not the
// job's own.
func (r Result) SystemFailure() bool {
	return r.Status == Failed && (r.FailureReason == build.ReasonSystem || r.FailureReason == build.ReasonUnknown)
}

// Call is one call of the driver.
type Call struct {
	// Stage is "config", "prepare", "cleanup" or the argument of a run call.
	Stage string
	// Attempt counts from 1.
	Attempt int
	// PID is 0 when the process could not be started.
	PID int
	// Dir is the attempt's temporary folder.
	Dir      string
	Started  time.Time
	Duration time.Duration
	// ExitCode is what the driver ended with, -1 after a signal or when there
	// was no exit.
	ExitCode int
	// Err is what the call meant to the runner, nil for success.
	Err error
}

// outcome turns the error of a job into its result, as GitLab Runner reports
// it (common/build.go, setTraceStatus; common/failure_reason_mapper.go).
func outcome(err error, supported []string) Result {
	if err == nil {
		return Result{Status: Success}
	}
	res := Result{Status: Failed, FailureReason: build.ReasonSystem, Message: err.Error()}
	var f *build.Failure
	if !errors.As(err, &f) {
		return res
	}
	res.FailureReason = sentReason(f.Reason, supported)
	res.ExitCode = f.ExitCode
	switch f.Reason {
	case build.ReasonCanceled:
		res.Status = Canceled
	case build.ReasonTimeout:
		res.Status = TimedOut
	}
	return res
}

func sentReason(reason string, supported []string) string {
	switch {
	case reason == "", reason == build.ReasonScript, reason == build.ReasonConfiguration && !slices.Contains(supported, reason):
		return build.ReasonScript
	case reason == build.ReasonSystem, reason == build.ReasonTimeout, slices.Contains(supported, reason):
		return reason
	default:
		return build.ReasonUnknown
	}
}

// status is CI_JOB_STATUS after the user's script ended with err, and the
// error in the form that the job may end with
// (common/build.go, runtimeStateAndError).
func status(err error, limit time.Duration) (string, error) {
	switch {
	case err == nil:
		return build.StatusSuccess, nil
	case errors.Is(err, context.Canceled), errors.Is(err, errCanceled):
		return build.StatusCanceled, &build.Failure{Err: errCanceled, Reason: build.ReasonCanceled}
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, errScriptTimeout):
		return build.StatusTimedOut, &build.Failure{
			Err:    fmt.Errorf("execution took longer than %v seconds", limit),
			Reason: build.ReasonTimeout,
		}
	default:
		return build.StatusFailed, err
	}
}

var (
	errCanceled          = errors.New("canceled")
	errScriptTimeout     = errors.New("script timeout")
	errPrepareTimeout    = errors.New("prepare timeout")
	errGetSourcesTimeout = errors.New("get_sources timeout")
)
