// Package job is the CI job that a stage works for: what GitLab sent, what the
// runner added to the environment, and the identity that all four stages of the
// job derive alike.
package job

import (
	"strings"

	"gitlab.com/gitlab-org/gitlab-runner/executors/custom/api"
)

// variablePrefix marks the job variables that the runner hands to a driver
// (executors/custom/custom.go:266).
const variablePrefix = "CUSTOM_ENV_"

// Names of the job_env entries that Config hands to the later stages. They
// are hints that save requests, never the only source of a fact: cleanup runs
// without them when config failed.
const (
	// HintPod is the name that prepare gives to the Pod of this attempt.
	HintPod = "TENANT_EXECUTOR_POD"
	// HintDecided is what config has decided, which holds for the whole job
	// whatever happens to the configuration meanwhile. A pipeline cannot set
	// it: its variables come with a prefix.
	HintDecided = "TENANT_EXECUTOR_DECIDED"
)

// Environment is the environment of a stage process, by name.
type Environment map[string]string

// ParseEnvironment reads "NAME=value" entries as os.Environ gives them. Of
// two entries with one name the later wins, as in the runner
// (executors/custom/command/command.go:101). Values may hold "=".
func ParseEnvironment(entries []string) Environment {
	env := make(Environment, len(entries))
	for _, entry := range entries {
		if name, value, ok := strings.Cut(entry, "="); ok {
			env[name] = value
		}
	}
	return env
}

// Variable is the value of a job variable, expanded by the runner; "" where
// the job has none. A pipeline can set nearly all of them, so nothing that
// guards one job from another may rest on them.
func (e Environment) Variable(name string) string { return e[variablePrefix+name] }

// Names are the names of the job's variables, in no order.
func (e Environment) Names() []string {
	var names []string
	for name := range e {
		if variable, found := strings.CutPrefix(name, variablePrefix); found {
			names = append(names, variable)
		}
	}
	return names
}

// ResponseFile is the path of the job as GitLab sent it.
func (e Environment) ResponseFile() string { return e[api.JobResponseFileVariable] }

// ExitCodeFile is the path where a build failure's own exit code goes. The
// runner gives one path to all stages and never empties it.
func (e Environment) ExitCodeFile() string { return e[api.BuildCodeFileVariable] }
