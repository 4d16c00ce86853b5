package capacity

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestFreeing(t *testing.T) {
	node := func(name string, ready bool) corev1.Node {
		status := map[bool]corev1.ConditionStatus{true: corev1.ConditionTrue, false: corev1.ConditionUnknown}[ready]
		return corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status}}}}
	}
	on := func(node string) corev1.Pod { return corev1.Pod{Spec: corev1.PodSpec{NodeName: node}} }
	done := on("b")
	done.Status.Phase = corev1.PodFailed
	going := on("")
	going.DeletionTimestamp = &metav1.Time{Time: time.Now()}
	closed := node("c", true)
	closed.Spec.Unschedulable = true
	two := []corev1.Node{node("a", true), node("b", true)}
	for name, test := range map[string]struct {
		nodes  []corev1.Node
		others []corev1.Pod
		want   int
	}{
		"the only node":                        {two[:1], nil, 1},
		"another is free":                      {two, nil, 0},
		"another is busy":                      {two, []corev1.Pod{on("b")}, 1},
		"another is free, its job has ended":   {two, []corev1.Pod{done}, 0},
		"another is free, and wanted":          {two, []corev1.Pod{on("")}, 1},
		"another is free, wanted no more":      {two, []corev1.Pod{going}, 0},
		"another is not ready":                 {[]corev1.Node{node("a", true), node("b", false)}, nil, 1},
		"another takes nothing":                {[]corev1.Node{node("a", true), closed}, nil, 1},
		"its own node is not ready":            {[]corev1.Node{node("a", false)}, nil, 0},
		"its own node is not there any more":   {nil, nil, 0},
		"two on a node of which one is ending": {two[:1], []corev1.Pod{on("a")}, 1},
	} {
		ending := []corev1.Pod{on("a")}
		if got := Freeing(test.nodes, append(test.others, ending...), ending); len(got) != test.want {
			t.Errorf("%s: %d Pods are waited for, want %d", name, len(got), test.want)
		}
	}
}

// A node that is not ready counts as lost only after a while.
func TestLost(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		health Health
		want   bool
	}{
		"well":                   {Health{Exists: true, Ready: true, Since: now.Add(-time.Hour)}, false},
		"gone":                   {Health{}, true},
		"not ready just now":     {Health{Exists: true, Since: now}, false},
		"not ready a while":      {Health{Exists: true, Since: now.Add(-9 * time.Second)}, false},
		"not ready for the time": {Health{Exists: true, Since: now.Add(-10 * time.Second)}, true},
		"in the future":          {Health{Exists: true, Since: now.Add(time.Minute)}, false},
	} {
		if got := test.health.Lost(now, 10*time.Second); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
