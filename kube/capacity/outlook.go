package capacity

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Outlook is how the cluster stands for a Pod that waits for a node.
type Outlook struct {
	// Nodes are all nodes, Ready those whose kubelet reports in, Free those of
	// them that carry no other Pod of the same kind.
	Nodes, Ready, Free int
	// Unfinished counts the Pods of the kind that have not ended, the waiting
	// one among them.
	Unfinished int
	// Place is the Pod's place in the queue of those without a node, from 1 on.
	Place int
	// Queue is how long that queue is.
	Queue int
	// Newest is when the last node joined; zero if there is none.
	Newest time.Time
	// NewestPod is when the last Pod of the kind was made.
	NewestPod time.Time

	// queued are the Pods of the queue, ahead is how many of them stand before the
	// Pod; on is where other Pods are. health is how each node is.
	queued []queuedPod
	ahead  int
	on     map[types.UID]string
	health map[string]Health
}

// queuedPod is a Pod without a node, and when it was made.
type queuedPod struct {
	uid  types.UID
	made time.Time
}

// Health is how a node is. One that does not exist has the zero value.
func (o Outlook) Health(node string) Health { return o.health[node] }

// Outlook reads the nodes and the Pods of a namespace that carry the labels of
// selector, and finds the place of the Pod with the UID among them.
func (n *Nodes) Outlook(ctx context.Context, namespace, selector string, self types.UID) (Outlook, error) {
	nodes := &corev1.NodeList{}
	// rbac: nodes list
	if err := n.cluster.REST().Get().Resource("nodes").Do(ctx).Into(nodes); err != nil {
		return Outlook{}, fmt.Errorf("listing nodes: %w", err)
	}
	pods := &corev1.PodList{}
	// rbac: pods list
	err := n.cluster.REST().Get().Namespace(namespace).Resource("pods").
		VersionedParams(&metav1.ListOptions{LabelSelector: selector}, n.cluster.ParameterCodec()).Do(ctx).Into(pods)
	if err != nil {
		return Outlook{}, fmt.Errorf("listing the Pods of %s: %w", selector, err)
	}
	return outlook(nodes.Items, pods.Items, self), nil
}

// OutlookOf is Outlook for nodes and Pods that were read.
func OutlookOf(nodes []corev1.Node, pods []corev1.Pod, self types.UID) Outlook {
	return outlook(nodes, pods, self)
}

func outlook(nodes []corev1.Node, pods []corev1.Pod, self types.UID) Outlook {
	o := Outlook{Nodes: len(nodes), on: map[types.UID]string{}, health: map[string]Health{}}
	busy := map[string]bool{}
	var queue []*corev1.Pod
	for i := range pods {
		p := &pods[i]
		if p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
			continue
		}
		o.Unfinished++
		if p.CreationTimestamp.After(o.NewestPod) {
			o.NewestPod = p.CreationTimestamp.Time
		}
		if p.Spec.NodeName != "" {
			busy[p.Spec.NodeName] = true
			if p.UID != self {
				o.on[p.UID] = p.Spec.NodeName
			}
		} else if p.DeletionTimestamp == nil {
			queue = append(queue, p)
		}
	}
	for i := range nodes {
		if nodes[i].CreationTimestamp.After(o.Newest) {
			o.Newest = nodes[i].CreationTimestamp.Time
		}
		o.health[nodes[i].Name] = healthOf(&nodes[i])
		if o.health[nodes[i].Name].Ready {
			o.Ready++
			if !busy[nodes[i].Name] {
				o.Free++
			}
		}
	}
	// The scheduler takes Pods of one priority in the order of their making;
	// names settle the second's resolution of the time.
	slices.SortFunc(queue, func(a, b *corev1.Pod) int {
		if c := a.CreationTimestamp.Compare(b.CreationTimestamp.Time); c != 0 {
			return c
		}
		return slices.Compare([]byte(a.Name), []byte(b.Name))
	})
	o.Queue = len(queue)
	for i, p := range queue {
		o.queued = append(o.queued, queuedPod{p.UID, p.CreationTimestamp.Time})
		if p.UID == self {
			o.Place, o.ahead = i+1, i
		}
	}
	return o
}

// Gateway is what is known of the part of the cluster that boots nodes.
type Gateway struct {
	// Ceiling is how many nodes it boots at most.
	Ceiling int
	// PodsPerNode is how many Pods it counts for a node, 0 if nobody knows.
	PodsPerNode int
	// Boots are the boots seen lately.
	Boots []time.Duration
}

// Reason is why a Pod waits for a node.
type Reason int

// The reasons for which a Pod waits.
const (
	// Booting: a node is on its way.
	Booting Reason = iota
	// Joining: a node has joined and is not ready yet.
	Joining
	// Full: every node that there may be carries a job.
	Full
	// Unfit: a node is free and the Pod does not fit on it.
	Unfit
	// Starved: no node is on its way although there may be more. The gateway
	// counts several Pods for a node.
	Starved
)

// longestBoot is how long no node may come before it counts as not coming,
// where no boots are known. It is twice the slowest otherwise, and never less
// than shortestDoubt.
const (
	longestBoot   = 5 * time.Minute
	shortestDoubt = 90 * time.Second
)

// Slowest is the slowest boot seen, 0 if none was.
func (g Gateway) Slowest() time.Duration {
	if len(g.Boots) == 0 {
		return 0
	}
	return slices.Max(g.Boots)
}

// Usual is the median of the boots seen, 0 if none was.
func (g Gateway) Usual() time.Duration {
	if len(g.Boots) == 0 {
		return 0
	}
	ordered := slices.Sorted(slices.Values(g.Boots))
	return ordered[len(ordered)/2]
}

// doubt is how long to believe in a node that does not come.
func (g Gateway) doubt() time.Duration {
	if len(g.Boots) == 0 {
		return longestBoot
	}
	return max(2*g.Slowest(), shortestDoubt)
}

// Why says why a Pod waits, which has waited for so long.
func (g Gateway) Why(o Outlook, waited time.Duration) Reason {
	switch {
	case o.Free > 0 && o.Queue <= o.Free:
		return Unfit
	case o.Ready < o.Nodes:
		return Joining
	case o.Nodes >= g.Ceiling:
		return Full
	case g.PodsPerNode > 1 && o.Nodes >= nodesFor(o.Unfinished, g.PodsPerNode):
		return Starved
	case o.Nodes > 0 && waited >= g.doubt():
		return Starved
	}
	return Booting
}

// nodesFor is how many nodes the gateway wants for so many Pods.
func nodesFor(pods, perNode int) int { return (pods + perNode - 1) / perNode }
