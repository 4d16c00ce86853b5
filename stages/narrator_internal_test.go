package stages

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/socialweb-computer/tenant-executor/executor/failure"
	"github.com/socialweb-computer/tenant-executor/executor/joblog"
	"github.com/socialweb-computer/tenant-executor/kube/capacity"
	"github.com/socialweb-computer/tenant-executor/kube/pods"
)

func TestRecentBoots(t *testing.T) {
	for _, test := range []struct {
		boots  []time.Duration
		waited time.Duration
		want   string
	}{
		{nil, time.Hour, ""},
		{[]time.Duration{40 * time.Second, 40 * time.Second}, 0, "; recent boots took 40 s"},
		{[]time.Duration{40 * time.Second, 40 * time.Second, time.Minute}, 0, "; recent boots took 40 s, 1 min at most"},
		{[]time.Duration{40 * time.Second, 40 * time.Second, time.Minute}, 75 * time.Second, "; recent boots took 40 s, 1 min at most"},
		{[]time.Duration{40 * time.Second, 40 * time.Second, time.Minute}, 76 * time.Second, "; no recent boot took this long (1 min at most)"},
	} {
		w := nodeWait{gateway: capacity.Gateway{Boots: test.boots}}
		if got := w.boots(test.waited); got != test.want {
			t.Errorf("boots of %v, waited %s: %q, want %q", test.boots, test.waited, got, test.want)
		}
	}
}

// What the reader of the job log is told, and what a wait in vain comes to.
func TestNodeWait(t *testing.T) {
	selector := pods.Verdict{Obstacles: []pods.Obstacle{{Kind: pods.Unsuitable, Nodes: 3, Words: "node(s) didn't match Pod's node affinity/selector"}}}
	mixed := pods.Verdict{Obstacles: []pods.Obstacle{{Kind: pods.Unsuitable, Nodes: 1, Words: "node(s) didn't match x"}, {Kind: pods.Taken, Nodes: 2}}}
	waits := func(nodes, busy, place, queue int) capacity.Outlook {
		return capacity.Outlook{Nodes: nodes, Ready: nodes, Busy: busy, Free: nodes - busy, Unfinished: busy + queue, Place: place, Queue: queue}
	}
	narrow := waits(2, 2, 1, 2)
	narrow.Narrow = true
	joining := waits(2, 1, 1, 1)
	joining.Ready = 1
	asks := corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Gi")}
	has := corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("4Gi")}
	for _, test := range []struct {
		name  string
		wait  nodeWait
		says  string
		cause failure.Cause
	}{
		{"from zero", nodeWait{reason: capacity.Booting, outlook: waits(0, 0, 1, 1)}, "the cluster has none", failure.NoNode},
		{"from zero, second", nodeWait{reason: capacity.Booting, outlook: waits(0, 0, 2, 2)}, "the cluster has none; place 2 of 2 in the queue", failure.NoNode},
		{"one is busy", nodeWait{reason: capacity.Booting, outlook: waits(1, 1, 1, 1)}, "the only node is busy (maximum 2)", failure.NoNode},
		{"one is free, for another", nodeWait{reason: capacity.Booting, outlook: waits(1, 0, 2, 2)}, "the free node goes to the job before this one; place 2 of 2 in the queue", failure.NoNode},
		{"one is free, and nobody is before it", nodeWait{reason: capacity.Booting, outlook: waits(2, 1, 1, 1)}, "all 2 nodes are busy (maximum 2)", failure.NoNode},
		{"full", nodeWait{reason: capacity.Full, outlook: waits(2, 2, 1, 1)}, "all 2 nodes are busy (maximum 2); place 1 of 1 in the queue", failure.NodesBusy},
		{"full, other namespaces unseen", nodeWait{reason: capacity.Full, outlook: narrow, home: "ci"}, "all 2 nodes are busy (maximum 2); place 1 of 2 in the queue of namespace ci", failure.NodesBusy},
		{"full, and one does not fit", nodeWait{reason: capacity.Full, outlook: waits(3, 2, 1, 1), verdict: mixed}, "2 of 3 nodes are busy, and the others do not fit: 1 node(s) didn't match x; place 1 of 1 in the queue", failure.NodesBusy},
		{"joining", nodeWait{reason: capacity.Joining, outlook: joining}, "1 of 2 nodes are not ready yet", failure.NoNode},
		{"unfit", nodeWait{reason: capacity.Unfit, outlook: waits(3, 0, 1, 1), verdict: selector}, "none of the 3 nodes fits: 3 node(s) didn't match Pod's node affinity/selector", failure.NodeUnfit},
		{"too small", nodeWait{reason: capacity.Unfit, outlook: waits(1, 0, 1, 1), beyond: capacity.Beyond(asks, has)}, "the job's containers ask for 64Gi of memory, and the largest node has 4Gi", failure.Oversized},
		{"gated", nodeWait{reason: capacity.Gated, verdict: pods.Verdict{Gates: []string{"kueue.x-k8s.io/admission"}}}, "scheduling gate kueue.x-k8s.io/admission is not lifted yet", failure.Gated},
		{"told", nodeWait{reason: capacity.Told, verdict: pods.Verdict{Words: "pod group is not ready"}}, "pod group is not ready", failure.NoNode},
		{"due", nodeWait{reason: capacity.Due, outlook: waits(2, 1, 1, 1)}, "the scheduler has not placed the Pod, and 1 of 2 nodes are free", failure.NoNode},
		{"stalled from zero", nodeWait{reason: capacity.Stalled, outlook: waits(0, 0, 1, 1)}, "the cluster has none, and none has come", failure.NoNode},
		{"stalled", nodeWait{reason: capacity.Stalled, outlook: waits(1, 1, 1, 1)}, "the only node is busy (maximum 2), and no other has come", failure.NoNode},
		{"starved", nodeWait{reason: capacity.Starved, outlook: waits(1, 1, 1, 1)}, "the gateway boots one for every 8 Pods, and 1 node is there for 2 job Pods", failure.NoNode},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.wait.gateway = capacity.Gateway{Ceiling: 2, PodsPerNode: 8}
			if got := test.wait.words() + test.wait.place(); got != test.says {
				t.Errorf("got  %s\nwant %s", got, test.says)
			}
			if got := failure.Of(test.wait.failure(8 * time.Second)); got.Cause != test.cause {
				t.Errorf("cause %s, want %s: %v", got.Cause, test.cause, got)
			}
		})
	}
}

// The number of Pods for a node is named only where it can be the cause.
func TestSuspects(t *testing.T) {
	for _, test := range []struct {
		nodes, told int
		want        string
	}{
		{0, 0, "be paused or find no machine to rent"},
		{1, 1, "be paused, find no machine to rent or boot fewer nodes than the 10 of [tenant] ceiling"},
		{1, 0, "be paused, find no machine to rent, boot fewer nodes than the 10 of [tenant] ceiling or count several Pods for one node (SOCIALWEB_CLUSTERPROVIDER_SCALE_PODS_PER_NODE; job Pods share none)"},
	} {
		w := nodeWait{gateway: capacity.Gateway{Ceiling: 10, PodsPerNode: test.told}, outlook: capacity.Outlook{Nodes: test.nodes}}
		if got := w.suspects(); got != test.want {
			t.Errorf("%d nodes, told %d: %q, want %q", test.nodes, test.told, got, test.want)
		}
	}
}

// movedClock is a time that a test moves.
type movedClock struct{ now time.Time }

func (c *movedClock) Now() time.Time { return c.now }

// A change is told at once and once; that nothing changes, once a minute. What
// varies in every look is no change.
func TestNews(t *testing.T) {
	var out bytes.Buffer
	clock := &movedClock{now: time.Unix(0, 0)}
	n := news{log: joblog.New(&out), clock: clock}
	for _, step := range []struct {
		after time.Duration
		line  string
	}{
		{0, "place 3 of 3 in the queue"}, {10 * time.Second, "place 3 of 4 in the queue"}, {10 * time.Second, "place 2 of 4 in the queue"},
		{59 * time.Second, "place 2 of 5 in the queue"}, {time.Second, "place 2 of 5 in the queue"},
		{time.Second, "read udp 10.0.0.1:34537->10.0.0.2:53: i/o timeout"}, {time.Second, "read udp 10.0.0.1:47409->10.0.0.2:53: i/o timeout"},
		{59 * time.Second, "read udp 10.0.0.1:1->10.0.0.2:53: i/o timeout"},
	} {
		clock.now = clock.now.Add(step.after)
		n.say(clock.now.Sub(time.Unix(0, 0)), "%s", step.line)
	}
	want := fmt.Sprintln("place 3 of 3 in the queue") + fmt.Sprintln("place 2 of 4 in the queue") + fmt.Sprintln("place 2 of 5 in the queue (for 1 min 20 s)") +
		fmt.Sprintln("read udp 10.0.0.1:34537->10.0.0.2:53: i/o timeout") + fmt.Sprintln("read udp 10.0.0.1:1->10.0.0.2:53: i/o timeout (for 2 min 21 s)")
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
