package capacity

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// waitScene is a wait as it is played: times are seconds from the Pod's making.
type waitScene struct {
	pods  []corev1.Pod
	nodes []corev1.Node
}

func sec(n int) time.Time { return noon().Add(time.Duration(n) * time.Second) }

// sceneNode joined, and was ready, at these seconds; ready < joined is not yet.
func sceneNode(name string, joined, ready int) corev1.Node {
	n := node(name, ready >= joined, 0)
	n.CreationTimestamp = metav1.NewTime(sec(joined))
	n.Status.Conditions[0].LastTransitionTime = metav1.NewTime(sec(ready))
	return n
}

// scenePod was made at this second.
func scenePod(name, on string, made int) corev1.Pod {
	p := job(name, on, corev1.PodPending, 0)
	p.CreationTimestamp = metav1.NewTime(sec(made))
	return p
}

// A wait is told apart by what was seen of it: a queue is never a boot, and a
// node that was booted for another is none of this Pod's.
func TestWaitSplit(t *testing.T) {
	type look struct {
		at    int
		scene waitScene
	}
	self := scenePod("self", "", 0)
	one := Gateway{Ceiling: 1}
	ten := Gateway{Ceiling: 10}
	pods := func(list ...corev1.Pod) []corev1.Pod { return append(list, self) }
	for _, test := range []struct {
		name    string
		gateway Gateway
		looks   []look
		// end is how it is when the Pod has its node, at bound.
		end   waitScene
		node  string
		bound int
		want  WaitSplit
	}{
		{"a boot from zero", ten, []look{{0, waitScene{pods(), nil}}},
			waitScene{nil, []corev1.Node{sceneNode("n1", 30, 32)}}, "n1", 33,
			WaitSplit{Booted: true, Boot: 33 * time.Second, Exact: true}},
		{"the queue for a node that was there", one, []look{{0, waitScene{pods(scenePod("a", "n1", -60)), []corev1.Node{sceneNode("n1", -30, -28)}}}},
			waitScene{nil, []corev1.Node{sceneNode("n1", -30, -28)}}, "n1", 33,
			WaitSplit{Queue: 33 * time.Second}},
		{"behind one whose node booted meanwhile", one, []look{
			{0, waitScene{pods(scenePod("a", "", -5)), nil}},
			{10, waitScene{pods(scenePod("a", "n1", -5)), []corev1.Node{sceneNode("n1", 8, 9)}}},
		}, waitScene{nil, []corev1.Node{sceneNode("n1", 8, 9)}}, "n1", 33, WaitSplit{Queue: 33 * time.Second}},
		{"the same, the ceiling is not known", ten, []look{
			{0, waitScene{pods(scenePod("a", "", -5)), nil}},
			{10, waitScene{pods(scenePod("a", "n1", -5)), []corev1.Node{sceneNode("n1", 8, 9)}}},
		}, waitScene{nil, []corev1.Node{sceneNode("n1", 8, 9)}}, "n1", 33, WaitSplit{Queue: 33 * time.Second}},
		{"the same, and nobody looked meanwhile", ten, []look{{0, waitScene{pods(scenePod("a", "", -5)), nil}}},
			waitScene{nil, []corev1.Node{sceneNode("n1", 8, 9)}}, "n1", 33, WaitSplit{Queue: 33 * time.Second}},
		{"the same with a job of two seconds", ten, []look{{0, waitScene{pods(scenePod("a", "", -5)), nil}}},
			waitScene{nil, []corev1.Node{sceneNode("n1", 8, 9)}}, "n1", 14, WaitSplit{Queue: 14 * time.Second}},
		{"the node of one that was cancelled", ten, []look{{0, waitScene{pods(scenePod("a", "", -20)), nil}}},
			waitScene{nil, []corev1.Node{sceneNode("n1", 8, 9)}}, "n1", 10, WaitSplit{Queue: 10 * time.Second}},
		{"two at once, each with a node", ten, []look{{0, waitScene{pods(scenePod("a", "", 0)), nil}}},
			waitScene{[]corev1.Pod{scenePod("a", "n1", 0)}, []corev1.Node{sceneNode("n1", 30, 31), sceneNode("n2", 31, 32)}}, "n2", 33,
			WaitSplit{Booted: true, Boot: 33 * time.Second, Exact: true}},
		{"two at once that swap their nodes", ten, []look{{0, waitScene{pods(scenePod("a", "", -20)), nil}}},
			waitScene{[]corev1.Pod{scenePod("a", "", -20)}, []corev1.Node{sceneNode("n1", 10, 11)}}, "n1", 12,
			WaitSplit{Booted: true, Boot: 12 * time.Second}},
		{"two at the same time that swap their nodes", ten, []look{{0, waitScene{pods(scenePod("a", "", -3)), nil}}},
			waitScene{[]corev1.Pod{scenePod("a", "", -3)}, []corev1.Node{sceneNode("n1", 30, 31)}}, "n1", 32,
			WaitSplit{Booted: true, Boot: 32 * time.Second, Exact: true}},
		{"two at the same time for one node, and the last of them gets it", one, []look{{0, waitScene{pods(scenePod("a", "", -3)), nil}}},
			waitScene{[]corev1.Pod{scenePod("a", "", -3)}, []corev1.Node{sceneNode("n1", 30, 31)}}, "n1", 32,
			WaitSplit{Booted: true, Boot: 32 * time.Second, Exact: true}},
		{"a little too far apart for that", ten, []look{{0, waitScene{pods(scenePod("a", "", -4)), nil}}},
			waitScene{[]corev1.Pod{scenePod("a", "", -4)}, []corev1.Node{sceneNode("n1", 30, 31)}}, "n1", 32,
			WaitSplit{Booted: true, Boot: 32 * time.Second}},
		{"a queue, and then a boot: the busy node is lost", one, []look{
			{0, waitScene{pods(scenePod("a", "n1", -60)), []corev1.Node{sceneNode("n1", -30, -28)}}},
			{20, waitScene{pods(), nil}},
		}, waitScene{nil, []corev1.Node{sceneNode("n2", 48, 49)}}, "n2", 50,
			WaitSplit{Booted: true, Queue: 20 * time.Second, Boot: 30 * time.Second}},
		{"a queue whose end nobody saw, and then a boot", one, []look{{15, waitScene{pods(scenePod("a", "n1", -60)), []corev1.Node{sceneNode("n1", -30, -28)}}}},
			waitScene{nil, []corev1.Node{sceneNode("n2", 48, 49)}}, "n2", 50,
			WaitSplit{Booted: true, Queue: 15 * time.Second, Boot: 35 * time.Second}},
		{"several Pods a node: none boots until the other ends", Gateway{Ceiling: 10, PodsPerNode: 8}, []look{
			{0, waitScene{pods(scenePod("a", "n1", -60)), []corev1.Node{sceneNode("n1", -30, -28)}}}},
			waitScene{nil, []corev1.Node{sceneNode("n1", -30, -28)}}, "n1", 60, WaitSplit{Queue: time.Minute}},
		{"a node that had joined and was not ready", ten, []look{{0, waitScene{pods(), []corev1.Node{sceneNode("n1", -1, -2)}}}},
			waitScene{nil, []corev1.Node{sceneNode("n1", -1, 4)}}, "n1", 5, WaitSplit{Queue: 5 * time.Second}},
		{"the scheduler takes as long as it may", ten, []look{{0, waitScene{pods(), nil}}},
			waitScene{nil, []corev1.Node{sceneNode("n1", 30, 32)}}, "n1", 47,
			WaitSplit{Booted: true, Boot: 47 * time.Second, Exact: true}},
		{"longer than it may: somebody had the node", ten, []look{{0, waitScene{pods(), nil}}},
			waitScene{nil, []corev1.Node{sceneNode("n1", 30, 32)}}, "n1", 48, WaitSplit{Queue: 48 * time.Second}},
		{"nobody could look", ten, nil,
			waitScene{nil, []corev1.Node{sceneNode("n1", 30, 32)}}, "n1", 33, WaitSplit{Booted: true, Boot: 33 * time.Second}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var r WaitRecord
			for _, l := range test.looks {
				r.See(OutlookOf(l.scene.nodes, l.scene.pods, types.UID("self")), test.gateway, time.Duration(l.at)*time.Second)
			}
			bound := self.DeepCopy()
			bound.Spec.NodeName = test.node
			bound.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(sec(test.bound))}}
			o := OutlookOf(test.end.nodes, append(test.end.pods, *bound), bound.UID)
			if diff := cmp.Diff(test.want, r.Split(o, bound, time.Duration(test.bound)*time.Second)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
