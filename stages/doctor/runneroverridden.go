package doctor

import (
	"fmt"

	"github.com/socialweb-computer/tenant-executor/executor/pod"
	"github.com/socialweb-computer/tenant-executor/executor/settings"
)

// judgeRunnerOverridden tells of settings that have no effect, and that nobody
// else tells of: what config answers wins over the runner's entry
// (executors/custom/custom.go, Prepare), and patches of the Pod need a feature
// flag.
func judgeRunnerOverridden(r runnerEntry, s settings.Settings) []Result {
	var all []Result
	for _, key := range []struct{ name, theirs, ours string }{
		{"builds_dir", r.BuildsDir, s.Job.BuildsDir}, {"cache_dir", r.CacheDir, s.Job.CacheDir}, {"shell", r.Shell, s.Job.Shell},
	} {
		if key.theirs != "" && key.theirs != key.ours && r.Custom.ConfigExec != "" {
			all = append(all, warning(fmt.Sprintf("%s: %s = %q has no effect: the driver answers %q for each job", r.title(), key.name, key.theirs, key.ours),
				fmt.Sprintf("set job.%s in the driver's configuration to it, have it inherited (inherit.config_file), or remove it from the runner's", key.name)))
		}
	}
	if len(s.Kubernetes.PodSpec) > 0 && r.FeatureFlags[pod.FlagPodSpec] != true {
		all = append(all, warning(fmt.Sprintf("%s: kubernetes.pod_spec has no effect on jobs without the feature flag %s, and the runner does not set it", r.title(), pod.FlagPodSpec),
			fmt.Sprintf("set %s = true in [runners.feature_flags], or in the variables of the jobs that are meant", pod.FlagPodSpec)))
	}
	return all
}
