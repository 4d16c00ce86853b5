//go:build e2e

package e2e

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/socialweb-computer/tenant-executor/examples/localrunner/runner"
	"github.com/socialweb-computer/tenant-executor/examples/testbed"
)

// A stage that tells stdout and stderr apart: the job log has both, and a person
// sees the one without the other.
func TestStreamsAreToldApart(t *testing.T) {
	const lines = 2000
	config, err := bed.WriteConfig(testbed.Namespace, "separate_stderr = true\n")
	if err != nil {
		t.Fatal(err)
	}
	j := testbed.WithoutSources(bed.Job(fmt.Sprintf("for i in $(seq %d); do echo out $i; echo err $i >&2; done", lines), bed.Gate("apart")))
	ended := make(chan testbed.Outcome, 1)
	go func() { ended <- runJobWith(t, config, j, runner.Options{}) }()
	if err := bed.Arrived(limited(t, jobLimit), "apart"); err != nil {
		t.Fatal(err)
	}
	var stdout, stderr strings.Builder
	for i := range lines {
		fmt.Fprintln(&stdout, "out", i+1)
		fmt.Fprintln(&stderr, "err", i+1)
	}
	id := strconv.FormatInt(j.ID, 10)
	if out, says, code := asks(t, config, "logs", id, "build_script", "--only", "stderr"); code != 0 || out != stderr.String() {
		t.Errorf("logs --only stderr: exit code %d, %d bytes, want %d: %s", code, len(out), stderr.Len(), says)
	}
	// The runner's script shows each command before it runs it, on stdout.
	if out, says, code := asks(t, config, "logs", id, "build_script", "--only", "stdout"); code != 0 || !strings.Contains(out, stdout.String()) || strings.Contains(out, "\nerr ") {
		t.Errorf("logs --only stdout: exit code %d, %d bytes: %s", code, len(out), says)
	}
	bed.Open("apart")
	out := <-ended
	wantPassed(t, out)
	var only strings.Builder
	for line := range strings.Lines(out.Log) {
		if strings.HasPrefix(line, "err ") {
			only.WriteString(line)
		}
	}
	if !strings.Contains(out.Log, "\nout 1\n") || only.String() != stderr.String() {
		t.Errorf("the job log has %d bytes of stderr, want %d", only.Len(), stderr.Len())
	}
}
