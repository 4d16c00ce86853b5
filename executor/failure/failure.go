// Package failure says what can go wrong with a job, whose fault it is, what
// can be done, and which exit code tells the runner so.
package failure

import (
	"errors"
	"fmt"
)

// Class is what the runner makes of a failure.
type Class int

const (
	// System is a failure of the cluster, the connection or the driver. The
	// runner tries config and prepare three times, and GitLab can retry the
	// job ("retry: when: runner_system_failure").
	System Class = iota
	// Build is a failure that the job's author, its image or the operator's
	// settings caused: trying again changes nothing. The job fails at once.
	Build
)

// String is the class in words.
func (c Class) String() string {
	if c == Build {
		return "build failure"
	}
	return "system failure"
}

// Failure is an error that ends a stage.
type Failure struct {
	// Cause is the row of the table that this failure belongs to.
	Cause Cause
	// Message says what failed and where, for the reader of the job log.
	Message string
	// ExitCode is the exit code of the job's script, for ScriptFailed alone.
	ExitCode int
	// Err is what led to it, nil where there is no other error.
	Err error
	// Said is whether the reader of the job log hears of it anyway: an earlier
	// stage has said it, or the runner does.
	Said bool
	// Signs are what was seen of it that the message does not say, and Subject is
	// what a remedy by them speaks of.
	Signs   []Sign
	Subject string
}

// Seen adds what was seen of the failure, for its remedy. The subject is what the
// remedy speaks of, "" for nothing.
func (f *Failure) Seen(sign Sign, subject string) *Failure {
	f.Signs = append(f.Signs, sign)
	if subject != "" {
		f.Subject = subject
	}
	return f
}

// New is a failure with a message of its own.
func New(cause Cause, format string, args ...any) *Failure {
	return &Failure{Cause: cause, Message: fmt.Sprintf(format, args...)}
}

// Wrap is a failure that another error led to. The text of err follows the
// message.
func Wrap(cause Cause, err error, format string, args ...any) *Failure {
	return &Failure{Cause: cause, Message: fmt.Sprintf(format, args...), Err: err}
}

// Script is the failure of the job's own script, which ended with code.
func Script(code int) *Failure {
	return &Failure{Cause: ScriptFailed, Message: fmt.Sprintf("the script ended with exit code %d", code), ExitCode: code}
}

// Signal is the failure of the job's own script that a signal ended. It counts
// as the exit code by which shells tell it.
func Signal(number int) *Failure {
	return &Failure{Cause: ScriptFailed, Message: fmt.Sprintf("the script was ended by signal %d", number), ExitCode: 128 + number}
}

// Error is the message and what led to it.
func (f *Failure) Error() string {
	if f.Err == nil {
		return f.Message
	}
	return f.Message + ": " + f.Err.Error()
}

// Unwrap is the error that led to the failure.
func (f *Failure) Unwrap() error { return f.Err }

// Class is the class of the failure's cause.
func (f *Failure) Class() Class { return f.Cause.describe().Class }

// Remedy is what the reader can do about it, "" where nothing is to be said. It
// follows what was seen; see RemedyFor.
func (f *Failure) Remedy() string {
	return RemedyFor(f.Cause, Evidence{Text: f.Error(), Signs: f.Signs, Subject: f.Subject})
}

// Of finds the Failure in an error. An error that holds none is an Internal
// failure: something that the driver did not expect.
func Of(err error) *Failure {
	var f *Failure
	if errors.As(err, &f) {
		return f
	}
	return &Failure{Cause: Internal, Message: err.Error()}
}
