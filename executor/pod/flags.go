package pod

import (
	"strconv"
	"strings"

	"github.com/socialweb-computer/tenant-executor/executor/job"
)

// Feature flags of the runner that change the Pod
// (helpers/featureflags/flags.go).
const (
	// FlagEntrypoint has the entrypoint of the job's image run.
	FlagEntrypoint = "FF_KUBERNETES_HONOR_ENTRYPOINT"
	// FlagNoUmask has the helper's files belong to the build container's user,
	// in place of being writable for everybody.
	FlagNoUmask = "FF_DISABLE_UMASK_FOR_KUBERNETES_EXECUTOR"
	// FlagPodSpec has the patches of pod_spec applied.
	FlagPodSpec = "FF_USE_ADVANCED_POD_SPEC_CONFIGURATION"
)

// Flag says whether a feature flag is on for a job. The runner hands flags over
// as variables of the job.
func Flag(variables job.Environment, name string) bool {
	on, err := strconv.ParseBool(strings.TrimSpace(variables.Variable(name)))
	return err == nil && on
}
