package capacity

import (
	"slices"
	"time"

	"github.com/socialweb-computer/tenant-executor/kube/pods"
)

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
	// Booting: a node is on its way, as far as anybody can tell.
	Booting Reason = iota
	// Joining: a node has joined and is not ready yet.
	Joining
	// Full: every node that there may be carries a job.
	Full
	// Unfit: no node that is there takes the Pod, and none is only busy.
	Unfit
	// Starved: the gateway is known to count several Pods for a node, and boots
	// none for this one.
	Starved
	// Stalled: no node has come for longer than boots take, and nobody knows why.
	Stalled
	// Gated: the scheduler may not look at the Pod yet.
	Gated
	// Told: the scheduler speaks of the Pod itself.
	Told
	// Due: a node is free, and the scheduler has to give it away.
	Due
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

// Why says why a Pod waits, for which no node has come for so long. What the
// scheduler says of the nodes counts before what the Pods on them say: it knows
// them all.
func (g Gateway) Why(o Outlook, v pods.Verdict, quiet time.Duration) Reason {
	taken := max(o.Busy, v.Count(pods.Taken))
	unfit := o.Unfit(v)
	switch {
	case len(v.Gates) > 0:
		return Gated
	case v.Words != "":
		return Told
	case o.Ready < o.Nodes:
		return Joining
	case unfit > 0 && taken == 0, o.Nodes > 0 && v.Count(pods.Unsuitable) >= o.Nodes:
		return Unfit
	case unfit == 0 && !o.Narrow && o.Free > 0 && o.Place <= o.Free:
		return Due
	case o.Nodes >= g.Ceiling:
		return Full
	case g.PodsPerNode > 1 && o.Nodes >= nodesFor(max(o.Unfinished, taken+o.Queue), g.PodsPerNode):
		return Starved
	case quiet >= g.doubt():
		return Stalled
	}
	return Booting
}

// Unfit is how many nodes the scheduler calls unfit for the Pod although they
// are ready and carry no other. One that carries a job may lack only what the
// job has, and every node is tainted until it is ready.
func (o Outlook) Unfit(v pods.Verdict) int {
	used := max(0, o.Busy-v.Count(pods.Taken))
	return v.Count(pods.Unsuitable) + min(v.Count(pods.Tainted), o.Kept) + max(0, v.Count(pods.Crowded)-used)
}

// nodesFor is how many nodes the gateway wants for so many Pods.
func nodesFor(pods, perNode int) int { return (pods + perNode - 1) / perNode }
