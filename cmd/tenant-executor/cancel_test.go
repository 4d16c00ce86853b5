package main_test

import (
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/socialweb-computer/tenant-executor/kube/faultserver"
)

// A script that the runner ends has its processes ended, in its container
// alone, and what it writes while it dies is not shown. The Pod stays for
// after_script.
func TestRunThatIsCancelled(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	p := h.play(nil)
	p.script = func(e *faultserver.Exec) {
		_, _ = io.WriteString(e.Stdout, "step 1\n")
		<-p.stop
		_, _ = io.WriteString(e.Stdout, "dying: "+canaryScript+"\n")
		e.Exit(143)
	}
	h.theJob()
	stage := h.startRun("build_script", script)
	stage.stdout.waitFor(t, "step 1\n")
	stage.terminate()
	h.expect(stage.wait(), buildCode, lines("step 1", "ERROR: the runner ended the stage"), "")
	if diff := cmp.Diff([]stageStop{{"build", "3"}}, p.stops(), cmp.AllowUnexported(stageStop{})); diff != "" {
		t.Error(diff)
	}
	if n := len(h.server.Pods()); n != 1 {
		t.Errorf("%d Pods are left, want 1", n)
	}
	if code := h.exitCodeFile(); code != "" {
		t.Errorf("the runner was handed %q", code)
	}
	p.script = nil
	h.expect(h.run("after_script", script), 0, "", "")
}

// The stop gets through although the connection to the cluster is bad.
func TestCancelThroughTroubles(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	p := h.play(nil)
	p.script = func(e *faultserver.Exec) {
		_, _ = io.WriteString(e.Stdout, "step 1\n")
		e.WaitGone()
	}
	h.theJob()
	stage := h.startRun("build_script", script)
	stage.stdout.waitFor(t, "step 1\n")
	h.server.Fail(2, "create", "pods/exec", faultserver.Reset())
	stage.terminate()
	h.expect(stage.wait(), buildCode, lines("step 1", "ERROR: the runner ended the stage"), "")
	if n := len(p.stops()); n != 1 {
		t.Errorf("the script's processes were ended %d times", n)
	}
}

// TERM comes while the command is still being started: it does not start any
// more after that.
func TestCancelWhileConnecting(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	p := h.play(nil)
	h.theJob()
	h.env["TENANT_EXECUTOR_POD"] = h.server.Pods()[0].Name
	h.server.Fail(1, "create", "pods/exec", faultserver.Silence())
	stage := h.startRun("build_script", script)
	h.server.Wait(t, "the command is asked for", func() bool { return h.server.Requests().Count("create", "pods/exec") == 2 })
	stage.terminate()
	h.expect(stage.wait(), buildCode, lines("ERROR: the runner ended the stage"), "")
	if n := len(p.starts()); n != 0 {
		t.Errorf("the script ran %d times", n)
	}
}

// A Pod that is gone has no processes to end.
func TestCancelAfterThePodHasGone(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.settings["run.poll"] = "1h"
	h.play(func(e *faultserver.Exec) {
		_, _ = io.WriteString(e.Stdout, "step 1\n")
		e.WaitGone()
	})
	h.theJob()
	stage := h.startRun("build_script", script)
	stage.stdout.waitFor(t, "step 1\n")
	h.server.Apply(faultserver.Removed())
	stage.terminate()
	h.expect(stage.wait(), buildCode, lines("step 1", "ERROR: the runner ended the stage"), "")
}
