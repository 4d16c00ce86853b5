package stages

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/socialweb-computer/tenant-executor/executor/failure"
	"github.com/socialweb-computer/tenant-executor/executor/joblog"
	"github.com/socialweb-computer/tenant-executor/kube/capacity"
	"github.com/socialweb-computer/tenant-executor/kube/pods"
)

// nodeWait is why a job's Pod waits for a node.
type nodeWait struct {
	gateway capacity.Gateway
	outlook capacity.Outlook
	verdict pods.Verdict
	reason  capacity.Reason
	// quiet is for how long no node has come.
	quiet time.Duration
	// beyond is what the Pod asks for and no node has.
	beyond []capacity.Excess
	// home is the namespace of the job.
	home string
}

// nodeWait looks at a Pod that no node has taken.
func (d *Driver) nodeWait(p *corev1.Pod, v pods.Verdict, o capacity.Outlook, waited time.Duration) nodeWait {
	w := nodeWait{gateway: d.gateway(), outlook: o, verdict: v, quiet: o.Quiet(d.clock.Now(), waited), home: p.Namespace}
	w.reason = w.gateway.Why(o, v, w.quiet)
	if w.reason != capacity.Gated && w.reason != capacity.Told {
		w.beyond = capacity.Beyond(capacity.Requests(&p.Spec), o.Largest)
	}
	if len(w.beyond) > 0 {
		w.reason = capacity.Unfit
	}
	return w
}

// gateway is what is known of the gateway.
func (d *Driver) gateway() capacity.Gateway {
	return capacity.Gateway{
		Ceiling:     d.settings.Tenant.Ceiling,
		PodsPerNode: d.settings.Tenant.PodsPerNode,
		Boots:       d.history.Boots(),
	}
}

// note is a part of a line; docs/troubleshooting.md explains each.
func (nodeWait) note(format string, args ...any) string { return fmt.Sprintf(format, args...) }

// words say why, as the end of a sentence.
func (w nodeWait) words() string {
	o := w.outlook
	switch w.reason {
	case capacity.Gated:
		return w.note("scheduling gate %s is not lifted yet", strings.Join(w.verdict.Gates, ", "))
	case capacity.Told:
		return w.verdict.Words
	case capacity.Due:
		return w.note("the scheduler has not placed the Pod, and %d of %s free", o.Free, are(o.Nodes))
	case capacity.Joining:
		return w.note("%d of %s not ready yet", o.Nodes-o.Ready, are(o.Nodes))
	case capacity.Unfit:
		return w.unfit()
	case capacity.Full:
		return w.busy()
	case capacity.Starved:
		return w.note("the gateway boots one for every %d Pods, and %s there for %d job Pods", w.gateway.PodsPerNode, are(o.Nodes), max(o.Unfinished, o.Busy+o.Queue))
	case capacity.Stalled:
		if o.Nodes == 0 {
			return w.note("the cluster has none, and none has come")
		}
		return w.note("%s, and no other has come", w.busy())
	}
	return w.busy()
}

// are is a number of nodes as the subject of a sentence.
func are(nodes int) string {
	if nodes == 1 {
		return "1 node is"
	}
	return fmt.Sprintf("%d nodes are", nodes)
}

// busy says what the nodes do that there are.
func (w nodeWait) busy() string {
	o, most := w.outlook, w.gateway.Ceiling
	switch unfit := o.Unfit(w.verdict); {
	case o.Nodes == 0:
		return w.note("the cluster has none")
	case unfit > 0 && unfit < o.Nodes:
		return w.note("%d of %s busy, and the others do not fit: %s", o.Nodes-unfit, are(o.Nodes), w.verdict.Unfit())
	case o.Free == 1 && o.Place > o.Free && !o.Narrow:
		return w.note("the free node goes to the job before this one")
	case o.Free > 1 && o.Place > o.Free && !o.Narrow:
		return w.note("the %d free nodes go to jobs before this one", o.Free)
	case o.Nodes == 1:
		return w.note("the only node is busy (maximum %d)", most)
	}
	return w.note("all %d nodes are busy (maximum %d)", o.Nodes, most)
}

// unfit says why no node does.
func (w nodeWait) unfit() string {
	switch {
	case len(w.beyond) > 0:
		return w.note("the job's containers ask for %s", excess(w.beyond))
	case w.outlook.Nodes == 1:
		return w.note("the only node does not fit: %s", w.verdict.Unfit())
	}
	return w.note("none of the %d nodes fits: %s", w.outlook.Nodes, w.verdict.Unfit())
}

// excess is what is asked for beyond what a node has.
func excess(all []capacity.Excess) string {
	var parts []string
	for _, e := range all {
		parts = append(parts, fmt.Sprintf("%s of %s, and the largest node has %s", e.Asked.String(), e.Resource, e.Has.String()))
	}
	return strings.Join(parts, "; ")
}

// place is the Pod's place in a queue that is worth speaking of.
func (w nodeWait) place() string {
	o := w.outlook
	worth := 2
	if w.reason == capacity.Full {
		worth = 1
	}
	switch {
	case w.reason == capacity.Unfit, w.reason == capacity.Gated, w.reason == capacity.Told, o.Queue < worth:
		return ""
	case o.Narrow:
		return fmt.Sprintf("; place %d of %d in the queue of namespace %s", o.Place, o.Queue, w.home)
	}
	return fmt.Sprintf("; place %d of %d in the queue", o.Place, o.Queue)
}

// boots says how long nodes take to boot, as far as that is known and of interest.
func (w nodeWait) boots(waited time.Duration) string {
	g := w.gateway
	usual, slowest := joblog.Duration(g.Usual()), joblog.Duration(g.Slowest())
	switch {
	case w.reason != capacity.Booting && w.reason != capacity.Joining, g.Slowest() == 0:
		return ""
	case waited > g.Slowest()*5/4: // a little more is nothing to speak of
		return fmt.Sprintf("; no recent boot took this long (%s at most)", slowest)
	case w.reason == capacity.Joining:
		return ""
	case usual == slowest:
		return fmt.Sprintf("; recent boots took %s", usual)
	}
	return fmt.Sprintf("; recent boots took %s, %s at most", usual, slowest)
}

// suspects are what may keep the gateway from booting a node, as far as it is not
// known.
func (w nodeWait) suspects() string {
	all := []string{"be paused", "find no machine to rent"}
	if w.outlook.Nodes > 0 {
		all = append(all, fmt.Sprintf("boot fewer nodes than the %d of [tenant] ceiling", w.gateway.Ceiling))
		if w.gateway.PodsPerNode == 0 {
			all = append(all, "count several Pods for one node (SOCIALWEB_CLUSTERPROVIDER_SCALE_PODS_PER_NODE; job Pods share none)")
		}
	}
	last := len(all) - 1
	return strings.Join(all[:last], ", ") + " or " + all[last]
}

// failure is that of a Pod which waited for too long. What the next attempt would
// meet as well is no failure of the cluster.
func (w nodeWait) failure(waited time.Duration) error {
	after, why := joblog.Duration(waited), w.words()
	switch {
	case len(w.beyond) > 0:
		return failure.New(failure.Oversized, "no node for the job after %s: %s", after, why)
	case w.reason == capacity.Unfit:
		return failure.New(failure.NodeUnfit, "no node for the job after %s: %s", after, why)
	case w.reason == capacity.Gated:
		return failure.New(failure.Gated, "no node for the job after %s: %s", after, why)
	case w.reason == capacity.Full:
		return failure.New(failure.NodesBusy, "no node for the job after %s: %s%s", after, why, w.place())
	}
	return failure.New(failure.NoNode, "no node for the job after %s: %s%s", after, why, w.place())
}
