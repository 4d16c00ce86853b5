//go:build e2e

package e2e

import (
	"testing"

	"github.com/socialweb-computer/tenant-executor/examples/localrunner/runner"
	"github.com/socialweb-computer/tenant-executor/examples/testbed"
)

// A script that uses up the container's memory is told apart from one that ends
// with 137 by itself, whichever of its processes the kernel picks.
func TestOutOfMemoryIsTold(t *testing.T) {
	config, err := bed.WriteConfig(testbed.Namespace, "")
	if err != nil {
		t.Fatal(err)
	}
	replaceInFile(t, config, "pull_policy", "memory_limit = \"48Mi\"\npull_policy")
	for name, script := range map[string]string{
		"a child":          "head -c 200000000 /dev/zero | tail -c 200000000 >/dev/null || exit $?; echo survived",
		"the shell itself": "x=x; while :; do x=$x$x; done",
	} {
		t.Run(name, func(t *testing.T) {
			out := runJobWith(t, config, testbed.WithoutSources(bed.Job(script)), runner.Options{})
			if out.Status != runner.Failed || out.FailureReason != "script_failure" || out.ExitCode != 137 {
				t.Errorf("ended with %s, %s, exit code %d; want a script failure with 137", out.Status, out.FailureReason, out.ExitCode)
			}
			wantLog(t, out, "memory_limit is 48Mi")
			if name == "a child" {
				recorded(t, "Out of memory", out, aside())
			}
		})
	}
}
