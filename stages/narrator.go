package stages

import (
	"context"
	"fmt"
	"time"

	"github.com/socialweb-computer/tenant-executor/executor/joblog"
	"github.com/socialweb-computer/tenant-executor/kube/pods"
)

// narrator tells the reader of the job log what prepare waits for: each change
// once, and a line a minute while nothing changes.
type narrator struct {
	driver *Driver
	said   string
	blind  bool
}

// patience is how long a container's start may take before it is worth a line.
// Warm starts stay silent.
const patience = 20 * time.Second

// Waiting implements pods.Observer.
func (n *narrator) Waiting(ctx context.Context, state pods.State, inPhase time.Duration) {
	n.blind = false
	switch state.Phase {
	case pods.Unscheduled:
		n.say(inPhase, "Waiting for a node: %s", n.nodes(ctx, state))
	case pods.Starting:
		if state.Detail != "" {
			n.say(inPhase, "Starting on node %s: %s", state.Node, state.Detail)
		} else if inPhase >= patience {
			n.say(inPhase, "Starting on node %s: pulling images and starting containers", state.Node)
		}
	}
}

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

// nodes says how the cluster stands. Counting the nodes must not hold up the
// wait, so it gets a moment and no more.
func (n *narrator) nodes(ctx context.Context, state pods.State) string {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	count, err := n.driver.nodes.Count(ctx)
	switch {
	case err != nil:
		return state.Detail
	case count.Total == 0:
		return "the cluster has none at present and boots one"
	case count.Ready < count.Total:
		return fmt.Sprintf("%d of %d nodes are ready", count.Ready, count.Total)
	}
	return fmt.Sprintf("all %d nodes run jobs or do not fit; the cluster boots another unless it is at its ceiling", count.Total)
}
