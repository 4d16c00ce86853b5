package main_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/socialweb-computer/tenant-executor/kube/faultserver"
)

// Labels and annotations of the driver's Pods.
const (
	domain       = "tenant-executor.socialweb.computer/"
	ownerKey     = domain + "owner"
	deadStart    = 1 // no process of today has started with the kernel
	impossible   = 1 << 30
	firstRunner  = "runner-ab"
	secondRunner = "other-run"
)

// leaver is a harness whose prepare ends early, once it has looked for
// leftovers and made its Pod: no more is needed here.
func leaver(t *testing.T) *harness {
	t.Helper()
	h := newHarness(t)
	h.server.OnExec(func(e *faultserver.Exec) { e.Exit(1) })
	return h
}

// prepared is the Pod of a prepare.
func (h *harness) prepared() corev1.Pod {
	h.t.Helper()
	if got := h.stage("prepare"); got.code != buildCode || !strings.Contains(got.stdout, "readying the helper container") {
		h.t.Fatalf("prepare ended with %d:\n%s%s", got.code, got.stdout, got.stderr)
	}
	all := h.server.Pods()
	if len(all) == 0 {
		h.t.Fatal("there is no Pod")
	}
	return all[len(all)-1]
}

// other is the Pod of another job of a runner, like the given one.
func (h *harness) other(like corev1.Pod, name, runner string, change func(*corev1.Pod)) {
	h.t.Helper()
	p := like.DeepCopy()
	p.Name = name
	p.Labels[domain+"runner"] = runner
	p.Labels[domain+"job"] = fmt.Sprintf("%016x", len(name))
	p.Labels[domain+"job-id"] = "99"
	p.DeletionTimestamp = nil
	change(p)
	h.server.AddPod(p)
}

// owner is what the Pod says of its owner.
func owner(t *testing.T, p corev1.Pod) map[string]any {
	t.Helper()
	var o map[string]any
	if err := json.Unmarshal([]byte(p.Annotations[ownerKey]), &o); err != nil {
		t.Fatalf("%v in %q", err, p.Annotations[ownerKey])
	}
	return o
}

// owned changes the owner of a Pod.
func owned(t *testing.T, key string, value any) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		o := owner(t, *p)
		o[key] = value
		text, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		p.Annotations[ownerKey] = string(text)
	}
}

func expired(p *corev1.Pod) { p.Annotations[domain+"expires"] = "2020-01-01T00:00:00Z" }

// nextJob has the runner go on with another job: it takes the folder of the first
// away and makes a new one.
func (h *harness) nextJob(id int) {
	h.t.Helper()
	if err := os.Remove(h.env["JOB_RESPONSE_FILE"]); err != nil {
		h.t.Fatal(err)
	}
	h.job["id"] = id
	h.response = fmt.Sprintf("response-%d.json", id)
	h.env["JOB_RESPONSE_FILE"] = filepath.Join(h.folder, h.response)
}

func (h *harness) names() []string {
	var names []string
	for _, p := range h.server.Pods() {
		names = append(names, p.Name)
	}
	return names
}

func TestPodNamesItsRunner(t *testing.T) {
	t.Parallel()
	h := leaver(t)
	o := owner(t, h.prepared())
	if o["pid"] != float64(os.Getpid()) || o["attempt"] != h.env["JOB_RESPONSE_FILE"] || o["host"] == "" {
		t.Errorf("the owner is %v; the runner is process %d", o, os.Getpid())
	}
	// Behind a wrapper it is still the runner.
	h.job["id"] = 4712
	h.handOver()
	wrapper := exec.Command("sh", "-c", os.Getenv(builtPath)+" prepare; exit $?")
	for name, value := range h.env {
		wrapper.Env = append(wrapper.Env, name+"="+value)
	}
	if out, err := wrapper.Output(); wrapper.ProcessState.ExitCode() != buildCode {
		t.Fatalf("%v:\n%s", err, out)
	}
	all := h.server.Pods()
	if o := owner(t, all[len(all)-1]); o["pid"] != float64(os.Getpid()) {
		t.Errorf("behind a wrapper the owner is %v; the runner is process %d", o, os.Getpid())
	}
}

// By hand, and without a state folder, a Pod has no owner.
func TestPodWithoutARunner(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*harness) []string{
		"by hand": func(h *harness) []string {
			job := h.env["JOB_RESPONSE_FILE"]
			delete(h.env, "JOB_RESPONSE_FILE")
			return []string{"prepare", "--job", job}
		},
		"no state folder": func(h *harness) []string {
			h.settings["state.dir"] = filepath.Join(h.write("file", ""), "below")
			return []string{"prepare"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := leaver(t)
			args := change(h)
			if got := h.stage(args...); got.code != buildCode || got.stderr != "" {
				t.Errorf("exit code %d, stderr %q", got.code, got.stderr)
			}
			if text, set := h.server.Pods()[0].Annotations[ownerKey]; set {
				t.Errorf("the owner is %s", text)
			}
		})
	}
}

// A prepare removes what is left of its own runner's jobs, and of jobs whose
// runner is proven dead; nothing else.
func TestPrepareSweeps(t *testing.T) {
	t.Parallel()
	h := leaver(t)
	like := h.prepared()
	keep := func(*corev1.Pod) {}
	dead := owned(t, "start", deadStart)
	h.other(like, "lives", firstRunner, keep) // between two stages: its runner is this test
	h.other(like, "of-another-host", firstRunner, owned(t, "host", "elsewhere"))
	h.other(like, "dead-elsewhere", firstRunner, func(p *corev1.Pod) { dead(p); owned(t, "host", "elsewhere")(p) })
	h.other(like, "without-owner", firstRunner, func(p *corev1.Pod) { delete(p.Annotations, ownerKey) })
	h.other(like, "lives-and-is-late", firstRunner, expired)
	h.other(like, "another-runners", secondRunner, keep)
	h.other(like, "another-runners-expired", secondRunner, func(p *corev1.Pod) { expired(p); owned(t, "host", "elsewhere")(p) })
	h.other(like, "dead-by-another-token", secondRunner, dead)
	h.other(like, "over-by-another-token", secondRunner, owned(t, "attempt", filepath.Join(h.folder, "gone", "response.json")))
	h.other(like, "dead", firstRunner, dead)
	h.other(like, "no-such-process", firstRunner, owned(t, "pid", impossible))
	h.other(like, "attempt-is-over", firstRunner, owned(t, "attempt", filepath.Join(h.folder, "gone", "response.json")))
	h.other(like, "expired-elsewhere", firstRunner, func(p *corev1.Pod) { expired(p); owned(t, "host", "elsewhere")(p) })
	h.job["id"] = 4712
	made := h.prepared()
	// Five are removed at once; the rest is for the next.
	h.job["id"] = 4713
	next := h.prepared()
	want := []string{like.Name, "lives", "of-another-host", "dead-elsewhere", "without-owner", "lives-and-is-late", "another-runners", "another-runners-expired", made.Name, next.Name}
	if diff := cmp.Diff(want, h.names()); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
	for _, o := range h.deletions() {
		if *o.GracePeriodSeconds != 1 || o.Preconditions == nil || o.Preconditions.UID == nil {
			t.Errorf("deleted with %+v", o)
		}
	}
}

// A new attempt takes the place of those before it.
func TestPrepareRemovesEarlierAttempts(t *testing.T) {
	t.Parallel()
	h := leaver(t)
	first := h.prepared()
	second := h.prepared()
	if first.Name == second.Name || !slices.Equal(h.names(), []string{second.Name}) {
		t.Errorf("after %s and %s there are %v", first.Name, second.Name, h.names())
	}
}

// The sweep costs one list where nothing is left, and has a bound where much
// is. It never fails prepare, nor holds it up.
func TestSweepIsCheap(t *testing.T) {
	t.Parallel()
	h := leaver(t)
	like := h.prepared()
	before := h.server.Requests()
	if n := before.Count("list", "pods"); n != 1 {
		t.Errorf("%d lists:\n%s", n, before)
	}
	for i := range 12 {
		h.other(like, fmt.Sprint("left-", i), firstRunner, owned(t, "pid", impossible))
	}
	h.job["id"] = 4712
	h.prepared()
	if n := h.server.Requests().Count("delete", "pods"); n != 5 {
		t.Errorf("%d deletions", n)
	}
}

func TestSweepNeverFailsPrepare(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]faultserver.Fault{
		"no answer":   faultserver.Silence(),
		"not allowed": faultserver.AnswerStatus(http.StatusForbidden, metav1.StatusReasonForbidden, "no lists"),
		"broken":      faultserver.Answer(http.StatusInternalServerError, "x"),
	} {
		for _, verb := range []string{"list", "delete"} {
			t.Run(name+" "+verb, func(t *testing.T) {
				t.Parallel()
				h := leaver(t)
				like := h.prepared()
				h.other(like, "left", firstRunner, owned(t, "pid", impossible))
				h.server.Fail(-1, verb, "pods", fault)
				h.job["id"] = 4712
				h.prepared()
				if n := len(h.server.Pods()); n != 3 {
					t.Errorf("%d Pods", n)
				}
			})
		}
	}
}

// On a node that is gone nobody ends a Pod.
func TestSweepRemovesWhatHangsOnALostNode(t *testing.T) {
	t.Parallel()
	h := leaver(t)
	h.server.KeepTerminating()
	like := h.prepared()
	hangs := func(p *corev1.Pod) {
		at := metav1.NewTime(time.Now().Add(-time.Minute))
		p.DeletionTimestamp = &at
	}
	h.other(like, "hangs", firstRunner, func(p *corev1.Pod) { hangs(p); p.Spec.NodeName = "gone" })
	h.other(like, "ends-slowly", firstRunner, hangs)
	h.job["id"] = 4712
	made := h.prepared()
	if diff := cmp.Diff([]string{like.Name, "ends-slowly", made.Name}, h.names()); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
	if all := h.deletions(); len(all) != 1 || *all[0].GracePeriodSeconds != 0 || all[0].Preconditions.UID == nil {
		t.Errorf("deleted with %+v", all)
	}
}

// ending is a Pod whose grace ends in a while.
func ending(in time.Duration) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		at := metav1.NewTime(time.Now().Add(in))
		p.DeletionTimestamp = &at
	}
}

// Where the Pod of a job is just ending, of whichever runner, and no other node is
// free, prepare lets it end first: its own Pod beside it would have a node
// booted.
func TestPrepareWaitsForRoom(t *testing.T) {
	t.Parallel()
	h := leaver(t)
	h.server.KeepTerminating()
	like := h.prepared()
	h.other(like, "ending", secondRunner, ending(time.Minute))
	h.job["id"] = 4712
	prepare := h.start("prepare")
	h.server.Wait(t, "prepare waits", func() bool { return h.server.Requests().Count("watch", "pods") == 2 })
	if n := h.server.Requests().Count("create", "pods"); n != 1 {
		t.Errorf("%d Pods were made while one was ending", n)
	}
	h.server.Apply(faultserver.Removed())
	prepare.wait()
	if n := h.server.Requests().Count("create", "pods"); n != 2 {
		t.Errorf("%d Pods were made", n)
	}
	if n := h.server.Requests().Count("list", "pods") + h.server.Requests().Count("list", "nodes"); n != 3 {
		t.Errorf("waiting took %d lists:\n%s", n, h.server.Requests())
	}
}

// It does not wait where a node is free, for a Pod that should have ended long
// ago, nor for long for one that does not end.
func TestPrepareDoesNotWaitForRoomForEver(t *testing.T) {
	t.Parallel()
	h := leaver(t)
	h.server.KeepTerminating()
	like := h.prepared()
	h.other(like, "overdue", firstRunner, ending(-time.Minute))
	h.job["id"] = 4712
	h.prepared()
	if n := h.server.Requests().Count("list", "nodes"); n != 0 {
		t.Errorf("the nodes were listed %d times for a Pod that is overdue", n)
	}
	h.other(like, "ends-where-it-can", firstRunner, ending(time.Minute))
	h.server.SetNode("free", true)
	h.job["id"] = 4713
	before := h.server.Requests().Count("watch", "pods")
	h.prepared()
	if n := h.server.Requests().Count("watch", "pods") - before; n != 1 {
		t.Errorf("%d Pods were watched although a node is free", n)
	}
	h.server.RemoveNode("free")
	h.job["id"] = 4714
	h.prepared()
}

// A runner that is killed leaves a Pod, and the next job of the same runner,
// started anew, removes it.
func TestRunnerKilled(t *testing.T) {
	t.Parallel()
	h := leaver(t)
	h.handOver()
	// The shell plays the runner: it does not have the job itself.
	runner := exec.Command("sh", "-c", `env JOB_RESPONSE_FILE="$ATTEMPT" "$0" prepare; exec sleep 1000`, os.Getenv(builtPath))
	for name, value := range h.env {
		if name == "JOB_RESPONSE_FILE" {
			name = "ATTEMPT"
		}
		runner.Env = append(runner.Env, name+"="+value)
	}
	runner.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := runner.Start(); err != nil {
		t.Fatal(err)
	}
	h.server.Wait(t, "the Pod is there", func() bool { return h.server.Requests().Count("create", "pods/exec") == 1 })
	h.job["id"] = 4712
	second := h.prepared()
	if n := len(h.server.Pods()); n != 2 {
		t.Errorf("while the runner lives %d Pods are there", n)
	}
	if err := syscall.Kill(-runner.Process.Pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = runner.Wait() // it was killed
	h.job["id"] = 4713
	third := h.prepared()
	if got := h.names(); !slices.Equal(got, []string{second.Name, third.Name}) {
		t.Errorf("left: %v", got)
	}
}
