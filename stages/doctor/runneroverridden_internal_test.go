package doctor

import (
	"testing"

	"github.com/socialweb-computer/tenant-executor/executor/settings"
)

func TestRunnerOverridden(t *testing.T) {
	s := settings.Defaults()
	judge := func(old, by string, s settings.Settings) Result {
		_, r := entry(t, old, by)
		all := judgeRunnerOverridden(r, s)
		if len(all) == 0 {
			return ok("nothing")
		}
		return worstOf(all)
	}
	const name = `name = "tenant cluster"`
	patched := s
	patched.Kubernetes.PodSpec = []settings.PodSpecPatch{{Name: "x"}}
	moved := s
	moved.Job.BuildsDir = "/data"
	expect(t, map[string]judged{
		"nothing set":     {judge(name, name, s), OK, ""},
		"builds_dir":      {judge(name, name+"\nbuilds_dir = \"/data\"", s), Warning, `builds_dir = "/data" has no effect: the driver answers "/builds"`},
		"the same":        {judge(name, name+"\nbuilds_dir = \"/data\"", moved), OK, ""},
		"cache_dir":       {judge(name, name+"\ncache_dir = \"/data\"", s), Warning, "set job.cache_dir in the driver's configuration"},
		"shell":           {judge(name, name+"\nshell = \"sh\"", s), Warning, `shell = "sh" has no effect`},
		"no config_exec":  {judge("config_exec", "builds_dir = \"/data\"\n#", s), OK, ""},
		"patch":           {judge(name, name, patched), Warning, "kubernetes.pod_spec has no effect on jobs without the feature flag FF_USE_ADVANCED_POD_SPEC_CONFIGURATION"},
		"patch, flag off": {judge("[runners.custom]", "[runners.feature_flags]\nFF_USE_ADVANCED_POD_SPEC_CONFIGURATION = false\n[runners.custom]", patched), Warning, "[runners.feature_flags]"},
		"patch, flag on":  {judge("[runners.custom]", "[runners.feature_flags]\nFF_USE_ADVANCED_POD_SPEC_CONFIGURATION = true\n[runners.custom]", patched), OK, ""},
	})
}
