package capacity

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func node(name string, ready bool, age time.Duration) corev1.Node {
	status := corev1.ConditionFalse
	if ready {
		status = corev1.ConditionTrue
	}
	return corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(noon().Add(-age))},
		Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status}}},
	}
}

func job(name, on string, phase corev1.PodPhase, age time.Duration) corev1.Pod {
	return corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), CreationTimestamp: metav1.NewTime(noon().Add(-age))},
		Spec:       corev1.PodSpec{NodeName: on},
		Status:     corev1.PodStatus{Phase: phase},
	}
}

func TestOutlook(t *testing.T) {
	nodes := []corev1.Node{node("a", true, time.Hour), node("b", true, time.Minute), node("c", false, time.Second)}
	leaving := job("leaving", "", corev1.PodPending, time.Hour)
	leaving.DeletionTimestamp = &metav1.Time{Time: noon()}
	pods := []corev1.Pod{
		job("running", "a", corev1.PodRunning, time.Hour),
		job("done", "b", corev1.PodSucceeded, time.Hour),
		job("second", "", corev1.PodPending, 2*time.Minute),
		job("first", "", corev1.PodPending, 3*time.Minute),
		job("third", "", corev1.PodPending, 2*time.Minute),
		leaving,
	}
	want := Outlook{
		Nodes: 3, Ready: 2, Free: 1, Busy: 1, Unfinished: 5, Place: 3, Queue: 3, Newest: noon().Add(-time.Second),
	}
	counts := cmpopts.IgnoreUnexported(Outlook{})
	if diff := cmp.Diff(want, outlook(nodes, pods, "third"), counts); diff != "" {
		t.Errorf("outlook (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(Outlook{}, outlook(nil, nil, "x"), counts); diff != "" {
		t.Errorf("an empty cluster (-want +got):\n%s", diff)
	}
}

// A node that is not ready may carry a Pod, and is busy all the same.
func TestBusyAndKeptNodes(t *testing.T) {
	nodes := []corev1.Node{node("lost", false, time.Hour), node("cordoned", true, time.Hour), node("tainted", true, time.Hour), node("fresh", true, 0)}
	nodes[1].Spec.Unschedulable = true
	nodes[2].Spec.Taints = []corev1.Taint{{Key: "gpu", Effect: corev1.TaintEffectNoSchedule}}
	nodes[3].Spec.Taints = []corev1.Taint{{Key: "node.kubernetes.io/not-ready", Effect: corev1.TaintEffectNoExecute}, {Key: "x", Effect: corev1.TaintEffectPreferNoSchedule}}
	o := outlook(nodes, []corev1.Pod{job("a", "lost", corev1.PodRunning, 0)}, "x")
	if got := fmt.Sprint(o.Nodes, o.Ready, o.Free, o.Busy, o.Kept); got != "4 3 3 1 2" {
		t.Errorf("nodes, ready, free, busy and kept are %s, want 4 3 3 1 2", got)
	}
}

func TestLargest(t *testing.T) {
	sized := func(cpu, memory string) corev1.Node {
		n := node("n", true, 0)
		n.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
		return n
	}
	o := outlook([]corev1.Node{sized("2", "8Gi"), node("silent", false, 0), sized("4", "4Gi")}, nil, "x")
	if o.Largest.Cpu().String() != "4" || o.Largest.Memory().String() != "8Gi" {
		t.Errorf("the largest is %v", o.Largest)
	}
}

func TestQuiet(t *testing.T) {
	for _, test := range []struct {
		newest, waited, want time.Duration
	}{
		{time.Hour, time.Minute, time.Minute}, {10 * time.Second, time.Minute, 10 * time.Second},
		{-time.Second, time.Minute, 0}, // another clock
	} {
		if got := (Outlook{Newest: noon().Add(-test.newest)}).Quiet(noon(), test.waited); got != test.want {
			t.Errorf("the last node came %s ago, waited for %s: quiet for %s, want %s", test.newest, test.waited, got, test.want)
		}
	}
	if got := (Outlook{}).Quiet(noon(), time.Minute); got != time.Minute {
		t.Errorf("without nodes: %s", got)
	}
}
