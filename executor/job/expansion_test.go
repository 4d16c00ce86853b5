package job_test

import (
	"testing"

	"github.com/socialweb-computer/tenant-executor/executor/job"
)

func TestExpandWith(t *testing.T) {
	env := job.Environment{"CUSTOM_ENV_A": "one", "CUSTOM_ENV_B": "$A", "PATH": "/bin"}
	for text, want := range map[string]string{
		"":                  "",
		"plain":             "plain",
		"$A-${A}x":          "one-onex",
		"$B":                "$A", // once, not over and over
		"$$A":               "$A",
		"$PATH$NONE$1$?":    "", // the driver's own variables are none of the job's
		"registry/x:$A@sha": "registry/x:one@sha",
	} {
		if got := (job.Job{}).ExpandWith(env, nil, text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}

// A variable that stands for a file never gives its content, whoever made it
// one: GitLab, the runner's secrets, or the runner itself.
func TestFilesAreExpandedToTheirPaths(t *testing.T) {
	j, env := scene(t)
	for _, name := range []string{"FILE", "PRIVATE_FILE", "VAULT_FILE", "CI_SERVER_TLS_CA_FILE"} {
		if got, want := j.ExpandWith(env, nil, "$"+name), "/builds/a/b.tmp/"+name; got != want {
			t.Errorf("$%s became %q, want %q", name, got, want)
		}
	}
}
