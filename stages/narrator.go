package stages

import (
	"context"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/socialweb-computer/tenant-executor/executor/failure"
	"github.com/socialweb-computer/tenant-executor/executor/joblog"
	"github.com/socialweb-computer/tenant-executor/executor/pod"
	"github.com/socialweb-computer/tenant-executor/kube/capacity"
	"github.com/socialweb-computer/tenant-executor/kube/pods"
)

// narrator tells the reader of the job log what prepare waits for.
type narrator struct {
	driver *Driver
	news   news
	// made is the Pod that waits.
	made *corev1.Pod
	// giveUp ends a wait that is in vain, with the failure.
	giveUp context.CancelCauseFunc
	// record keeps what was seen of the wait for a node.
	record capacity.WaitRecord
	// warnings are what the cluster says of the Pod, asked for at warnedAt.
	warnings *podWarnings
	warnedAt time.Time
	// logs shows what containers say that run while others still start.
	logs *containerLogs
	// node is where the Pod is, as far as it was seen.
	node atomic.Pointer[string]
	// wait is why the Pod waited for a node when it was looked at last, for one
	// reason since a time; nil before.
	wait     *nodeWait
	since    time.Time
	suspects bool
	blind    bool
}

func (d *Driver) narrator(created *corev1.Pod) *narrator {
	return &narrator{
		driver: d, news: news{log: d.log, clock: d.clock}, made: created,
		warnings: d.podWarnings(pods.RefTo(created)),
	}
}

// patience is how long a container's start may take before it is worth a line.
// Warm starts stay silent. So does a scheduler that has something to do.
const patience = 20 * time.Second

// settling is how long the scheduler's words may be older than the nodes that it
// speaks of.
const settling = 5 * time.Second

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
			n.news.say(inPhase, "Starting on node %s: %s", state.Node, state.Detail)
		} else if inPhase >= patience {
			n.news.say(inPhase, "Starting on node %s: pulling images and starting containers", state.Node)
		}
		if now := n.driver.clock.Now(); inPhase >= patience && now.Sub(n.warnedAt) >= remindEvery {
			// A start that takes long may have a reason that only these tell:
			// a volume that cannot be mounted, a sandbox that does not start.
			n.warnedAt = now
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
		n.driver.log.Warn("The tenant cluster does not answer; trying again: %v", err)
	}
	n.blind = true
}

// waitForNode says why no node has taken the Pod yet.
func (n *narrator) waitForNode(ctx context.Context, state pods.State, waited time.Duration) {
	d := n.driver
	limited, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	o, err := n.outlook(limited)
	if err != nil {
		n.news.say(waited, "Waiting for a node%s", because(state.Detail))
		return
	}
	n.record.See(o, d.gateway(), waited)
	if o.Place == 0 {
		return // a node has taken the Pod by now
	}
	w := d.nodeWait(n.made, state.Verdict, o, waited)
	if n.wait == nil || n.wait.reason != w.reason {
		n.since = d.clock.Now()
	}
	n.wait = &w
	lasted := d.clock.Now().Sub(n.since)
	switch {
	case w.reason == capacity.Due && lasted < patience:
	case w.reason == capacity.Unfit && len(w.beyond) == 0 && lasted < settling:
	case w.reason == capacity.Booting:
		n.news.say(waited, "Waiting for a node to boot: %s%s%s", w.words(), w.place(), w.boots(waited))
	default:
		n.news.say(waited, "Waiting for a node: %s%s%s", w.words(), w.place(), w.boots(waited))
	}
	n.warn(w)
	n.leave(w)
}

// outlook is how the cluster stands for the Pod.
func (n *narrator) outlook(ctx context.Context) (capacity.Outlook, error) {
	return n.driver.nodes.Outlook(ctx, n.made.Namespace, pod.SelectorAll(), n.made.UID)
}

// warn tells the operator once what there is to look at.
func (n *narrator) warn(w nodeWait) {
	if n.suspects {
		return
	}
	switch w.reason {
	case capacity.Starved:
		n.driver.log.Warn("The gateway counts %d Pods for one node ([tenant] pods_per_node), while job Pods do not share nodes. "+
			"The operator has to set SOCIALWEB_CLUSTERPROVIDER_SCALE_PODS_PER_NODE to 1; until then this job waits for another one to end.", w.gateway.PodsPerNode)
	case capacity.Stalled:
		n.driver.log.Warn("No node has come for %s. The gateway may %s: the operator has to look at it.", joblog.Duration(w.quiet), w.suspects())
	default:
		return
	}
	n.suspects = true
}

// leave ends a wait that is in vain: a node was booted while the Pod waited, and
// is too small as all others are. The next ones will be like it, unless settings
// know better.
func (n *narrator) leave(w nodeWait) {
	d := n.driver
	if len(w.beyond) == 0 || !w.outlook.Newest.After(n.made.CreationTimestamp.Time) || w.outlook.Ready < w.outlook.Nodes {
		return
	}
	size := configuredSize(d.settings.Tenant)
	for _, e := range w.beyond {
		if _, known := size[e.Resource]; known {
			return
		}
	}
	d.history.AddSize(d.clock.Now(), w.outlook.Largest)
	n.giveUp(failure.New(failure.Oversized, "the job's containers ask for %s", excess(w.beyond)))
}
