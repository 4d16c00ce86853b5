package pods

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

func TestVerdict(t *testing.T) {
	t.Parallel()
	const preemption = " preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling."
	for _, test := range []struct {
		name, message string
		want          Verdict
		unfit         string
	}{
		{"no condition yet", "", Verdict{}, ""},
		{"no nodes", "no nodes available to schedule pods", Verdict{}, ""},
		{"no nodes, in figures", "0/0 nodes are available", Verdict{}, ""},
		{"all taken", "0/2 nodes are available: 2 node(s) didn't match pod anti-affinity rules." + preemption,
			Verdict{Obstacles: []Obstacle{{Taken, 2, "node(s) didn't match pod anti-affinity rules"}}}, ""},
		{"taken by the rule of the other", "0/1 nodes are available: 1 node(s) didn't satisfy existing pods anti-affinity rules.",
			Verdict{Obstacles: []Obstacle{{Taken, 1, "node(s) didn't satisfy existing pods anti-affinity rules"}}}, ""},
		{"three that are not meant", "0/3 nodes are available: 3 node(s) didn't match Pod's node affinity/selector." + preemption,
			Verdict{Obstacles: []Obstacle{{Unsuitable, 3, "node(s) didn't match Pod's node affinity/selector"}}},
			"3 node(s) didn't match Pod's node affinity/selector"},
		{"of all kinds", "0/9 nodes are available: 1 Insufficient cpu, 2 Insufficient memory, 1 node(s) didn't match pod anti-affinity rules, 2 node(s) had untolerated taint(s), 3 node(s) didn't match Pod's node affinity/selector." + preemption,
			Verdict{Obstacles: []Obstacle{
				{Crowded, 1, "Insufficient cpu"}, {Crowded, 2, "Insufficient memory"}, {Taken, 1, "node(s) didn't match pod anti-affinity rules"},
				{Tainted, 2, "node(s) had untolerated taint(s)"}, {Unsuitable, 3, "node(s) didn't match Pod's node affinity/selector"},
			}}, "1 Insufficient cpu, 2 Insufficient memory, 2 node(s) had untolerated taint(s), 3 node(s) didn't match Pod's node affinity/selector"},
		{"a taint with its words, as before Kubernetes 1.36", "0/1 nodes are available: 1 node(s) had untolerated taint {kind: a, b: }. preemption: x",
			Verdict{Obstacles: []Obstacle{{Tainted, 1, "node(s) had untolerated taint {kind: a, b: }"}}}, "1 node(s) had untolerated taint {kind: a, b: }"},
		{"something of the Pod's own", `0/1 nodes are available: persistentvolumeclaim "x" not found. preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling.`,
			Verdict{Words: `persistentvolumeclaim "x" not found`}, ""},
		{"another scheduler's words", "pod group is not ready", Verdict{Words: "pod group is not ready"}, ""},
		{"figures without reasons", "0/1 nodes are available", Verdict{}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			pod := pending(test.message).Pod
			if test.message == "" {
				pod.Status.Conditions = nil
			}
			got := StateOf(pod).Verdict
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if got.Unfit() != test.unfit {
				t.Errorf("unfit: %q, want %q", got.Unfit(), test.unfit)
			}
		})
	}
}

// One node can lack several resources; so many nodes lack something at least.
func TestCountOfObstacles(t *testing.T) {
	t.Parallel()
	v := Verdict{Obstacles: []Obstacle{{Crowded, 1, "a"}, {Crowded, 3, "b"}, {Unsuitable, 1, "c"}, {Unsuitable, 1, "d"}}}
	if v.Count(Crowded) != 3 || v.Count(Unsuitable) != 2 || v.Count(Taken) != 0 {
		t.Errorf("%d crowded, %d unsuitable, %d taken", v.Count(Crowded), v.Count(Unsuitable), v.Count(Taken))
	}
}

func TestGates(t *testing.T) {
	t.Parallel()
	pod := &corev1.Pod{
		Spec: corev1.PodSpec{SchedulingGates: []corev1.PodSchedulingGate{{Name: "kueue.x-k8s.io/admission"}}},
		Status: corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "SchedulingGated", Message: "Scheduling is blocked due to non-empty scheduling gates",
		}}},
	}
	if diff := cmp.Diff(Verdict{Gates: []string{"kueue.x-k8s.io/admission"}}, StateOf(pod).Verdict); diff != "" {
		t.Error(diff)
	}
}
