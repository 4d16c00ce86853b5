package capacity

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func testMarks() Marks {
	return Marks{
		Node: Label{"node", "whole"}, Job: Label{"component", "job"}, Placeholder: Label{"component", "placeholder"},
		Linger: Label{"hold", "linger"}, Policy: Label{"hold", "policy"}, Expires: "expires", Wanted: "wanted",
	}
}

func noon() time.Time { return time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC) }

// piece is a Pod of a pool and changes of it.
func piece(name, node string, labels map[string]string, changes []func(*corev1.Pod)) corev1.Pod {
	labels["node"] = "whole"
	pod := corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels, CreationTimestamp: metav1.NewTime(noon().Add(-time.Minute)), Annotations: map[string]string{
			"expires": stamp(noon().Add(10 * time.Minute)), "wanted": stamp(noon().Add(time.Minute)),
		}},
		Spec:   corev1.PodSpec{NodeName: node},
		Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
	if node == "" {
		pod.Status.Phase = corev1.PodPending
	}
	for _, change := range changes {
		change(&pod)
	}
	return pod
}

func jobOn(node string, changes ...func(*corev1.Pod)) corev1.Pod {
	return piece("job-"+node, node, map[string]string{"component": "job"}, changes)
}

func slot(name, node string, changes ...func(*corev1.Pod)) corev1.Pod {
	return piece(name, node, map[string]string{"component": "placeholder", "hold": "policy"}, changes)
}

func hold(name, node string, changes ...func(*corev1.Pod)) corev1.Pod {
	return piece(name, node, map[string]string{"component": "placeholder", "hold": "linger"}, changes)
}

func phase(p corev1.PodPhase) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Status.Phase = p }
}

func deleted(pod *corev1.Pod) {
	at := metav1.NewTime(noon())
	pod.DeletionTimestamp = &at
}

func wantedUntil(d time.Duration) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Annotations["wanted"] = stamp(noon().Add(d)) }
}

func expires(d time.Duration) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Annotations["expires"] = stamp(noon().Add(d)) }
}

func older(pod *corev1.Pod) {
	pod.CreationTimestamp = metav1.NewTime(pod.CreationTimestamp.Add(-time.Hour))
}

func TestPlan(t *testing.T) {
	all := map[string]bool{"n1": true, "n2": true, "n3": true}
	for _, test := range []struct {
		name   string
		pods   []corev1.Pod
		ready  map[string]bool
		wanted int
		want   string
		renew  []string
	}{
		{"nothing is there, nothing is wanted", nil, all, 0,
			"jobs: 0, free nodes wanted: 0, held: 0, waiting for a node: 0", nil},
		{"from nothing", nil, nil, 2,
			"jobs: 0, free nodes wanted: 2, held: 0, waiting for a node: 0; create placeholder-warm-0; create placeholder-warm-1", nil},
		{"all is as wanted", []corev1.Pod{slot("placeholder-warm-0", "n1"), slot("placeholder-warm-1", "")}, all, 2,
			"jobs: 0, free nodes wanted: 2, held: 1, waiting for a node: 1", nil},
		{"a gap among the names is filled", []corev1.Pod{slot("placeholder-warm-1", "n1")}, all, 3,
			"jobs: 0, free nodes wanted: 3, held: 1, waiting for a node: 0; create placeholder-warm-0; create placeholder-warm-2", nil},
		{"a job has taken the node: another", []corev1.Pod{jobOn("n1"), slot("placeholder-warm-0", "n1")}, all, 1,
			"jobs: 1, free nodes wanted: 1, held: 0, waiting for a node: 0; remove placeholder-warm-0 (a job has its node); create placeholder-warm-0", nil},
		{"a job that has ended takes no node", []corev1.Pod{jobOn("n1", phase(corev1.PodSucceeded)), slot("placeholder-warm-0", "n1")}, all, 1,
			"jobs: 0, free nodes wanted: 1, held: 1, waiting for a node: 0", nil},
		{"a job that is ending counts no more, but has its node", []corev1.Pod{jobOn("n1", deleted), slot("placeholder-warm-0", "n1")}, all, 1,
			"jobs: 0, free nodes wanted: 1, held: 0, waiting for a node: 0; remove placeholder-warm-0 (a job has its node); create placeholder-warm-0", nil},
		{"a job that waits is no reason to remove", []corev1.Pod{jobOn(""), slot("placeholder-warm-0", "")}, all, 1,
			"jobs: 1, free nodes wanted: 1, held: 0, waiting for a node: 1", nil},
		{"its time is up, by the kubelet", []corev1.Pod{slot("placeholder-warm-0", "n1", phase(corev1.PodFailed))}, all, 1,
			"jobs: 0, free nodes wanted: 1, held: 0, waiting for a node: 0; remove placeholder-warm-0 (its time is up); create placeholder-warm-0", nil},
		{"its time is up, without a node", []corev1.Pod{slot("placeholder-warm-0", "", expires(0))}, all, 0,
			"jobs: 0, free nodes wanted: 0, held: 0, waiting for a node: 0; remove placeholder-warm-0 (its time is up)", nil},
		{"a time that is none", []corev1.Pod{hold("h", "n1", func(p *corev1.Pod) { p.Annotations = nil })}, all, 0,
			"jobs: 0, free nodes wanted: 0, held: 0, waiting for a node: 0; remove h (its time is up)", nil},
		{"being deleted", []corev1.Pod{slot("placeholder-warm-0", "n1", deleted)}, all, 1,
			"jobs: 0, free nodes wanted: 1, held: 0, waiting for a node: 0; remove placeholder-warm-0 (it is being deleted); create placeholder-warm-0", nil},
		{"a node that is not ready holds nothing", []corev1.Pod{slot("placeholder-warm-0", "ill"), slot("placeholder-warm-1", "n1")}, all, 2,
			"jobs: 0, free nodes wanted: 2, held: 1, waiting for a node: 0; remove placeholder-warm-0 (its node is not ready); create placeholder-warm-0", nil},
		{"renewed before others could think it is not wanted", []corev1.Pod{slot("placeholder-warm-0", "n1", wantedUntil(30*time.Second)), slot("placeholder-warm-1", "n2", wantedUntil(31*time.Second))}, all, 2,
			"jobs: 0, free nodes wanted: 2, held: 2, waiting for a node: 0", []string{"placeholder-warm-0"}},
		{"what somebody else wants stays", []corev1.Pod{slot("placeholder-warm-0", "n1"), slot("placeholder-warm-1", "n2", wantedUntil(time.Second))}, all, 0,
			"jobs: 0, free nodes wanted: 0, held: 2, waiting for a node: 0", nil},
		{"what nobody wants goes", []corev1.Pod{slot("placeholder-warm-0", "n1", wantedUntil(0)), slot("placeholder-warm-1", "n2", wantedUntil(-time.Hour))}, all, 0,
			"jobs: 0, free nodes wanted: 0, held: 0, waiting for a node: 0; remove placeholder-warm-0 (it is wanted no more); remove placeholder-warm-1 (it is wanted no more)", nil},
		{"those with a node stay, the oldest first", []corev1.Pod{
			slot("placeholder-warm-0", "", older, wantedUntil(0)), slot("placeholder-warm-1", "n1", wantedUntil(0)), slot("placeholder-warm-2", "n2", older, wantedUntil(0)),
		}, all, 1,
			"jobs: 0, free nodes wanted: 1, held: 1, waiting for a node: 0; remove placeholder-warm-1 (it is wanted no more); remove placeholder-warm-0 (it is wanted no more)", []string{"placeholder-warm-2"}},
		{"a node that lingers is free as well", []corev1.Pod{hold("h", "n1")}, all, 2,
			"jobs: 0, free nodes wanted: 2, held: 1, waiting for a node: 0; create placeholder-warm-0", nil},
		{"but no reason to remove another", []corev1.Pod{hold("h", "n1"), slot("placeholder-warm-0", "n2", wantedUntil(10*time.Second))}, all, 1,
			"jobs: 0, free nodes wanted: 1, held: 2, waiting for a node: 0", []string{"placeholder-warm-0"}},
		{"others' Pods are nobody's business", []corev1.Pod{piece("x", "n1", map[string]string{}, nil)}, all, 0,
			"jobs: 0, free nodes wanted: 0, held: 0, waiting for a node: 0", nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			plan := testMarks().plan(testMarks().review(test.pods, test.ready, noon()), test.wanted, noon())
			if diff := cmp.Diff(test.want, plan.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			var renew []string
			for _, ref := range plan.Renew {
				renew = append(renew, ref.Name)
			}
			if diff := cmp.Diff(test.renew, renew); diff != "" {
				t.Errorf("renewed (-want +got):\n%s", diff)
			}
		})
	}
}
