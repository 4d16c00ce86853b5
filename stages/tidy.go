package stages

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/socialweb-computer/tenant-executor/stages/state"
)

// What a stage gives to leftovers of others. A job must hardly notice.
const (
	// sweepBudget is how long prepare looks for leftovers, and sweepAtOnce how
	// many it removes.
	sweepBudget = time.Second
	sweepAtOnce = 5
	// undoneBudget is how long cleanup does what others could not, and
	// undoneAtOnce how many of them a stage does.
	undoneBudget = 3 * time.Second
	undoneAtOnce = 3
)

// How long prepare waits for a Pod that is ending, and how often it looks.
const (
	roomBudget = 2 * time.Second
	roomPoll   = 200 * time.Millisecond
)

// tidy removes what earlier jobs of this runner have left, within a small
// cost: one list, a few deletions. It never fails prepare. Where a Pod of the
// runner is just ending, it waits a moment for its node: the cluster counts
// Pods, so a new one beside one that is ending would boot a node for nothing.
func (d *Driver) tidy(ctx context.Context, host Host) {
	d.forget()
	if d.job.RunnerToken == "" {
		// A stage run by hand, without a runner that could have left anything.
		return
	}
	left := d.leftovers(host)
	limited, cancel := context.WithTimeout(ctx, sweepBudget)
	defer cancel()
	namespaces, _ := left.ofJobs(limited) // another prepare sees them as well
	list, err := left.list(limited)
	if err != nil {
		return // what follows meets the same error, and tells it
	}
	ending := d.sweep(limited, left, list)
	d.sweepNamespaces(limited, left, namespaces, list)
	d.noteReaped(left.undo(limited, undoneAtOnce))
	cancel()
	if len(ending) > 0 {
		left.awaitRoom(ctx, ending)
	}
}

// sweep removes leftovers, and gives the Pods that are about to free a node.
func (d *Driver) sweep(ctx context.Context, left *leftovers, list []corev1.Pod) map[types.UID]bool {
	now := d.clock.Now()
	ending := map[types.UID]bool{}
	for i := range list {
		p := &list[i]
		if p.DeletionTimestamp != nil && p.Spec.NodeName != "" && now.Before(p.DeletionTimestamp.Add(roomBudget)) {
			ending[p.UID] = true
		}
	}
	rules := left.rules(ctx)
	rules.Replaced = d.job.Key()
	for i, l := range rules.Pods(list) {
		if i == sweepAtOnce {
			break
		}
		if left.reap.Remove(ctx, l) != nil {
			continue
		}
		d.noteReaped(1)
		if l.Node != "" && !l.Force {
			ending[l.UID] = true
		}
	}
	return ending
}

// awaitRoom waits until one of the Pods is gone.
func (l *leftovers) awaitRoom(ctx context.Context, ending map[types.UID]bool) {
	ctx, cancel := context.WithTimeout(ctx, roomBudget)
	defer cancel()
	for {
		list, err := l.list(ctx)
		if err != nil || count(list, ending) < len(ending) {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-l.clock.After(roomPoll):
		}
	}
}

func count(list []corev1.Pod, of map[types.UID]bool) int {
	n := 0
	for i := range list {
		if of[list[i].UID] {
			n++
		}
	}
	return n
}

// tellNoState says that nothing can be remembered, where that is so.
func (d *Driver) tellNoState() {
	if d.stateErr != nil {
		d.log.Warn("This host remembers nothing for the driver, neither cleanups that fail nor whose Pods are left: %v", d.stateErr)
	}
}

// own is the cleanup of this job.
func (d *Driver) own() state.Undone {
	return state.Undone{
		Cluster: d.cluster.Identity(), Key: d.job.Key(), Namespace: d.settings.Kubernetes.Namespace,
		JobID: d.job.ID, Since: d.clock.Now(),
	}
}

// remember writes down that this job's cleanup is still to be done.
func (d *Driver) remember() {
	if d.stateErr != nil {
		return // it is told; see tellNoState
	}
	if err := d.state.AddUndone(d.own()); err != nil {
		d.log.Warn("This cleanup cannot be remembered for later, so the job's Pods stay until a sweep finds them: %v", err)
	}
}

// forget takes over what an earlier attempt of this job could not clean up:
// nobody else may do it once this attempt has a Pod.
func (d *Driver) forget() {
	if err := d.state.RemoveUndone(d.own()); err != nil {
		d.log.Warn("%v", err)
	}
}
