package stages

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/socialweb-computer/tenant-executor/kube/events"
	"github.com/socialweb-computer/tenant-executor/kube/pods"
)

// EventView is something that the cluster has noted of a job's Pod or its node.
type EventView struct {
	At    time.Time `json:"at"`
	First time.Time `json:"first"`
	Count int       `json:"count"`
	// About is KIND/NAME, Container the container of a Pod, "" for the whole.
	About     string `json:"about"`
	Container string `json:"container,omitempty"`
	Warning   bool   `json:"warning"`
	Reason    string `json:"reason"`
	Message   string `json:"message"`
	Source    string `json:"source"`
}

// beforePod is how long before the Pod was made a node's events are of
// interest: its boot.
const beforePod = 10 * time.Minute

// EventLog reads the events of one job's Pod and of its node again and again.
// Make it with Driver.EventLog.
type EventLog struct {
	driver *Driver
	client *events.Client
	pod    *corev1.Pod
	seen   map[EventView]bool
	// blind is set where the driver may not read the events of nodes.
	blind bool
}

// EventLog looks for the Pod.
func (d *Driver) EventLog(ctx context.Context) (*EventLog, error) {
	ref, err := d.findPod(ctx)
	if err != nil {
		return nil, err
	}
	found, err := d.pods.Get(ctx, ref)
	if err != nil {
		return nil, d.requestFailure(err)
	}
	return &EventLog{driver: d, client: events.NewClient(d.cluster, handBudget), pod: found, seen: map[EventView]bool{}}, nil
}

// New gives the events that were not given before, in the order of time. The
// Pod's node is looked up anew: it may have got one since.
func (l *EventLog) New(ctx context.Context) ([]EventView, error) {
	all, err := l.client.OfPod(ctx, l.pod)
	if err != nil {
		return nil, l.driver.requestFailure(err)
	}
	if now, err := l.driver.pods.Get(ctx, pods.RefTo(l.pod)); err == nil {
		l.pod = now
	}
	if node := l.pod.Spec.NodeName; node != "" && !l.blind {
		more, err := l.client.OfNode(ctx, node, l.pod.CreationTimestamp.Add(-beforePod))
		switch {
		case apierrors.IsForbidden(err):
			l.blind = true
			l.driver.log.Warn("The events of node %s are not shown: the driver may not list events in namespace %s (see examples/rbac.yaml).", node, events.NodeNamespace)
		case err != nil:
			return nil, l.driver.requestFailure(err)
		}
		all = append(all, more...)
	}
	events.Sort(all)
	fresh := []EventView{}
	for _, e := range all {
		v := EventView{
			At: e.At, First: e.First, Count: e.Count, About: e.Kind + "/" + e.Object, Container: e.Container,
			Warning: e.Warning, Reason: e.Reason, Message: e.Message, Source: e.Source,
		}
		if !l.seen[v] {
			l.seen[v] = true
			fresh = append(fresh, v)
		}
	}
	return fresh, nil
}
