package main_test

import (
	"strings"
	"testing"

	"github.com/socialweb-computer/tenant-executor/kube/faultserver"
)

// withServices is a person with a job that has a service with two names, and
// another.
func withServices(t *testing.T) *harness {
	t.Helper()
	return personWith(t, func(h *harness) {
		h.job["services"] = []any{
			map[string]any{"name": "registry.example.com/team/redis:7", "alias": "db cache"},
			map[string]any{"name": "probe:1", "alias": "web,cache"},
			map[string]any{"name": "plain:1"},
		}
	})
}

// What a service has said is there by each of its names, once, however often
// the answer breaks off.
func TestLogsOfAService(t *testing.T) {
	t.Parallel()
	h := withServices(t)
	for i, line := range []string{"one", "two", "three"} {
		h.server.Log("db", at(i), line)
	}
	for _, name := range []string{"db", "registry.example.com-team-redis", "registry.example.com__team__redis"} {
		got := h.stage("logs", "4711", "--container", name)
		if strings.Contains(name, "__") {
			// No host name has such a part, so it is no name of the service.
			if got.code == 0 {
				t.Errorf("%s: %+v", name, got)
			}
			continue
		}
		if got.code != 0 || got.stdout != "one\ntwo\nthree\n" || got.stderr != "Container db goes on; --follow shows what comes.\n" {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if got := h.stage("logs", "4711", "-c", "plain"); got.code != 0 || got.stdout != "" || !strings.Contains(got.stderr, "Container svc-0 goes on") {
		t.Errorf("%+v", got)
	}
	if got := h.stage("logs", "--job", h.folder+"/response.json", "--runner", "runner-ab", "-c", "db", "--tail", "2"); got.code != 0 || got.stdout != "two\nthree\n" {
		t.Errorf("%+v", got)
	}
	h.server.CutLog(2, 1)
	follower := h.start("logs", "4711", "-c", "db", "--tail", "1", "--follow")
	follower.stdout.waitFor(t, "three\n")
	h.server.Wait(t, "the log is followed", func() bool { return h.server.FollowsLog("db") == 1 })
	h.server.Log("db", at(3), "four")
	follower.stdout.waitFor(t, "four\n")
	h.server.Apply(faultserver.Removed())
	got := follower.wait()
	if got.code != 0 || got.stdout != "three\nfour\n" || got.stderr != "The job's Pod is gone, and the log of container db with it.\n" {
		t.Errorf("%+v", got)
	}
}

// A container of stages is one as well: then it is the newest stage in it.
func TestLogsOfOneContainer(t *testing.T) {
	t.Parallel()
	h := withServices(t)
	for stage, script := range map[string]string{"get_sources": "echo sources", "build_script": "echo built"} {
		if got := h.byDriver(stage, script).wait(); got.code != 0 {
			t.Fatalf("%+v", got)
		}
	}
	for container, want := range map[string]string{"build": "built\n", "helper": "sources\n"} {
		if got := h.stage("logs", "4711", "-c", container); got.code != 0 || got.stdout != want {
			t.Errorf("%s: %+v", container, got)
		}
	}
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"-c", "helper", "build_script"}, `has no stage "build_script"; it has get_sources-`},
		{[]string{"-c", "nobody"}, `has no container or service "nobody"; it has build, helper, db = registry.example.com-team-redis = cache, web = probe = cache, svc-0 = plain`},
		{[]string{"-c", "cache"}, `has several services "cache"; name one by its container: db, web`},
		{[]string{"-c", "db", "build_script"}, `container db is a service's: it has a log and no stages, so no "build_script"`},
	} {
		if got := h.stage(append([]string{"logs", "4711"}, test.args...)...); got.code == 0 || !strings.Contains(got.stderr, test.want) {
			t.Errorf("%v: %+v, want %q", test.args, got, test.want)
		}
	}
	const want = "build\tdebian:12\nhelper\thelper:v19.4.0\n" +
		"db\tregistry.example.com/team/redis:7\nregistry.example.com-team-redis\tregistry.example.com/team/redis:7\ncache\tregistry.example.com/team/redis:7\n" +
		"web\tprobe:1\nprobe\tprobe:1\ncache\tprobe:1\nsvc-0\tplain:1\nplain\tplain:1\n:4\n"
	for _, command := range []string{"logs", "shell"} {
		if got := h.stage("__complete", command, "4711", "--container", ""); got.stdout != want {
			t.Errorf("completion of %s offers %q", command, got.stdout)
		}
	}
	if got := h.stage("__complete", "shell", "-c", ""); got.stdout != "build\nhelper\n:4\n" {
		t.Errorf("without a job completion offers %q", got.stdout)
	}
}

func TestShellInAService(t *testing.T) {
	t.Parallel()
	h := withServices(t)
	if got := h.stage("shell", "4711", "-c", "probe", "--", "sh", "-c", "echo $CONTAINER; exit 3"); got.code != 3 || got.stdout != "web\n" {
		t.Errorf("%+v", got)
	}
	if got := h.stage("shell", "4711", "-c", "db", "--", "/no/such/program"); got.code == 0 || !strings.Contains(got.stderr, "container db of the job's Pod ci/") || !strings.Contains(got.stderr, "does not run the command: ") {
		t.Errorf("%+v", got)
	}
	// The shell of a service begins where the service does.
	h.server.OnExec(func(e *faultserver.Exec) { e.Error(`exec: "sh": executable file not found in $PATH`) })
	got := h.stage("shell", "4711", "-c", "plain")
	if got.code == 0 || !strings.Contains(got.stderr, `container svc-0 of the job's Pod ci/`) || !strings.Contains(got.stderr, `has no shell (sh); a program of its image can be named behind "--"`) {
		t.Errorf("%+v", got)
	}
	ran := h.server.Execs()
	if last := ran[len(ran)-1]; last.Container != "svc-0" || strings.Join(last.Args[3:], " ") != "person dumb /tenant-executor/bin" {
		t.Errorf("ran %q in %s", last.Args, last.Container)
	}
}

// A job whose services have ended goes on, and so does what people see of it.
func TestServiceThatHasEndedAndPeople(t *testing.T) {
	t.Parallel()
	h := withServices(t)
	h.server.Log("db", at(0), "dies")
	h.server.Apply(faultserver.Terminated("db", "Error", 4), faultserver.Waiting("web", "ErrImagePull", "no"))
	for _, test := range []struct {
		args         []string
		code         int
		stdout, says string
	}{
		{[]string{"logs", "4711", "-c", "db"}, 0, "dies\n", "Container db has ended with exit code 4 (Error)."},
		{[]string{"logs", "4711", "-c", "web"}, 1, "", "container web of the job's Pod ci/POD has not started: ErrImagePull"},
		{[]string{"shell", "4711", "-c", "db"}, 1, "", "container db of the job's Pod ci/POD has ended with exit code 4"},
		{[]string{"shell", "4711", "-c", "web"}, 1, "", "container web of the job's Pod ci/POD has not started: ErrImagePull"},
	} {
		got := h.stage(test.args...)
		if got.code != test.code || got.stdout != test.stdout || !strings.Contains(h.plain(got.stderr), test.says) {
			t.Errorf("%v: %+v", test.args, got)
		}
	}
	h.server.Apply(faultserver.Running(), faultserver.Terminated("db", "Error", 4))
	if got := h.stage("shell", "4711", "--", "echo", "on"); got.code != 0 || got.stdout != "on\n" {
		t.Errorf("%+v", got)
	}
	h.expectTable(h.stage("ps"), lines(
		"JOB  PROJECT  NAME  PHASE  NODE  AGE  STAGE  WAITS FOR",
		"4711  group/demo  unit  running  n1  Ns  -  -",
		"",
		"NODE  STATE  AGE  CARRIES",
		"n1  ready  -  POD",
	))
}

// A failed job's Pod is kept also where a service has ended, which is often why
// the job has failed.
func TestFailedJobIsKeptWithoutItsService(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.served(nil)
	h.settings["debug.hold"] = "1h"
	h.env["CUSTOM_ENV_TENANT_EXECUTOR_DEBUG_HOLD"] = "15m"
	h.play()
	h.theJob()
	h.server.Apply(faultserver.Terminated("db", "Error", 1))
	if got := h.run("build_script", "exit 3"); got.code != buildCode {
		t.Fatalf("%+v", got)
	}
	if got := h.cleanupAfter("failed"); got.code != 0 || !strings.Contains(got.stderr, "of the failed job 4711 is kept until ") || len(h.server.Pods()) != 1 {
		t.Errorf("%+v, %d Pods", got, len(h.server.Pods()))
	}
}
