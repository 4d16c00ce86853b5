package main

import (
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/socialweb-computer/tenant-executor/examples/localrunner/pipeline"
	"github.com/socialweb-computer/tenant-executor/examples/localrunner/runner"
)

// report is what --report writes.
type report struct {
	Jobs []jobReport `json:"jobs"`
}

// jobReport is one job of a report. Times are in seconds.
type jobReport struct {
	ID     int64  `json:"id,omitempty"`
	Name   string `json:"name"`
	Stage  string `json:"stage"`
	Status string `json:"status"`
	// FailureReason and ExitCode are what GitLab would be told.
	FailureReason string       `json:"failure_reason,omitempty"`
	ExitCode      *int         `json:"exit_code,omitempty"`
	AllowedToFail bool         `json:"allowed_to_fail,omitempty"`
	Message       string       `json:"message,omitempty"`
	Attempts      int          `json:"attempts,omitempty"`
	Duration      float64      `json:"duration,omitempty"`
	Calls         []callReport `json:"calls,omitempty"`
	Log           string       `json:"log,omitempty"`

	systemFailure bool
}

// callReport is one call of the driver.
type callReport struct {
	Stage    string    `json:"stage"`
	Attempt  int       `json:"attempt"`
	Started  time.Time `json:"started"`
	Duration float64   `json:"duration"`
	// ExitCode is the driver's own, -1 after a signal.
	ExitCode int    `json:"driver_exit_code"`
	Error    string `json:"error,omitempty"`
}

func newJobReport(j *pipeline.Job, id int64, log string, res runner.Result) jobReport {
	r := jobReport{
		ID: id, Name: j.Name, Stage: j.Stage,
		Status: string(res.Status), FailureReason: res.FailureReason, Message: res.Message,
		Attempts: res.Attempts, Duration: res.Duration.Seconds(), Log: log,
		systemFailure: res.SystemFailure(),
	}
	if res.ExitCode != 0 {
		r.ExitCode = &res.ExitCode
	}
	for _, c := range res.Calls {
		call := callReport{
			Stage: c.Stage, Attempt: c.Attempt, Started: c.Started,
			Duration: c.Duration.Seconds(), ExitCode: c.ExitCode,
		}
		if c.Err != nil {
			call.Error = c.Err.Error()
		}
		r.Calls = append(r.Calls, call)
	}
	return r
}

// write writes the report to a file; an empty path means no report.
func (r report) write(path string) error {
	if path == "" {
		return nil
	}
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	if err := os.WriteFile(path, append(data, '\n'), 0o644); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return nil
}
