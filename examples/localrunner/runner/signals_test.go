package runner

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/socialweb-computer/tenant-executor/examples/localrunner/config"
	"github.com/socialweb-computer/tenant-executor/examples/localrunner/job"
)

// waits is a snippet that says "ready" and then lives until it is stopped.
// It notes a SIGTERM to itself and to a child in its group.
const waits = `
	trap 'echo TERM >>"$DIR/driver"; exit 1' TERM
	(trap 'echo TERM >>"$DIR/child"; exit' TERM; : >"$DIR/up"; ` + idle + `) &
	until [ -e "$DIR/up" ]; do sleep 0.01; done
	echo ready
	` + idle

// idle lives until a trap ends it. Its sleeps are short: a signal is lost on
// a child that has been forked and not yet become another program.
const idle = `while :; do sleep 0.05; done`

func fullJob(h *harness) {
	h.job.Steps = append(h.job.Steps, job.Step{Name: "after_script", Script: []string{"x"}})
	h.job.Cache = []job.Cache{{Key: "k", Paths: []string{"c"}, When: job.WhenAlways}}
	h.job.Artifacts = []job.Artifact{{Paths: []string{"a"}, When: job.WhenAlways}}
}

func (h *harness) wantTermToGroup() {
	h.t.Helper()
	if d, c := h.file("driver"), h.file("child"); d != "TERM\n" || c != "TERM\n" {
		h.t.Errorf("SIGTERM: driver %q, its child %q", d, c)
	}
}

func TestGracefulCancelDuringTheScript(t *testing.T) {
	h := newHarness(t)
	fullJob(h)
	h.on("build_script", waits)
	line, cancel := onLine("ready")
	res := h.mustRun(Options{OnLine: line, Cancel: cancel})
	want(t, res, Canceled, reasonUnknown, 0)
	h.wantTermToGroup()
	h.wantStages("config prepare prepare_script get_sources restore_cache build_script after_script " +
		"archive_cache_on_failure upload_artifacts_on_failure cleanup_file_variables cleanup")
	for _, s := range h.calls() {
		if s.stage() == "after_script" && s.value(EnvPrefix+"CI_JOB_STATUS") != "canceled" {
			t.Errorf("after_script: CI_JOB_STATUS is %s", s.value(EnvPrefix+"CI_JOB_STATUS"))
		}
	}
	h.wantInLog("WARNING: script canceled externally (UI, API)", "ERROR: Job failed: canceled")
}

func TestGracefulCancelBeforeTheScriptEndsTheJob(t *testing.T) {
	h := newHarness(t)
	fullJob(h)
	h.on("get_sources", waits)
	line, cancel := onLine("ready")
	want(t, h.mustRun(Options{OnLine: line, Cancel: cancel}), Canceled, reasonUnknown, 0)
	h.wantTermToGroup()
	h.wantStages("config prepare prepare_script get_sources cleanup")
}

func TestAbort(t *testing.T) {
	h := newHarness(t)
	fullJob(h)
	h.on("build_script", waits)
	line, abort := onLine("ready")
	want(t, h.mustRun(Options{OnLine: line, Abort: abort}), Canceled, reasonUnknown, 0)
	h.wantTermToGroup()
	h.wantStages("config prepare prepare_script get_sources restore_cache build_script cleanup")
}

func TestAbortDuringPrepare(t *testing.T) {
	for name, c := range map[string]struct {
		code   string
		status Status
		reason string
	}{
		// What the driver does with SIGTERM decides what the job ends as.
		"exit 2": {"exit 2", Canceled, reasonUnknown},
		"exit 1": {"exit 1", Failed, reasonScript},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			h.on("prepare", `trap '`+c.code+`' TERM; echo ready; `+idle)
			line, abort := onLine("ready")
			res := h.mustRun(Options{OnLine: line, Abort: abort})
			if res.Status != c.status || res.FailureReason != c.reason {
				t.Errorf("got %s, %s", res.Status, res.FailureReason)
			}
			h.wantStages("config prepare cleanup")
			if len(h.pauses) != 0 {
				t.Errorf("pauses: %v", h.pauses)
			}
		})
	}
}

func TestContextEndIsAnAbort(t *testing.T) {
	h := newHarness(t)
	h.on("build_script", waits)
	r, err := New(h.config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	res, err := r.Run(ctx, h.job, Options{Log: &h.log, OnLine: func(l string) {
		if strings.Contains(l, "ready") {
			cancel()
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	want(t, res, Canceled, reasonUnknown, 0)
	h.wantStages("config prepare prepare_script get_sources build_script cleanup")
}

func TestJobTimeout(t *testing.T) {
	h := newHarness(t)
	fullJob(h)
	h.job.Runner.Timeout = 3
	h.on("build_script", waits)
	res := h.mustRun(Options{})
	want(t, res, TimedOut, reasonTimeout, 0)
	h.wantStages("config prepare prepare_script get_sources restore_cache build_script cleanup")
	h.wantInLog("ERROR: Job failed: execution took longer than 3s seconds", "step_script could not run to completion because the timeout was exceeded")
}

func TestScriptTimeout(t *testing.T) {
	h := newHarness(t)
	fullJob(h)
	h.job.Variables = job.Variables{{Key: "RUNNER_SCRIPT_TIMEOUT", Value: "300ms"}}
	h.on("build_script", waits)
	want(t, h.mustRun(Options{}), TimedOut, reasonTimeout, 0)
	h.wantStages("config prepare prepare_script get_sources restore_cache build_script after_script " +
		"archive_cache_on_failure upload_artifacts_on_failure cleanup_file_variables cleanup")
	for _, s := range h.calls() {
		if s.stage() == "after_script" && s.value(EnvPrefix+"CI_JOB_STATUS") != "timedout" {
			t.Errorf("after_script: CI_JOB_STATUS is %s", s.value(EnvPrefix+"CI_JOB_STATUS"))
		}
	}
}

func TestPrepareTimeoutOfTheRunner(t *testing.T) {
	h := newHarness(t)
	h.runner.PrepareTimeout = config.Duration(500 * time.Millisecond)
	h.on("prepare", `trap 'exit 2' TERM; `+idle)
	want(t, h.mustRun(Options{}), TimedOut, reasonTimeout, 0)
	h.wantStages("config prepare cleanup")
}

func TestGetSourcesTimeoutOfTheRunner(t *testing.T) {
	h := newHarness(t)
	fullJob(h)
	h.runner.GetSourcesTimeout = config.Duration(500 * time.Millisecond)
	h.on("get_sources", `trap 'exit 1' TERM; `+idle)
	want(t, h.mustRun(Options{}), TimedOut, reasonTimeout, 0)
	h.wantStages("config prepare prepare_script get_sources cleanup")
}

func TestPrepareExecTimeout(t *testing.T) {
	for name, c := range map[string]struct {
		code, stages string
		status       Status
		reason       string
		exit         int
	}{
		// A driver that exits 0 on SIGTERM makes a timed-out prepare a success.
		"exit 0": {"exit 0", plainStages, Success, "", 0},
		"exit 1": {"exit 1", "config prepare cleanup", Failed, reasonScript, 1},
		"exit 2": {"exit 2", "config prepare cleanup config prepare cleanup config prepare cleanup", Failed, reasonSystem, 0},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			h.runner.Custom.PrepareExecTimeout = seconds(2)
			h.on("prepare", `trap '`+c.code+`' TERM; `+idle)
			want(t, h.mustRun(Options{}), c.status, c.reason, c.exit)
			h.wantStages(c.stages)
		})
	}
}

func TestDeafDriverIsKilled(t *testing.T) {
	h := newHarness(t)
	h.runner.Custom.GracefulKillTimeout = seconds(1)
	h.on("build_script", `trap '' TERM; echo $$ >"$DIR/pid"; sleep 600 & echo $! >"$DIR/child"; echo ready; wait; wait`)
	line, cancel := onLine("ready")
	res := h.mustRun(Options{OnLine: line, Cancel: cancel})
	want(t, res, Canceled, reasonUnknown, 0)
	for _, name := range []string{"pid", "child"} {
		if pid := strings.TrimSpace(h.file(name)); running(pid) {
			t.Errorf("%s %s is still running", name, pid)
		}
	}
	for _, c := range res.Calls {
		if c.Stage == "build_script" && c.ExitCode != -1 {
			t.Errorf("exit code of the killed driver: %d", c.ExitCode)
		}
	}
}

func TestDormantDriverIsGivenUp(t *testing.T) {
	h := newHarness(t)
	h.runner.Custom.GracefulKillTimeout = seconds(1)
	h.runner.Custom.ForceKillTimeout = seconds(1)
	// A child in a session of its own is out of the signals' reach and keeps
	// the pipes open: for the runner the call does not end.
	h.on("build_script", `setsid sh -c ': >"$DIR/up"; exec sleep 600' & echo $! >"$DIR/child"
		until [ -e "$DIR/up" ]; do sleep 0.01; done
		echo ready; wait`)
	line, abort := onLine("ready")
	res := h.mustRun(Options{OnLine: line, Abort: abort})
	want(t, res, Canceled, reasonUnknown, 0)
	h.wantStages("config prepare prepare_script get_sources build_script cleanup")
	found := false
	for _, c := range res.Calls {
		found = found || c.Err != nil && strings.Contains(c.Err.Error(), "likely process is dormant")
	}
	if !found {
		t.Errorf("no call was given up: %+v", res.Calls)
	}
	endProcess(t, h.file("child"))
}

func TestChildThatHoldsStdoutBlocksTheStage(t *testing.T) {
	h := newHarness(t)
	if err := os.WriteFile(h.dir+"/held", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	h.on("prepare", `(while [ -e "$DIR/held" ]; do sleep 0.05; done; echo "the child is done") & echo "prepare is done"`)
	h.on("prepare_script", `test -e "$DIR/held" && exit 1; exit 0`)
	line, done := onLine("prepare is done")
	go func() {
		<-done
		_ = os.Remove(h.dir + "/held")
	}()
	want(t, h.mustRun(Options{OnLine: line}), Success, "", 0)
	h.wantInLog("the child is done")
}

func TestShutdownInTime(t *testing.T) {
	h := newHarness(t)
	fullJob(h)
	h.on("build_script", waits)
	line, shutdown := onLine("ready")
	res := h.mustRun(Options{OnLine: line, Shutdown: shutdown})
	want(t, res, Failed, reasonUnknown, 0)
	h.wantTermToGroup()
	h.wantStages("config prepare prepare_script get_sources restore_cache build_script cleanup")
	h.wantInLog("ERROR: Job failed: aborted: terminated")
}

func TestShutdownCutsOffASlowCleanup(t *testing.T) {
	h := newHarness(t)
	h.config.ShutdownTimeout = 3 * time.Second // enough to come to cleanup
	h.on("build_script", waits)
	h.on("cleanup", `echo $$ >"$DIR/cleanup-pid"; exec sleep 600`)
	line, shutdown := onLine("ready")
	_, err := h.run(Options{OnLine: line, Shutdown: shutdown})
	if !errors.Is(err, ErrShutdown) {
		t.Fatalf("error %v, want ErrShutdown", err)
	}
	if pid := strings.TrimSpace(h.file("cleanup-pid")); !running(pid) {
		t.Errorf("cleanup, process %s, does not run on", pid)
	}
	if left, _ := os.ReadDir(h.temp); len(left) != 1 {
		t.Errorf("temporary folders left: %v, want one", left)
	}
	endProcess(t, h.file("cleanup-pid"))
}

func TestJobsInParallel(t *testing.T) {
	h := newHarness(t)
	// Each waits until the other has begun.
	h.on("build_script", `: >"$DIR/began-$CUSTOM_ENV_CI_CONCURRENT_ID"
		until [ -e "$DIR/began-0" ] && [ -e "$DIR/began-1" ]; do sleep 0.05; done`)
	r, err := New(h.config)
	if err != nil {
		t.Fatal(err)
	}
	results := make(chan Result)
	for id := range 2 {
		go func() {
			res, err := r.Run(t.Context(), h.job, Options{ConcurrentID: id})
			if err != nil {
				t.Error(err)
			}
			results <- res
		}()
	}
	for range 2 {
		want(t, <-results, Success, "", 0)
	}
}

// endProcess ends a process that a test's driver has left.
func endProcess(t *testing.T, pid string) {
	t.Helper()
	p, err := os.FindProcess(atoi(t, strings.TrimSpace(pid)))
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Kill(); err != nil {
		t.Errorf("ending process %s: %v", pid, err)
	}
}
