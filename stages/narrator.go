package stages

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/socialweb-computer/tenant-executor/executor/joblog"
	"github.com/socialweb-computer/tenant-executor/executor/pod"
	"github.com/socialweb-computer/tenant-executor/kube/capacity"
	"github.com/socialweb-computer/tenant-executor/kube/pods"
)

// narrator tells the reader of the job log what prepare waits for: each change
// once, and a line a minute while nothing changes.
type narrator struct {
	driver *Driver
	// self is the Pod that waits.
	self    types.UID
	gateway capacity.Gateway
	// record keeps what was seen of the wait for a node.
	record capacity.WaitRecord
	// warnings are what the cluster says of the Pod.
	warnings *podWarnings
	// logs shows what containers say that run while others still start.
	logs *containerLogs
	// node is where the Pod is, as far as it was seen.
	node   atomic.Pointer[string]
	said   string
	warned bool
	blind  bool
}

// patience is how long a container's start may take before it is worth a line.
// Warm starts stay silent.
const patience = 20 * time.Second

// lookLimit is how long counting the nodes may hold up the wait.
const lookLimit = 5 * time.Second

// Waiting implements pods.Observer.
func (n *narrator) Waiting(ctx context.Context, state pods.State, inPhase time.Duration) {
	n.blind = false
	n.node.Store(&state.Node)
	switch state.Phase {
	case pods.Unscheduled:
		n.waitForNode(ctx, state, inPhase)
	case pods.Starting:
		if state.Detail != "" {
			n.say(inPhase, "Starting on node %s: %s", state.Node, state.Detail)
		} else if inPhase >= patience {
			n.say(inPhase, "Starting on node %s: pulling images and starting containers", state.Node)
		}
		if inPhase >= patience {
			// A start that takes long may have a reason that only these tell:
			// a volume that cannot be mounted, a sandbox that does not start.
			n.warnings.tell(ctx, nil)
		}
	}
}

// nodeName is the Pod's node, "" while none was seen.
func (n *narrator) nodeName() string {
	if name := n.node.Load(); name != nil {
		return *name
	}
	return ""
}

// Started implements pods.Observer.
func (n *narrator) Started(container string) { n.logs.begin(container) }

// Blind implements pods.Observer.
func (n *narrator) Blind(err error) {
	if !n.blind {
		n.driver.log.Warn("The tenant cluster does not answer, asking again: %v", err)
	}
	n.blind = true
}

// say writes a line unless the same was said; then it only adds how long it
// has lasted.
func (n *narrator) say(inPhase time.Duration, format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	if line == n.said {
		if inPhase < patience {
			return
		}
		n.driver.log.Info("%s (for %s)", line, joblog.Duration(inPhase))
		return
	}
	n.said = line
	n.driver.log.Info("%s", line)
}

// waitForNode says why no node has taken the Pod yet.
func (n *narrator) waitForNode(ctx context.Context, state pods.State, waited time.Duration) {
	limited, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	o, err := n.outlook(limited)
	if err != nil {
		n.say(waited, "Waiting for a node: %s", state.Detail)
		return
	}
	n.record.See(o, n.gateway, waited)
	if o.Place == 0 {
		return // a node has taken the Pod by now
	}
	g := n.gateway
	switch g.Why(o, waited) {
	case capacity.Full:
		n.say(waited, "Waiting for a node: %d of at most %d are there, all busy%s", o.Nodes, g.Ceiling, place(o, 1))
	case capacity.Joining:
		n.say(waited, "Waiting for a node: %d of at most %d are there, %d not ready yet%s%s", o.Nodes, g.Ceiling, o.Nodes-o.Ready, place(o, 2), n.overdue(waited))
	case capacity.Unfit:
		n.say(waited, "Waiting for a node: the Pod fits on none that is free (%s)", state.Detail)
	case capacity.Starved:
		n.starved(o, waited)
	default:
		n.say(waited, "Waiting for a node: %s, one boots%s%s", there(o, g), place(o, 2), n.boots(waited))
	}
}

// outlook looks at the job Pods of all namespaces where jobs may be in others,
// and the driver may look there.
func (n *narrator) outlook(ctx context.Context) (capacity.Outlook, error) {
	d := n.driver
	if d.reach().more {
		o, err := d.nodes.Outlook(ctx, metav1.NamespaceAll, pod.SelectorAll(), n.self)
		if !apierrors.IsForbidden(err) {
			return o, err
		}
	}
	return d.nodes.Outlook(ctx, d.settings.Kubernetes.Namespace, pod.SelectorAll(), n.self)
}

// there is which nodes there are while one boots.
func there(o capacity.Outlook, g capacity.Gateway) string {
	if o.Nodes == 0 {
		return "the cluster has none"
	}
	return fmt.Sprintf("%d of at most %d are there, all busy", o.Nodes, g.Ceiling)
}

// place is the Pod's place in a queue that is worth speaking of.
func place(o capacity.Outlook, worth int) string {
	if o.Queue < worth {
		return ""
	}
	return fmt.Sprintf("; place %d of %d in the queue", o.Place, o.Queue)
}

// starved names the setting that keeps a node from being booted.
func (n *narrator) starved(o capacity.Outlook, waited time.Duration) {
	n.say(waited, "Waiting for a node: %d of at most %d are there for %d job Pods, and none boots", o.Nodes, n.gateway.Ceiling, o.Unfinished)
	if n.warned {
		return
	}
	n.warned = true
	n.driver.log.Warn("It seems that the gateway counts several Pods for one node, while job Pods do not share nodes. " +
		"The operator has to set SOCIALWEB_CLUSTERPROVIDER_SCALE_PODS_PER_NODE to 1; until then this job waits for another one to end.")
}

// boots says how long nodes take to boot, as far as that is known.
func (n *narrator) boots(waited time.Duration) string {
	if late := n.overdue(waited); late != "" {
		return late
	}
	usual, slowest := joblog.Duration(n.gateway.Usual()), joblog.Duration(n.gateway.Slowest())
	switch {
	case n.gateway.Slowest() == 0:
		return ""
	case usual == slowest:
		return fmt.Sprintf("; boots took %s of late", usual)
	}
	return fmt.Sprintf("; boots took %s of late, %s at most", usual, slowest)
}

// overdue says that a boot takes longer than others did; a little more is nothing
// to speak of.
func (n *narrator) overdue(waited time.Duration) string {
	slowest := n.gateway.Slowest()
	if slowest == 0 || waited <= slowest*5/4 {
		return ""
	}
	return fmt.Sprintf("; this takes longer than any boot of late (%s at most)", joblog.Duration(slowest))
}
