package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/socialweb-computer/tenant-executor/kube/faultserver"
)

// byHand has stages run as a person runs them.
func (h *harness) byHand() {
	h.t.Helper()
	h.handOver()
	delete(h.env, "JOB_RESPONSE_FILE")
	delete(h.env, "BUILD_EXIT_CODE_FILE")
}

// madeAnew deletes the Pod and makes it anew by its own definition, as somebody
// may do by kubectl. Its volume is empty then.
func (h *harness) madeAnew(p *programs) {
	h.t.Helper()
	old := h.server.Pods()[0]
	h.server.Apply(faultserver.Removed())
	if err := os.RemoveAll(p.volume(old.Name)); err != nil {
		h.t.Fatal(err)
	}
	old.UID, old.DeletionTimestamp, old.Status = "", nil, corev1.PodStatus{}
	h.server.AddPod(&old, faultserver.Scheduled(node), faultserver.Running())
}

// A stage belongs to the very Pod that prepare has readied. Another of its name
// has nothing of the job: the Pod is lost, and nobody's image is at fault.
func TestPodMadeAnewBetweenTwoStages(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(*harness){
		"by the runner":            func(*harness) {},
		"by the runner, by a name": func(h *harness) { h.env["TENANT_EXECUTOR_POD"] = h.podName("0a1b2c") },
		"by hand":                  (*harness).byHand,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t)
			p := h.play()
			start(h)
			args := func(verb ...string) []string { return append(verb, "--job", filepath.Join(h.folder, "response.json")) }
			if got := h.stage(args("prepare")...); got.code != 0 {
				t.Fatalf("prepare ended with %d:\n%s", got.code, got.stdout)
			}
			h.madeAnew(p)
			code := systemCode
			script := h.write("script", "echo this is not the job's Pod\n")
			h.expect(h.stage(args("run", script, "get_sources")...), code,
				lines("ERROR: the job's Pod ci/POD was deleted, and another Pod has its name now", retry), "")
		})
	}
}

// A prepare that was killed has left its Pod, and the next one of the same
// attempt finds it ending: it takes another name, and the stages follow it.
func TestPrepareAgainWhileItsPodEnds(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(*harness){"by the runner": func(*harness) {}, "by hand": (*harness).byHand} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t)
			h.play()
			h.server.KeepTerminating()
			h.server.SetNode("free", true)
			h.env["TENANT_EXECUTOR_POD"] = h.podName("0a1b2c")
			start(h)
			args := func(verb ...string) []string { return append(verb, "--job", filepath.Join(h.folder, "response.json")) }
			for i, suffix := range []string{"", "-2", "-3"} {
				got := h.stage(args("prepare")...)
				if want := "Pod " + h.env["TENANT_EXECUTOR_POD"] + suffix + " runs on node"; got.code != 0 || !strings.Contains(got.stdout, want) {
					t.Fatalf("prepare %d ended with %d:\n%s", i+1, got.code, got.stdout)
				}
				script := h.write("script", "echo here\n")
				if got := h.stage(args("run", script, "build_script")...); got.code != 0 || got.stdout != "here\n" {
					t.Errorf("the stage ended with %d:\n%s", got.code, got.stdout)
				}
				last := h.server.Execs()[len(h.server.Execs())-1]
				if want := h.env["TENANT_EXECUTOR_POD"] + suffix; last.Pod != want {
					t.Errorf("the stage ran in %s, want %s", last.Pod, want)
				}
			}
		})
	}
}

// otherRunner is another runner's process, which lives and has the same job in
// hand. End kills it.
func (h *harness) otherRunner() (end func()) {
	h.t.Helper()
	h.handOver()
	h.write("other.json", string(mustRead(h.t, filepath.Join(h.folder, h.response))))
	// The shell plays the runner: it does not have the job itself.
	runner := exec.Command("sh", "-c", `env JOB_RESPONSE_FILE="$ATTEMPT" "$0" prepare; exec sleep 1000`, os.Getenv(builtPath))
	for name, value := range h.env {
		switch name {
		case "JOB_RESPONSE_FILE":
			name, value = "ATTEMPT", filepath.Join(h.folder, "other.json")
		case "BUILD_EXIT_CODE_FILE":
			value = filepath.Join(h.t.TempDir(), "build_exit_code")
		}
		runner.Env = append(runner.Env, name+"="+value)
	}
	runner.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := runner.Start(); err != nil {
		h.t.Fatal(err)
	}
	end = func() {
		_ = syscall.Kill(-runner.Process.Pid, syscall.SIGKILL)
		_ = runner.Wait() // it was killed
	}
	h.t.Cleanup(end)
	h.server.Wait(h.t, "the other's Pod is there", func() bool { return h.server.Requests().Count("create", "pods/exec") == 1 })
	return end
}

func mustRead(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// Two runners' processes have the same job in hand: neither prepare nor cleanup
// of the one touches the other's Pod, until that process is dead.
func TestTwoRunnersWithTheSameJob(t *testing.T) {
	t.Parallel()
	h := leaver(t)
	end := h.otherRunner()
	first := h.names()[0]
	second := h.prepared()
	if got := h.names(); !slices.Equal(got, []string{first, second.Name}) {
		t.Errorf("after the second prepare there are %v", got)
	}
	third := h.prepared() // its own earlier attempt goes
	if got := h.names(); !slices.Equal(got, []string{first, third.Name}) {
		t.Errorf("after the third prepare there are %v", got)
	}
	if got := h.stage("cleanup"); got.code != 0 || !slices.Equal(h.names(), []string{first}) {
		t.Errorf("after cleanup, which ended with %d, there are %v", got.code, h.names())
	}
	end()
	fourth := h.prepared()
	if got := h.names(); !slices.Equal(got, []string{fourth.Name}) {
		t.Errorf("with the other dead there are %v", got)
	}
}

// An undone cleanup is that of one attempt: the Pod of another runner that has
// the same job in hand stays.
func TestUndoneCleanupBesideAnotherRunner(t *testing.T) {
	t.Parallel()
	h := leaver(t)
	h.settings["cleanup.timeout"] = "1s"
	h.prepared()
	h.server.Down()
	h.stage("cleanup")
	h.server.Up(t)
	if n := len(h.undone()); n != 1 {
		t.Fatalf("%d cleanups are remembered", n)
	}
	like := h.server.Pods()[0]
	other := like.DeepCopy()
	other.Name = "of-another-runner"
	owned(t, "host", "elsewhere")(other)
	h.server.AddPod(other)
	h.nextJob(4712)
	made := h.prepared()
	if got := h.names(); !slices.Equal(got, []string{"of-another-runner", made.Name}) {
		t.Errorf("left: %v", got)
	}
}

// By hand, cleanup ends the prepare of its job that still waits: the Pod is not
// made anew.
func TestCleanupEndsAPrepareByHand(t *testing.T) {
	t.Parallel()
	for name, steps := range map[string][]faultserver.Step{
		"without a node":  {faultserver.Unscheduled("0/1 nodes are available")},
		"while it starts": {faultserver.Scheduled(node)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t)
			h.play()
			h.server.OnCreate(steps...)
			h.byHand()
			prepare := h.start("prepare", "--job", filepath.Join(h.folder, "response.json"))
			h.server.Wait(t, "prepare waits", func() bool { return h.server.Requests().Count("watch", "pods") == 1 })
			h.expect(h.stage("cleanup", "--job", filepath.Join(h.folder, "response.json")), 0, "", "")
			if got := prepare.wait(); got.code != systemCode || !strings.Contains(got.stdout, "ERROR: cleanup was called for this job while prepare waited") {
				t.Errorf("prepare ended with %d:\n%s", got.code, got.stdout)
			}
			if got := h.names(); len(got) != 0 {
				t.Errorf("left: %v", got)
			}
		})
	}
}

// A Pod that is made anew comes once the old one is gone: beside it, it would
// have a node booted.
func TestPodMadeAnewWaitsForItsNode(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.play()
	h.server.KeepTerminating()
	h.lists = map[string][]string{"kubernetes.pull_policy": {"always", "if-not-present"}}
	h.server.OnCreate(faultserver.Scheduled(node), waits("build", "ErrImagePull", "debian:12: not found", corev1.PullIfNotPresent))
	prepare := h.start("prepare")
	h.server.Wait(t, "its end is waited for", func() bool { return h.server.Requests().Count("watch", "pods") == 1 })
	if n := h.server.Requests().Count("create", "pods"); n != 1 {
		t.Errorf("%d Pods were made while the first was ending", n)
	}
	h.server.Apply(faultserver.Removed())
	if got := prepare.wait(); got.code != 0 {
		t.Errorf("prepare ended with %d:\n%s", got.code, got.stdout)
	}
}

// Placeholders that have ended go although nothing uses them any more.
func TestEndedPlaceholdersGo(t *testing.T) {
	t.Parallel()
	h := leaver(t)
	h.secrets()
	like := h.prepared()
	for _, verb := range []string{"prepare", "reap"} {
		for _, phase := range []corev1.PodPhase{corev1.PodFailed, corev1.PodRunning} {
			p := like.DeepCopy()
			p.Name = "placeholder-" + verb + "-" + strings.ToLower(string(phase))
			p.Labels = map[string]string{domain + "component": "placeholder", domain + "node": "whole"}
			p.Status.Phase = phase
			h.server.AddPod(p)
		}
		h.stage(verb)
	}
	got := slices.DeleteFunc(h.names(), func(name string) bool { return !strings.HasPrefix(name, "placeholder") })
	if !slices.Equal(got, []string{"placeholder-prepare-running", "placeholder-reap-running"}) {
		t.Errorf("left: %v", got)
	}
}

// Who keeps a Pod that was deleted is named.
func TestFinalizersAreNamed(t *testing.T) {
	t.Parallel()
	h := leaver(t)
	h.secrets()
	like := h.prepared()
	h.other(like, "kept", firstRunner, func(p *corev1.Pod) {
		ending(-time.Minute)(p)
		zero := int64(0)
		p.Finalizers, p.DeletionGracePeriodSeconds = []string{"example.com/keep"}, &zero
	})
	if found := h.reaped(); len(found) != 1 || found["kept"]["reason"] != "finalizer" || found["kept"]["removed"] != false {
		t.Errorf("reap found %v", found)
	}
	if got := h.stage("reap"); got.code != 0 || !strings.Contains(got.stdout, "stays: example.com/keep") {
		t.Errorf("reap ended with %d:\n%s", got.code, got.stdout)
	}
	if got := h.stage("ps"); !strings.Contains(got.stdout, "its finalizers: example.com/keep") {
		t.Errorf("ps shows\n%s", got.stdout)
	}
}

// What another host has stamped is judged by the cluster's clock: this host's own
// may be hours ahead.
func TestThisHostsClockIsAhead(t *testing.T) {
	t.Parallel()
	h := leaver(t)
	h.settings["run.node_lost"] = "10m"
	const ahead = 3 * time.Hour
	h.server.SetAhead(-ahead)
	there := time.Now().Add(-ahead)
	like := h.prepared()
	stamped, err := time.Parse(time.RFC3339, like.Annotations[domain+"expires"])
	if err != nil || stamped.Before(there.Add(time.Hour)) || stamped.After(there.Add(ahead)) {
		t.Errorf("the Pod expires at %s, %v; for the cluster it is %s", stamped, err, there)
	}
	expires := func(at time.Time) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			owned(t, "host", "elsewhere")(p)
			p.Annotations[domain+"expires"] = at.UTC().Format(time.RFC3339)
		}
	}
	h.other(like, "has-time", firstRunner, expires(there.Add(time.Hour)))
	h.other(like, "is-late", firstRunner, expires(there.Add(-time.Minute)))
	h.server.SetNodeSince(node, false, there)
	h.job["id"] = 4712
	made := h.prepared()
	if got := h.names(); !slices.Equal(got, []string{like.Name, "has-time", made.Name}) {
		t.Errorf("left: %v", got)
	}
	h.server.SetNodeSince(node, false, there.Add(-time.Hour))
	h.stage("cleanup")
	for i, o := range h.deletions() {
		if want := []int64{1, 0}[i]; *o.GracePeriodSeconds != want {
			t.Errorf("deletion %d has the grace %d, want %d", i+1, *o.GracePeriodSeconds, want)
		}
	}
}
