package main_test

import (
	"regexp"
	"strings"
	"testing"
)

// fronts is how many connections to agents there were.
func (h *harness) fronts() int {
	n := 0
	for _, e := range h.server.Execs() {
		if len(e.Args) == 3 && e.Args[1] == "front" {
			n++
		}
	}
	return n
}

// logs shows what there is, and takes nothing from the driver.
func TestLogs(t *testing.T) {
	t.Parallel()
	h := person(t)
	gate := h.folder + "/gate"
	stage := h.byDriver("build_script", h.waiting(gate)+"seq 1 100000; exit 42")
	stage.stdout.waitFor(t, "step 1\n")
	pod := h.server.Pods()[0].Name

	got := h.stage("logs", "4711")
	if got.code != 0 || got.stdout != "step 1\n" || !strings.Contains(got.stderr, "goes on; --follow shows what comes.") {
		t.Errorf("%+v", got)
	}
	follower := h.start("logs", pod, "build", "--follow")
	follower.stdout.waitFor(t, "step 1\n")
	fromNow := h.start("logs", "4711", "--follow", "--tail", "0")
	// The driver, the first look, the one that follows, and two of this one.
	h.server.Wait(t, "a look from now on", func() bool { return h.fronts() >= 5 })
	h.write("gate", "")
	want := "step 1\n" + numbers(100000)
	if got := follower.wait(); got.code != 0 || got.stdout != want || !strings.Contains(got.stderr, "has ended: the script ended with exit code 42") {
		t.Errorf("exit code %d, %d bytes, %s", got.code, len(got.stdout), got.stderr)
	}
	if got := fromNow.wait(); got.code != 0 || got.stdout != numbers(100000) {
		t.Errorf("from now on: exit code %d, %d bytes, %s", got.code, len(got.stdout), got.stderr)
	}
	if got := h.stage("logs", "4711", "--tail", "2"); got.stdout != "99999\n100000\n" {
		t.Errorf("the last two lines are %q", got.stdout)
	}
	if got := stage.wait(); got.stdout != want || got.code != 1 {
		t.Errorf("the driver: exit code %d, %d bytes, %s", got.code, len(got.stdout), got.stderr)
	}
	// After its end, by the job's file.
	got = h.stage("logs", "--job", h.folder+"/response.json", "--runner", "runner-ab")
	if got.code != 0 || got.stdout != want {
		t.Errorf("exit code %d, %d bytes, %s", got.code, len(got.stdout), got.stderr)
	}
	if got := h.stage("logs", "4711", "deploy"); got.code == 0 || !strings.Contains(got.stderr, "it has build_script-") {
		t.Errorf("%+v", got)
	}
}

// Output that the driver has printed is gone after a while, and that is said.
func TestLogsOfFreedOutput(t *testing.T) {
	t.Parallel()
	h := person(t)
	h.settings["run.spool_limit"] = "16Mi"
	if got := h.byDriver("build_script", "seq 1 4000000").wait(); got.code != 0 {
		t.Fatalf("%d %s", got.code, got.stderr)
	}
	got := h.stage("logs", "4711")
	told := regexp.MustCompile(`WARNING: (\d+) bytes of the output of stage build_script-[0-9a-f]{6} are gone from the Pod`).FindStringSubmatch(got.stderr)
	if got.code != 0 || told == nil || !strings.HasSuffix(got.stdout, "\n3999999\n4000000\n") || len(got.stdout) > 24<<20 {
		t.Errorf("exit code %d, %d bytes, %s", got.code, len(got.stdout), got.stderr)
	}
}

// attach by id.
func TestAttachByID(t *testing.T) {
	t.Parallel()
	h := person(t)
	gate := h.folder + "/gate"
	driver := h.byDriver("build_script", h.waiting(gate)+"exit 42")
	driver.stdout.waitFor(t, "step 1\n")
	if err := driver.command.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	driver.wait()
	attached := h.start("attach", "4711")
	attached.stdout.waitFor(t, "step 1\n")
	h.write("gate", "")
	if got := attached.wait(); got.code != 42 || got.stdout != "step 1\n" {
		t.Errorf("%+v", got)
	}
}
