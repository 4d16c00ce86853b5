//go:build e2e

package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/socialweb-computer/tenant-executor/examples/localrunner/job"
	"github.com/socialweb-computer/tenant-executor/examples/localrunner/runner"
	"github.com/socialweb-computer/tenant-executor/examples/testbed"
)

// What a filter of the output prints a little later than the shell ends is there,
// and a process that is to stay does not hold the stage.
func TestTheEndOfTheLogIsWhole(t *testing.T) {
	h := byHand(t, testbed.WithoutSources(bed.Job("true")))
	defer h.do("cleanup")
	h.wants("prepare", 0, "")
	const loop = "i=0; while [ $i -lt 200 ]; do i=$((i+1)); echo line $i; done; echo 'ERROR: tests failed'; exit 3"
	for name, script := range map[string]string{
		"tee":     "exec > >(tee /tmp/log) 2>&1; " + loop,
		"filter":  `exec > >(while read -r l; do echo "12:00 $l"; done) 2>&1; ` + loop,
		"wrapped": "trap 'exit 1' TERM; set -o errexit\n(trap 'exit 1' TERM; eval 'exec > >(sed s/^/x/) 2>&1; " + strings.ReplaceAll(loop, "'", `'\''`) + "') </dev/null\nexit 0\n",
	} {
		for range 10 {
			out, code := h.do("run", h.script(script), "build_script")
			if n := strings.Count(out, "line "); n != 200 || !strings.Contains(out, "ERROR: tests failed\n") || code != 1 {
				t.Errorf("%s: exit code %d, %d lines; the last: %q", name, code, n, out[max(len(out)-100, 0):])
			}
		}
	}
	for name, script := range map[string]string{"silent": "sleep 600 & echo done; exit 3", "on and on": "yes >/proc/self/fd/1 & echo done; exit 3"} {
		began := time.Now()
		out, code := h.do("run", h.script(script), "build_script")
		if took := time.Since(began); code != 1 || !strings.Contains(out, "done\n") || took > time.Minute {
			t.Errorf("%s: exit code %d after %s", name, code, took)
		}
	}
}

// A stage that is left by a driver that died does not go on beside the next try.
func TestSecondTryEndsTheFirst(t *testing.T) {
	h := byHand(t, testbed.WithoutSources(bed.Job("true")))
	defer h.do("cleanup")
	h.wants("prepare", 0, "")
	first := h.command("run", h.script("trap '' TERM; echo ready; while :; do echo at work >/builds/first; sleep 0.1; done"), "get_sources")
	var out lockedOutput
	first.Stdout = &out
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	for !strings.Contains(out.String(), "ready\n") {
		time.Sleep(20 * time.Millisecond)
	}
	if err := first.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = first.Wait()
	if out, code := h.do("run", h.script("rm -f /builds/first; sleep 1; [ ! -e /builds/first ] || { echo beside; exit 1; }; echo alone"), "get_sources"); code != 0 || !strings.Contains(out, "alone\n") {
		t.Errorf("the second try: exit code %d, output %q", code, out)
	}
}

// What a script's own trap prints at a cancel is in the log, and no variable is.
func TestCancelShowsTheTrap(t *testing.T) {
	j := testbed.WithoutSources(bed.Job("trap 'echo in the trap; exit 1' TERM", `eval "$TASK"`))
	j.Variables = append(j.Variables, job.Variable{Key: "TASK", Value: bed.Gate("cancelled-trap"), Public: true, Raw: true},
		job.Variable{Key: "SECRET", Value: "canary-4711"})
	cancel := make(chan struct{})
	wait := start(t, bed.Config, j, runner.Options{Cancel: cancel})
	nodeOf(t, "cancelled-trap", j.ID)
	close(cancel)
	out := wait()
	wantLog(t, out, "in the trap\n")
	if strings.Contains(out.Log, "canary-4711") {
		t.Errorf("the log shows a variable:\n%s", out.Log)
	}
}
