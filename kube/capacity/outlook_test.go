package capacity

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
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
		Nodes: 3, Ready: 2, Free: 1, Unfinished: 5, Place: 3, Queue: 3,
		Newest: noon().Add(-time.Second), NewestPod: noon().Add(-2 * time.Minute),
	}
	counts := cmpopts.IgnoreUnexported(Outlook{})
	if diff := cmp.Diff(want, outlook(nodes, pods, "third"), counts); diff != "" {
		t.Errorf("outlook (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(Outlook{}, outlook(nil, nil, "x"), counts); diff != "" {
		t.Errorf("an empty cluster (-want +got):\n%s", diff)
	}
}

func TestWhy(t *testing.T) {
	boots := []time.Duration{40 * time.Second, 50 * time.Second, 70 * time.Second}
	for _, test := range []struct {
		name    string
		gateway Gateway
		outlook Outlook
		waited  time.Duration
		want    Reason
	}{
		{"from zero", Gateway{Ceiling: 10}, Outlook{Unfinished: 1, Place: 1, Queue: 1}, 0, Booting},
		{"from zero, for long", Gateway{Ceiling: 10, Boots: boots}, Outlook{Unfinished: 1, Place: 1, Queue: 1}, time.Hour, Booting},
		{"joined, not ready", Gateway{Ceiling: 10}, Outlook{Nodes: 1, Unfinished: 1, Place: 1, Queue: 1}, time.Minute, Joining},
		{"second job, node on its way", Gateway{Ceiling: 10, Boots: boots}, Outlook{Nodes: 1, Ready: 1, Unfinished: 2, Place: 1, Queue: 1}, time.Minute, Booting},
		{"second job, no node comes", Gateway{Ceiling: 10, Boots: boots}, Outlook{Nodes: 1, Ready: 1, Unfinished: 2, Place: 1, Queue: 1}, 141 * time.Second, Starved},
		{"second job, no node comes, nothing known", Gateway{Ceiling: 10}, Outlook{Nodes: 1, Ready: 1, Unfinished: 2, Place: 1, Queue: 1}, 4 * time.Minute, Booting},
		{"second job, nothing known, for long", Gateway{Ceiling: 10}, Outlook{Nodes: 1, Ready: 1, Unfinished: 2, Place: 1, Queue: 1}, 5 * time.Minute, Starved},
		{"eight Pods a node, said at once", Gateway{Ceiling: 10, PodsPerNode: 8}, Outlook{Nodes: 1, Ready: 1, Unfinished: 2, Place: 1, Queue: 1}, 0, Starved},
		{"eight Pods a node, ninth Pod", Gateway{Ceiling: 10, PodsPerNode: 8}, Outlook{Nodes: 1, Ready: 1, Unfinished: 9, Place: 8, Queue: 8}, 0, Booting},
		{"eight Pods a node, from zero", Gateway{Ceiling: 10, PodsPerNode: 8}, Outlook{Unfinished: 1, Place: 1, Queue: 1}, 0, Booting},
		{"one Pod a node", Gateway{Ceiling: 10, PodsPerNode: 1}, Outlook{Nodes: 1, Ready: 1, Unfinished: 2, Place: 1, Queue: 1}, 0, Booting},
		{"at the ceiling", Gateway{Ceiling: 2, Boots: boots}, Outlook{Nodes: 2, Ready: 2, Unfinished: 3, Place: 1, Queue: 1}, time.Hour, Full},
		{"at the ceiling, one not ready", Gateway{Ceiling: 2}, Outlook{Nodes: 2, Ready: 1, Unfinished: 3, Place: 1, Queue: 1}, 0, Joining},
		{"a free node that does not do", Gateway{Ceiling: 10}, Outlook{Nodes: 1, Ready: 1, Free: 1, Unfinished: 1, Place: 1, Queue: 1}, 0, Unfit},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := test.gateway.Why(test.outlook, test.waited); got != test.want {
				t.Errorf("reason %d, want %d", got, test.want)
			}
		})
	}
}

func TestBoots(t *testing.T) {
	if g := (Gateway{}); g.Usual() != 0 || g.Slowest() != 0 {
		t.Errorf("without boots: usual %s, slowest %s", g.Usual(), g.Slowest())
	}
	g := Gateway{Boots: []time.Duration{9 * time.Second, 40 * time.Second, 10 * time.Second}}
	if got := fmt.Sprint(g.Usual(), g.Slowest()); got != "10s 40s" {
		t.Errorf("usual and slowest %s, want 10s 40s", got)
	}
}
