package build

// Failure is an error that ends a job at once and says why: what GitLab
// Runner calls a BuildError. Every other error is a system failure.
type Failure struct {
	Err error
	// ExitCode is the script's exit code, or 0 when there is none.
	ExitCode int
	// Reason is one of the Reason constants.
	Reason string
}

// Failure reasons as GitLab names them.
const (
	ReasonScript        = "script_failure"
	ReasonSystem        = "runner_system_failure"
	ReasonConfiguration = "runner_configuration_error"
	ReasonTimeout       = "job_execution_timeout"
	ReasonCanceled      = "job_canceled"
	ReasonInterrupted   = "runner_interrupted"
	ReasonUnknown       = "unknown_failure"
)

func (f *Failure) Error() string { return f.Err.Error() }

func (f *Failure) Unwrap() error { return f.Err }
