package main_test

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/socialweb-computer/tenant-executor/kube/faultserver"
)

// withWarm is a harness whose configuration keeps nodes warm.
func withWarm(t *testing.T) *harness {
	t.Helper()
	h := newHarness(t)
	h.settings["warm.linger"] = "3m"
	h.settings["warm.pause_pod_image"] = "pause:1"
	return h
}

// answerSetup plays the first command in the job's Pod: it says what machine the
// node is, takes what the driver sends, and says that it is ready.
func (h *harness) answerSetup() {
	h.server.OnExec(func(e *faultserver.Exec) {
		_, _ = io.WriteString(e.Stdout, "x86_64\n")
		_, _ = io.Copy(io.Discard, e.Stdin)
		_, _ = io.WriteString(e.Stdout, "ready\n")
		e.Exit(0)
	})
}

// readied makes the job's Pod.
func (h *harness) readied() {
	h.t.Helper()
	if got := h.stage("prepare"); got.code != 0 {
		h.t.Fatalf("%+v", got)
	}
}

// lingering is a placeholder that holds the node for the next job.
func (h *harness) lingering() *corev1.Pod {
	return h.server.AddPod(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "placeholder-hold-x", Namespace: namespace,
			Labels:      map[string]string{domain + "node": "whole", domain + "component": "placeholder", domain + "hold": "linger"},
			Annotations: map[string]string{domain + "expires": "2099-01-01T00:00:00Z"},
		},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "pause"}}},
	}, faultserver.Scheduled(node), faultserver.Running())
}

// verbs are the requests for Pods in their order, without watches and reads.
func (h *harness) verbs() string {
	var all []string
	for _, r := range h.server.Requests() {
		if r.Resource == "pods" && slices.Contains([]string{"create", "delete", "list"}, r.Verb) {
			all = append(all, r.Verb)
		}
	}
	return strings.Join(all, " ")
}

// The placeholder goes before the job's Pod comes: the cluster counts Pods, and
// would boot a node for the second one.
func TestPrepareTakesANodeThatLingers(t *testing.T) {
	t.Parallel()
	h := withWarm(t)
	h.answerSetup()
	held := h.lingering()
	if got := h.stage("prepare"); got.code != 0 {
		t.Fatalf("%+v", got)
	}
	if got, want := h.verbs(), "list list delete create list"; got != want {
		t.Errorf("requests %q, want %q", got, want)
	}
	if all := h.deletions(); len(all) != 1 || *all[0].GracePeriodSeconds != 0 || *all[0].Preconditions.UID != held.UID {
		t.Errorf("deleted %+v", all)
	}
}

// Without [warm] nothing is asked for it.
func TestPrepareWithoutWarmAsksNothing(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.answerSetup()
	h.lingering()
	if got := h.stage("prepare"); got.code != 0 {
		t.Fatalf("%+v", got)
	}
	if got := h.verbs(); got != "list create" {
		t.Errorf("requests %q", got)
	}
}

// A placeholder beside the job's Pod goes, whoever made it.
func TestPrepareReleasesThePlaceholderBesideTheJob(t *testing.T) {
	t.Parallel()
	h := withWarm(t)
	h.answerSetup()
	beside := h.lingering()
	// Not to be taken before: it has no node yet, and gets the job's.
	h.server.Apply(faultserver.Change(func(p *corev1.Pod) { p.Labels[domain+"hold"] = "policy" }))
	if got := h.stage("prepare"); got.code != 0 {
		t.Fatalf("%+v", got)
	}
	if got, want := h.verbs(), "list list create list delete"; got != want {
		t.Errorf("requests %q, want %q", got, want)
	}
	for _, pod := range h.server.Pods() {
		if pod.UID == beside.UID {
			t.Error("the placeholder is still there")
		}
	}
}

// What warm nodes need may fail: the job runs.
func TestPrepareGoesOnWithoutWarmNodes(t *testing.T) {
	t.Parallel()
	h := withWarm(t)
	h.answerSetup()
	h.server.Fail(-1, "list", "pods", faultserver.AnswerStatus(403, metav1.StatusReasonForbidden, "no"))
	got := h.stage("prepare")
	if got.code != 0 || !strings.Contains(got.stdout, "A held node could not be taken for this job") {
		t.Errorf("%+v", got)
	}
}

// The node is held when the Pod of the job has ended, not before.
func TestCleanupHoldsTheNode(t *testing.T) {
	t.Parallel()
	h := withWarm(t)
	h.answerSetup()
	h.readied()
	h.server.KeepTerminating()
	watches := h.server.Requests().Count("watch", "pods")
	cleanup := h.start("cleanup")
	h.server.Wait(t, "the Pod to be watched", func() bool {
		requests := h.server.Requests()
		return requests.Count("delete", "pods") == 1 && requests.Count("watch", "pods") > watches
	})
	if n := h.server.Requests().Count("create", "pods"); n != 1 {
		t.Errorf("%d Pods were made while the job's was there", n)
	}
	h.server.Apply(faultserver.Change(func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }))
	h.expect(cleanup.wait(), 0, "", "")
	var held []corev1.Pod
	for _, pod := range h.server.Pods() {
		if pod.Labels[domain+"component"] == "placeholder" {
			held = append(held, pod)
		}
	}
	if len(held) != 1 || held[0].Spec.NodeName != node || *held[0].Spec.ActiveDeadlineSeconds != 180 || held[0].Spec.Containers[0].Image != "pause:1" {
		t.Errorf("held by %+v", held)
	}
	// Called again, it has no job any more, and holds nothing anew.
	h.expect(h.stage("cleanup"), 0, "", "")
	if n := h.server.Requests().Count("create", "pods"); n > 2 {
		t.Errorf("%d Pods were made", n)
	}
}

// A job without a node, or on a lost one, leaves nothing to hold.
func TestCleanupHoldsNoOtherNode(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*harness){
		"no node": func(h *harness) {
			h.server.Apply(faultserver.Change(func(p *corev1.Pod) { p.Spec.NodeName = "" }))
		},
		"lost": func(h *harness) { h.server.SetNode(node, false) },
		"gone": func(h *harness) { h.server.RemoveNode(node) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := withWarm(t)
			h.answerSetup()
			h.readied()
			change(h)
			h.expect(h.stage("cleanup"), 0, "", "")
			if n := len(h.server.Pods()); n != 0 {
				t.Errorf("%d Pods are left", n)
			}
		})
	}
}

// A Pod that does not end costs cleanup a few seconds, and the hold.
func TestCleanupDoesNotWaitForEver(t *testing.T) {
	t.Parallel()
	h := withWarm(t)
	h.answerSetup()
	h.readied()
	h.server.KeepTerminating()
	h.expect(h.stage("cleanup"), 0, "", "WARNING: Node n1 is not held for the next job: the Pod of this one has not ended within 5 s\n")
	if n := h.server.Requests().Count("create", "pods"); n != 1 {
		t.Errorf("%d Pods were made", n)
	}
}

// policies is a configuration file with policies; two texts of one length are
// one file.
func (h *harness) policies(text string) string {
	h.settings["warm.pause_pod_image"] = "pause:1"
	return h.write(fmt.Sprintf("warm-%d.toml", len(text)), h.config()+text)
}

func TestWarmShows(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.expect(h.stage("warm", "--once", "--dry-run", "--config", h.policies("[[warm.policy]]\nidle_count = 2\n")), 0, "",
		"jobs: 0, free nodes wanted: 2, held: 0, waiting for a node: 0; create placeholder-warm-0; create placeholder-warm-1\n")
	if n := len(h.server.Pods()); n != 0 {
		t.Errorf("%d Pods were made", n)
	}
}

func TestWarmOnce(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	got := h.stage("warm", "--once", "--config", h.policies("max_pause_pods = 1\n[[warm.policy]]\nidle_count = 2\n"))
	if got.code != 0 || len(h.server.Pods()) != 1 {
		t.Errorf("%+v, %d Pods", got, len(h.server.Pods()))
	}
}

// warm goes on when the cluster goes away and comes back, makes placeholders
// anew that somebody deletes, says each thing once, ends on TERM and leaves the
// placeholders where they are.
func TestWarmGoesOn(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	warm := h.start("warm", "--config", h.policies("[[warm.policy]]\nidle_count = 1\n"))
	warm.stderr.waitFor(t, "held: 1")
	h.server.Down()
	h.server.Up(t)
	h.server.Apply(faultserver.Removed())
	h.server.Wait(t, "another placeholder", func() bool { return len(h.server.Pods()) == 1 })
	warm.terminate()
	got := warm.wait()
	if got.code != 0 || !strings.HasSuffix(got.stderr, "whoever keeps nodes next goes on with them.\n") {
		t.Errorf("%+v", got)
	}
	if n := len(h.server.Pods()); n != 1 {
		t.Errorf("%d placeholders are left", n)
	}
}

func TestWarmRefuses(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"warm", "--config", h.policies("")}, "no [[warm.policy]]"},
		{[]string{"warm", "--dry-run", "--config", h.policies("[[warm.policy]]\nidle_count = 1\n")}, "--dry-run goes with --once"},
		{[]string{"warm", "now"}, "takes no arguments"},
	} {
		if got := h.stage(test.args...); got.code != systemCode || !strings.Contains(got.stderr, test.want) {
			t.Errorf("%v: %+v", test.args, got)
		}
	}
}
