package main_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/socialweb-computer/tenant-executor/kube/faultserver"
)

// stubborn is a script whose processes do not end by themselves: one that
// ignores TERM, one in a session of its own, one whose parent is gone, and a
// shell that has something to say. It notes their numbers.
func (h *harness) stubborn() string {
	pids := "'" + h.folder + "/pids'"
	return h.counted() + `note() { echo $1 >>` + pids + `; }
setsid sleep 1001 & note $!
(trap "" TERM; echo $BASHPID >>` + pids + `; while :; do sleep 1; done) &
(setsid sh -c "sleep 1002 & echo \$! >>` + pids + `")
exec 2>/dev/null
trap 'echo in the trap; exit 1' TERM
until [ $(wc -l <` + pids + `) = 3 ]; do sleep 0.01; done
note $$
echo step 1
while :; do sleep 0.01; done
`
}

// expectAllEnded looks whether the processes of a stubborn script are gone.
func (h *harness) expectAllEnded() {
	h.t.Helper()
	text, err := os.ReadFile(h.folder + "/pids")
	if err != nil {
		h.t.Fatal(err)
	}
	for _, line := range strings.Fields(string(text)) {
		pid, err := strconv.Atoi(line)
		if err != nil {
			h.t.Fatal(err)
		}
		if alive(pid) {
			h.t.Errorf("process %d of the script lives", pid)
		}
	}
}

// A script that the runner ends has all its processes ended, and what it writes
// until then is shown. That it was ended is the runner's to say.
// The Pod stays for after_script.
func TestRunThatIsCancelled(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.settings["run.cancel_grace"] = "1s"
	h.play()
	h.theJob()
	stage := h.startRun("build_script", h.stubborn())
	stage.stdout.waitFor(t, "step 1\n")
	stage.terminate()
	h.expect(stage.wait(), buildCode, "step 1\nin the trap\n", "")
	h.expectAllEnded()
	if n := len(h.server.Pods()); n != 1 {
		t.Errorf("%d Pods are left, want 1", n)
	}
	h.expectNoScript(buildCode)
	h.expect(h.run("after_script", script+"echo after"), 0, "after\n", "")
}

// By hand nobody else says what has happened.
func TestRunThatIsCancelledByHand(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.play()
	h.theJob()
	delete(h.env, "BUILD_EXIT_CODE_FILE")
	stage := h.startRun("build_script", h.waiting("/nowhere/gate"))
	stage.stdout.waitFor(t, "step 1\n")
	stage.terminate()
	h.expect(stage.wait(), buildCode, lines("step 1", "ERROR: the runner ended the stage"), "")
}

// The stop gets through although the connection is lost just then: it is
// delivered by the next one.
func TestCancelWhileTheConnectionIsDown(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.settings["run.cancel_grace"] = "1s"
	p := h.play()
	h.theJob()
	h.env["TENANT_EXECUTOR_POD"] = h.server.Pods()[0].Name
	stage := h.startRun("build_script", h.stubborn())
	stage.stdout.waitFor(t, "step 1\n")
	asked := h.server.Requests().Count("create", "pods/exec")
	h.server.Down()
	h.server.Fail(3, "create", "pods/exec", faultserver.Reset())
	stage.terminate()
	h.server.Up(t)
	h.expect(stage.wait(), buildCode, "step 1\nin the trap\n", "")
	h.expectAllEnded()
	if n := h.server.Requests().Count("create", "pods/exec") - asked; n != 4 || p.connections() != 2 {
		t.Errorf("the agent was reached %d times after %d further requests; want 2 and 4", p.connections(), n)
	}
}

// A second TERM cuts the grace short.
func TestSecondSignalCutsTheGraceShort(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.settings["run.cancel_grace"] = "1h"
	h.play()
	h.theJob()
	stage := h.startRun("build_script", h.stubborn())
	stage.stdout.waitFor(t, "step 1\n")
	stage.terminate()
	// The trap has the shell end at the first one; others do not.
	until(t, "the first TERM has arrived", func() bool {
		text, err := os.ReadFile(h.folder + "/pids")
		pids := strings.Fields(string(text))
		if err != nil || len(pids) < 4 {
			return false
		}
		shell, err := strconv.Atoi(pids[3])
		return err == nil && !alive(shell)
	})
	stage.terminate()
	h.expect(stage.wait(), buildCode, "step 1\nin the trap\n", "")
	h.expectAllEnded()
}

// TERM comes while the command is still being started: what has started is
// ended.
func TestCancelWhileConnecting(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.settings["run.cancel_grace"] = "0s"
	h.play()
	h.theJob()
	h.env["TENANT_EXECUTOR_POD"] = h.server.Pods()[0].Name
	h.server.Fail(1, "create", "pods/exec", faultserver.Reset())
	h.server.Fail(1, "create", "pods/exec", faultserver.Silence())
	stage := h.startRun("build_script", h.stubborn())
	h.server.Wait(t, "the command is asked for", func() bool { return h.server.Requests().Count("create", "pods/exec") == 3 })
	stage.terminate()
	got := stage.wait()
	if got.code != buildCode || strings.Contains(got.stdout, "ERROR") {
		t.Errorf("exit code %d, output\n%s", got.code, h.plain(got.stdout))
	}
}

// A Pod that is gone has no processes to end.
func TestCancelAfterThePodHasGone(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.settings["run.poll"] = "1h"
	p := h.play()
	h.theJob()
	h.env["TENANT_EXECUTOR_POD"] = h.server.Pods()[0].Name
	opened := make(chan *line, 1)
	p.onLine(func(_ int, l *line) { opened <- l })
	stage := h.startRun("build_script", h.stubborn())
	stage.stdout.waitFor(t, "step 1\n")
	h.server.Apply(faultserver.Removed())
	stage.terminate()
	(<-opened).breaks(faultserver.RST)
	got := stage.wait()
	if got.code != buildCode || !strings.Contains(h.plain(got.stdout), "ERROR: the runner ended the stage; it is not known whether the script's processes have ended") {
		t.Errorf("exit code %d, output\n%s", got.code, h.plain(got.stdout))
	}
}

// A driver that is killed leaves the stage running; attach shows the rest and
// ends with the script's exit code.
func TestAttachAfterTheDriverIsKilled(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.play()
	h.theJob()
	gate := h.folder + "/gate"
	driver := h.startRun("build_script", h.waiting(gate)+"seq 1 1000; exit 42")
	driver.stdout.waitFor(t, "step 1\n")
	if err := driver.command.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	driver.wait()
	attached := h.start("attach", "build_script")
	attached.stdout.waitFor(t, "step 1\n")
	h.write("gate", "")
	got := attached.wait()
	if got.code != 42 || got.stdout != "step 1\n"+numbers(1000) {
		t.Errorf("exit code %d, output\n%s%s", got.code, got.stdout, got.stderr)
	}
	if want := fmt.Sprintf("the script ended with exit code %d", 42); !strings.Contains(got.stderr, want) {
		t.Errorf("stderr does not say that %s:\n%s", want, got.stderr)
	}
	h.expectStarts(1)
}
