package capacity

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// settling is how long after a node is ready the scheduler may take to put the
// first Pod there: the node's taints have to go first. A Pod that comes later
// was not the first.
const settling = 15 * time.Second

// WaitRecord keeps what was seen while one Pod waited for a node, so that its
// wait can be told apart in the end: the queue for nodes that others had, and
// the boot of a node of its own. The zero value has seen nothing yet.
type WaitRecord struct {
	looked bool
	// ahead are the Pods that stood before it when it was first looked at.
	ahead map[types.UID]*aheadPod
	// taken are the nodes that others were seen on.
	taken map[string]bool
	// queued is whether no node could be on its way for the Pod at some look;
	// full is how long it had waited at the last such look, and room at the
	// first one after that.
	queued     bool
	full, room time.Duration
}

// aheadPod is a Pod before another one, and whether it was seen on a node since.
type aheadPod struct {
	made   time.Time
	placed bool
}

// WaitSplit is a wait for a node, told apart.
type WaitSplit struct {
	// Booted reports whether the node was booted for the Pod.
	Booted bool
	// Queue is the part of the wait in which others had the nodes, Boot the rest.
	Queue, Boot time.Duration
	// Exact reports whether Boot is the length of one whole boot: it is known
	// when it began, and that the node was for no other Pod.
	Exact bool
}

// See takes a look at the cluster, at which the Pod has waited for so long.
func (r *WaitRecord) See(o Outlook, g Gateway, waited time.Duration) {
	for uid, node := range o.on {
		r.take(uid, node)
	}
	if o.Place == 0 {
		return // it has a node by now
	}
	if !r.looked {
		r.looked, r.ahead = true, map[types.UID]*aheadPod{}
		// Free nodes, and those that are not ready yet, are for the first of them.
		for _, p := range o.queued[min(o.ahead, o.Free+o.Nodes-o.Ready):o.ahead] {
			r.ahead[p.uid] = &aheadPod{made: p.made}
		}
	}
	switch room := g.roomFor(o); {
	case !room:
		r.queued, r.full, r.room = true, waited, 0
	case r.queued && r.room == 0:
		r.room = waited
	}
}

// take notes that a Pod is on a node.
func (r *WaitRecord) take(uid types.UID, node string) {
	if r.taken == nil {
		r.taken = map[string]bool{}
	}
	r.taken[node] = true
	if p := r.ahead[uid]; p != nil {
		p.placed = true
	}
}

// roomFor reports whether the gateway boots, or has booted, a node for each Pod
// up to the one that the outlook is for. Those that came together with it may
// stand behind it as well.
func (g Gateway) roomFor(o Outlook) bool {
	place := 1
	for _, p := range o.queued[:o.ahead] {
		if p.made.Before(o.queued[o.ahead].made.Add(-atOnce)) {
			place++
		}
	}
	busy := o.Unfinished - o.Queue
	wanted := min(nodesFor(o.Unfinished, max(1, g.PodsPerNode)), g.Ceiling)
	return busy+place <= wanted
}

// Split tells the wait of a Pod apart that has a node now. The outlook is of
// this moment.
func (r *WaitRecord) Split(o Outlook, pod *corev1.Pod, waited time.Duration) WaitSplit {
	for uid, node := range o.on {
		r.take(uid, node)
	}
	node := o.health[pod.Spec.NodeName]
	if !r.first(node, pod) || o.rank(pod) <= r.vanished(o) {
		return WaitSplit{Queue: waited}
	}
	s := WaitSplit{Booted: true}
	if r.queued {
		s.Queue = min(max(r.full, r.room), waited)
	}
	s.Boot = waited - s.Queue
	s.Exact = r.looked && !r.queued && o.rank(pod) > r.earlier(pod)
	return s
}

// atOnce is how far apart Pods may be made that come to the cluster together: the
// scheduler takes them in its own order, and their nodes boot side by side.
const atOnce = 3 * time.Second

// earlier counts the Pods before this one for which a boot had begun already.
func (r *WaitRecord) earlier(pod *corev1.Pod) int {
	n := 0
	for _, p := range r.ahead {
		if p.made.Before(pod.CreationTimestamp.Add(-atOnce)) {
			n++
		}
	}
	return n
}

// first reports whether the node joined after the Pod was made, and the Pod was
// the first on it.
func (r *WaitRecord) first(node Health, pod *corev1.Pod) bool {
	made := pod.CreationTimestamp.Time
	if !node.Joined.After(made) || r.taken[pod.Spec.NodeName] {
		return false
	}
	ready := node.Since
	if !node.Ready || ready.Before(made) {
		ready = made
	}
	at, known := boundAt(pod)
	return !known || at.Sub(ready) <= settling
}

// boundAt is when a Pod was given its node.
func boundAt(pod *corev1.Pod) (time.Time, bool) {
	i := slices.IndexFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodScheduled && c.Status == corev1.ConditionTrue
	})
	if i < 0 {
		return time.Time{}, false
	}
	return pod.Status.Conditions[i].LastTransitionTime.Time, true
}

// vanished counts the Pods before this one that went away without a node: nodes
// that were booted for them were there for the taking.
func (r *WaitRecord) vanished(o Outlook) int {
	gone := 0
	for uid, p := range r.ahead {
		waits := slices.ContainsFunc(o.queued, func(q queuedPod) bool { return q.uid == uid })
		if !p.placed && !waits {
			gone++
		}
	}
	return gone
}

// rank is the place of the Pod's node among those that joined after the Pod was
// made, from 1 on.
func (o Outlook) rank(pod *corev1.Pod) int {
	own := o.health[pod.Spec.NodeName]
	rank := 1
	for name, h := range o.health {
		before := h.Joined.Before(own.Joined) || h.Joined.Equal(own.Joined) && name < pod.Spec.NodeName
		if before && h.Joined.After(pod.CreationTimestamp.Time) {
			rank++
		}
	}
	return rank
}
