package capacity

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Outlook is how the cluster stands for a Pod that waits for a node.
type Outlook struct {
	// Nodes are all nodes, Ready those whose kubelet reports in, Free those of
	// them that carry no other Pod of the same kind. Busy ones carry one, ready
	// or not.
	Nodes, Ready, Free, Busy int
	// Kept are the nodes that somebody keeps Pods from, by a taint or a cordon.
	Kept int
	// Unfinished counts the Pods of the kind that have not ended, the waiting
	// one among them.
	Unfinished int
	// Place is the Pod's place in the queue of those without a node, from 1 on.
	Place int
	// Queue is how long that queue is.
	Queue int
	// Newest is when the last node joined; zero if there is none.
	Newest time.Time
	// Largest is what a Pod can have of the node that has the most of it.
	Largest corev1.ResourceList
	// Narrow is whether Pods of one namespace alone were looked at: the cluster
	// does not allow to look further.
	Narrow bool

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

// Quiet is for how long no node has come, for a Pod that has waited for so long.
func (o Outlook) Quiet(now time.Time, waited time.Duration) time.Duration {
	if o.Newest.IsZero() {
		return waited
	}
	return max(0, min(waited, now.Sub(o.Newest)))
}

// Outlook reads the nodes, and the Pods of all namespaces that carry the labels
// of selector, and finds the place of the Pod with the UID among them: no two of
// them share a node, wherever they are. Where the cluster does not allow to look
// into all namespaces it looks into home.
func (n *Nodes) Outlook(ctx context.Context, home, selector string, self types.UID) (Outlook, error) {
	nodes := &corev1.NodeList{}
	// rbac: nodes list
	if err := n.cluster.REST().Get().Resource("nodes").Do(ctx).Into(nodes); err != nil {
		return Outlook{}, fmt.Errorf("listing nodes: %w", err)
	}
	pods, err := n.pods(ctx, metav1.NamespaceAll, selector)
	narrow := apierrors.IsForbidden(err)
	if narrow {
		pods, err = n.pods(ctx, home, selector)
	}
	if err != nil {
		return Outlook{}, fmt.Errorf("listing the Pods of %s: %w", selector, err)
	}
	o := outlook(nodes.Items, pods.Items, self)
	o.Narrow = narrow
	return o, nil
}

// pods lists the Pods of a namespace, or of all.
func (n *Nodes) pods(ctx context.Context, namespace, selector string) (*corev1.PodList, error) {
	list := &corev1.PodList{}
	// rbac: pods list
	// rbac everywhere: pods list
	err := n.cluster.REST().Get().Namespace(namespace).Resource("pods").
		VersionedParams(&metav1.ListOptions{LabelSelector: selector}, n.cluster.ParameterCodec()).Do(ctx).Into(list)
	return list, err
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
		n := &nodes[i]
		if n.CreationTimestamp.After(o.Newest) {
			o.Newest = n.CreationTimestamp.Time
		}
		h := healthOf(n)
		o.health[n.Name] = h
		if h.Ready {
			o.Ready++
		}
		if busy[n.Name] {
			o.Busy++
		} else if h.Ready {
			o.Free++
		}
		if keptFrom(n) {
			o.Kept++
		}
		o.Largest = most(o.Largest, n.Status.Allocatable)
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

// keptFrom says whether Pods are kept from a node on purpose. Taints of the
// cluster itself tell of the node's state, and come and go with it.
func keptFrom(n *corev1.Node) bool {
	return n.Spec.Unschedulable || slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool {
		return t.Effect != corev1.TaintEffectPreferNoSchedule &&
			!strings.HasPrefix(t.Key, "node.kubernetes.io/") && !strings.HasPrefix(t.Key, "node.cloudprovider.kubernetes.io/")
	})
}

// most has of each resource the larger quantity of the two.
func most(a, b corev1.ResourceList) corev1.ResourceList {
	for name, q := range b {
		if have, there := a[name]; !there || q.Cmp(have) > 0 {
			if a == nil {
				a = corev1.ResourceList{}
			}
			a[name] = q
		}
	}
	return a
}
