// Package capacity is about the nodes of a cluster whose nodes come and go:
// which there are, and placeholders that keep some free for jobs to come.
package capacity

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/socialweb-computer/tenant-executor/kube/cluster"
)

// Nodes reads the nodes of one cluster.
type Nodes struct {
	cluster *cluster.Client
	budget  time.Duration
}

// NewNodes repeats requests for at most budget.
func NewNodes(c *cluster.Client, budget time.Duration) *Nodes {
	return &Nodes{cluster: c, budget: budget}
}

// Count is how many nodes there are and how many of them are ready.
type Count struct{ Total, Ready int }

// Count counts the nodes.
func (n *Nodes) Count(ctx context.Context) (Count, error) {
	list, err := n.list(ctx)
	if err != nil {
		return Count{}, err
	}
	count := Count{Total: len(list.Items)}
	for i := range list.Items {
		if healthOf(&list.Items[i]).Ready {
			count.Ready++
		}
	}
	return count, nil
}

// ready names the nodes that are ready.
func (n *Nodes) ready(ctx context.Context) (map[string]bool, error) {
	list, err := n.list(ctx)
	if err != nil {
		return nil, err
	}
	names := map[string]bool{}
	for i := range list.Items {
		if healthOf(&list.Items[i]).Ready {
			names[list.Items[i].Name] = true
		}
	}
	return names, nil
}

// List gives all nodes, oldest first.
func (n *Nodes) List(ctx context.Context) ([]corev1.Node, error) {
	list, err := n.list(ctx)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(list.Items, func(a, b corev1.Node) int {
		return a.CreationTimestamp.Compare(b.CreationTimestamp.Time)
	})
	return list.Items, nil
}

func (n *Nodes) list(ctx context.Context) (*corev1.NodeList, error) {
	list := &corev1.NodeList{}
	err := n.cluster.Retry(ctx, n.budget, func(ctx context.Context) error {
		// rbac: nodes list
		return n.cluster.REST().Get().Resource("nodes").Do(ctx).Into(list)
	})
	if err != nil {
		return nil, fmt.Errorf("listing nodes: %w", err)
	}
	return list, nil
}

// Health is how a node is.
type Health struct {
	// Exists is false when the cluster has no such node (any more).
	Exists bool
	// Ready is whether its kubelet reports in and is well; Reason says why
	// not, in the cluster's words.
	Ready  bool
	Reason string
	// Since is since when it has been so, by the cluster's clock.
	Since time.Time
	// Joined is when the node joined the cluster.
	Joined time.Time
	// Arch is its architecture, as in GOARCH.
	Arch string
	// Allocatable is what Pods can have of the node.
	Allocatable corev1.ResourceList
}

// Health reads one node, once.
func (n *Nodes) Health(ctx context.Context, name string) (Health, error) {
	node := &corev1.Node{}
	// rbac: nodes get
	err := n.cluster.REST().Get().Resource("nodes").Name(name).Do(ctx).Into(node)
	if apierrors.IsNotFound(err) {
		return Health{}, nil
	}
	if err != nil {
		return Health{}, fmt.Errorf("reading node %s: %w", name, err)
	}
	return healthOf(node), nil
}

// Lost reports whether a node in this health counts as lost at a time: it does
// not exist any more, or has not been ready for as long as limit. Until then its
// kubelet may only have been restarted; it still runs what it ran, and carries
// deletions out. Everything that decides about a node that does not answer asks
// here.
func (h Health) Lost(now time.Time, limit time.Duration) bool {
	return !h.Exists || !h.Ready && now.Sub(h.Since) >= limit
}

// HealthOf is how a node is that was read.
func HealthOf(node *corev1.Node) Health { return healthOf(node) }

func healthOf(node *corev1.Node) Health {
	joined := node.CreationTimestamp.Time
	h := Health{Exists: true, Reason: "the node has not reported in yet", Since: joined, Joined: joined, Arch: node.Status.NodeInfo.Architecture, Allocatable: node.Status.Allocatable}
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			h.Ready = c.Status == corev1.ConditionTrue
			h.Reason = c.Reason + ": " + c.Message
			h.Since = c.LastTransitionTime.Time
		}
	}
	return h
}
