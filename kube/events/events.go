// Package events reads what the cluster has noted of Pods and nodes.
package events

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/socialweb-computer/tenant-executor/kube/cluster"
)

// Client reads the events of a cluster. Requests are repeated for as long as
// budget says.
type Client struct {
	cluster *cluster.Client
	budget  time.Duration
}

// NewClient is a Client that repeats requests for at most budget.
func NewClient(c *cluster.Client, budget time.Duration) *Client {
	return &Client{cluster: c, budget: budget}
}

// NodeNamespace is where the events of nodes are, since a node has no namespace
// and an event needs one (k8s.io/client-go/tools/record, makeEvent).
const NodeNamespace = metav1.NamespaceDefault

// Event is one thing that was noted.
type Event struct {
	// At is when it was last seen, First when first; Count is how often.
	At, First time.Time
	Count     int
	// Kind and Object are what it is about.
	Kind, Object string
	// Container is the one of the Pod that it is about, "" for the whole.
	Container string
	// Warning is whether it is one.
	Warning         bool
	Reason, Message string
	// Source is who noted it.
	Source string

	// order tells events of one second apart: most are stamped by the second.
	order uint64
}

// OfPod gives the events of a Pod, oldest first. Without a UID it is every Pod
// of that name.
func (c *Client) OfPod(ctx context.Context, pod *corev1.Pod) ([]Event, error) {
	about := fields.Set{"involvedObject.kind": "Pod", "involvedObject.name": pod.Name}
	if pod.UID != "" {
		about = fields.Set{"involvedObject.uid": string(pod.UID)}
	}
	return c.of(ctx, pod.Namespace, about)
}

// OfNode gives the events of a node, oldest first, back to a time.
func (c *Client) OfNode(ctx context.Context, name string, since time.Time) ([]Event, error) {
	all, err := c.of(ctx, NodeNamespace, fields.Set{"involvedObject.kind": "Node", "involvedObject.name": name})
	return slices.DeleteFunc(all, func(e Event) bool { return e.At.Before(since) }), err
}

func (c *Client) of(ctx context.Context, namespace string, about fields.Set) ([]Event, error) {
	list := &corev1.EventList{}
	err := c.cluster.Retry(ctx, c.budget, func(ctx context.Context) error {
		// rbac: events list
		return c.cluster.REST().Get().Namespace(namespace).Resource("events").
			VersionedParams(&metav1.ListOptions{FieldSelector: about.AsSelector().String()}, c.cluster.ParameterCodec()).Do(ctx).Into(list)
	})
	if err != nil {
		return nil, fmt.Errorf("listing the events of %s in namespace %s: %w", about, namespace, err)
	}
	var all []Event
	for i := range list.Items {
		all = append(all, read(&list.Items[i]))
	}
	Sort(all)
	return all, nil
}

// Sort puts the oldest first.
func Sort(all []Event) {
	slices.SortStableFunc(all, func(a, b Event) int {
		return cmp.Or(a.At.Truncate(time.Second).Compare(b.At.Truncate(time.Second)), cmp.Compare(a.order, b.order))
	})
}

// read reads an event in either of its two forms: with a count, or with the
// series of the newer API, in which the old fields are empty.
func read(e *corev1.Event) Event {
	v := Event{
		At: e.LastTimestamp.Time, First: e.FirstTimestamp.Time, Count: max(int(e.Count), 1),
		Kind: e.InvolvedObject.Kind, Object: e.InvolvedObject.Name,
		Warning: e.Type == corev1.EventTypeWarning, Reason: e.Reason, Message: e.Message, Source: e.Source.Component,
	}
	// An event's name ends with the time in nanoseconds at which it was first
	// noted (k8s.io/client-go/tools/record/util, GenerateEventName).
	_, noted, _ := strings.Cut(e.Name, ".")
	v.order, _ = strconv.ParseUint(noted[strings.LastIndexByte(noted, '.')+1:], 16, 64)
	if rest, found := strings.CutPrefix(e.InvolvedObject.FieldPath, "spec.containers{"); found {
		v.Container = strings.TrimSuffix(rest, "}")
	}
	if v.First.IsZero() {
		v.First = e.EventTime.Time
	}
	if e.Series != nil {
		v.Count, v.At = int(e.Series.Count), e.Series.LastObservedTime.Time
	}
	if v.At.IsZero() {
		v.At = v.First
	}
	if v.At.IsZero() {
		v.At, v.First = e.CreationTimestamp.Time, e.CreationTimestamp.Time
	}
	if v.Source == "" {
		v.Source = e.ReportingController
	}
	return v
}
