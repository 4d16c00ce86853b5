package stages

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"

	"gitlab.com/gitlab-org/gitlab-runner/executors/custom/api"

	"github.com/socialweb-computer/tenant-executor/executor/job"
	"github.com/socialweb-computer/tenant-executor/executor/pod"
	"github.com/socialweb-computer/tenant-executor/executor/settings"
)

// driverName is what the job log calls the driver.
const driverName = "tenant-executor"

// ConfigParts are what config answers from. It asks no cluster: the runner
// calls it before it knows whether there is anything to prepare.
type ConfigParts struct {
	Settings settings.Settings
	Job      job.Job
	// Variables are the job's.
	Variables job.Environment
	Version   string
	// Hostname is this host's name, which the runner shows in the job log.
	Hostname string
	// Random makes the attempt's name.
	Random io.Reader
}

// Config writes what the runner has to know about the job as JSON, and nothing
// else, to out (the contract: executors/custom/api/config.go). The name of
// this attempt's Pod travels in job_env, so that later stages need not look
// for it, and so does what was decided for the job; see Decided.
func Config(p ConfigParts, out io.Writer) error {
	attempt, err := newAttempt(p.Random)
	if err != nil {
		return err
	}
	shared, err := pod.SharedBuilds(p.Settings.Kubernetes, p.Job, p.Variables, p.Settings.Job.BuildsDir)
	if err != nil {
		return err
	}
	decided, err := decide(p).text(p.Job)
	if err != nil {
		return err
	}
	name := driverName
	answer := api.ConfigExecOutput{
		Driver:            &api.DriverInfo{Name: &name, Version: &p.Version},
		Hostname:          &p.Hostname,
		BuildsDir:         &p.Settings.Job.BuildsDir,
		CacheDir:          &p.Settings.Job.CacheDir,
		BuildsDirIsShared: &shared,
		Shell:             &p.Settings.Job.Shell,
		JobEnv:            &map[string]string{job.HintPod: p.Job.PodName(attempt), job.HintDecided: decided},
	}
	if err := json.NewEncoder(out).Encode(answer); err != nil {
		return fmt.Errorf("answering the runner: %w", err)
	}
	return nil
}

// attemptBytes is how much chance an attempt's name holds.
const attemptBytes = 3

// newAttempt names an attempt.
func newAttempt(random io.Reader) (string, error) {
	if random == nil {
		random = rand.Reader
	}
	b := make([]byte, attemptBytes)
	if _, err := io.ReadFull(random, b); err != nil {
		return "", fmt.Errorf("naming the attempt: %w", err)
	}
	return hex.EncodeToString(b), nil
}
