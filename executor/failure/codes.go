package failure

import (
	"fmt"
	"strconv"

	"gitlab.com/gitlab-org/gitlab-runner/executors/custom/api"
)

// Exit codes of the runner where a stage is run by hand, outside the runner
// (executors/custom/command/command.go).
const (
	byHandBuild  = 1
	byHandSystem = 2
)

// Codes are the exit codes by which the runner tells failures apart.
type Codes struct {
	// Build ends a stage with a build failure, System with a system failure.
	Build, System int
}

// ParseCodes reads the codes from the environment that the runner sets. By
// hand they may be left out: then they are the runner's own, 1 and 2.
func ParseCodes(env map[string]string) (Codes, error) {
	codes := Codes{Build: byHandBuild, System: byHandSystem}
	for _, variable := range []struct {
		name string
		code *int
	}{
		{api.BuildFailureExitCodeVariable, &codes.Build},
		{api.SystemFailureExitCodeVariable, &codes.System},
	} {
		text, set := env[variable.name]
		if !set {
			continue
		}
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > 255 {
			return codes, fmt.Errorf("%s is %q: it has to be a number from 1 to 255, as GitLab Runner sets it", variable.name, text)
		}
		*variable.code = n
	}
	if codes.Build == codes.System {
		return codes, fmt.Errorf("%s and %s are both %d: they have to differ",
			api.BuildFailureExitCodeVariable, api.SystemFailureExitCodeVariable, codes.Build)
	}
	return codes, nil
}

// For is the exit code that tells the runner of err; 0 for nil.
func (c Codes) For(err error) int {
	switch {
	case err == nil:
		return 0
	case Of(err).Class() == Build:
		return c.Build
	default:
		return c.System
	}
}
