package job_test

import (
	"testing"

	"github.com/socialweb-computer/tenant-executor/executor/job"
)

func TestExpand(t *testing.T) {
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
		if got := env.Expand(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}
