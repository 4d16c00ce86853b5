package stages

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/socialweb-computer/tenant-executor/executor/pod"
	"github.com/socialweb-computer/tenant-executor/kube/reap"
	"github.com/socialweb-computer/tenant-executor/stages/state"
)

// What a stage gives to leftovers of others. A job must hardly notice.
const (
	// sweepBudget is how long prepare looks for leftovers, and sweepAtOnce how
	// many it removes.
	sweepBudget = 3 * time.Second
	sweepAtOnce = 5
	// undoneBudget is how long cleanup does what others could not, and
	// undoneAtOnce how many of them a stage does.
	undoneBudget = 3 * time.Second
	undoneAtOnce = 3
)

// tidy removes what earlier jobs of this runner have left, within a small
// cost: one list, a few deletions. It never fails prepare. Where a Pod is just
// ending whose node the job needs, it waits a moment; see awaitRoom.
func (d *Driver) tidy(ctx context.Context, host Host) {
	d.forget()
	if d.job.RunnerToken == "" {
		// A stage run by hand, without a runner that could have left anything.
		return
	}
	left := d.leftovers(host)
	limited, cancel := context.WithTimeout(ctx, sweepBudget)
	defer cancel()
	namespaces, _ := left.ofJobs(limited, pod.SelectorMade()) // another prepare sees them as well
	list, err := left.list(limited)
	if err != nil {
		return // what follows meets the same error, and tells it
	}
	deleted := d.sweep(limited, left, list)
	d.sweepNamespaces(limited, left, namespaces, list)
	d.noteReaped(left.undo(limited, undoneAtOnce))
	cancel()
	d.awaitRoom(ctx, list, deleted)
}

// sweep removes leftovers, and gives the Pods that it has deleted.
func (d *Driver) sweep(ctx context.Context, left *leftovers, list []corev1.Pod) map[types.UID]bool {
	rules := left.rules(ctx)
	rules.Replaced = d.job.Key()
	found := append(rules.Pods(jobs(list)), reap.Ended(placeholders(list))...)
	deleted := map[types.UID]bool{}
	tried := 0
	for _, l := range found {
		if l.Reason == reap.Finalizer {
			continue // nobody but its owner can do anything
		}
		if tried++; tried > sweepAtOnce {
			break
		}
		if left.remove(ctx, l) == nil {
			d.noteReaped(1)
			deleted[l.UID] = true
		}
	}
	return deleted
}

// ErrNoStateWanted is the reason for a missing state folder of one who wants none.
var ErrNoStateWanted = errors.New("no state folder is wanted")

// tellNoState says that nothing can be remembered, where that is so.
func (d *Driver) tellNoState() {
	if d.stateErr != nil && !errors.Is(d.stateErr, ErrNoStateWanted) {
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
	own := d.own()
	own.Owner = d.host().annotation()
	if err := d.state.AddUndone(own); err != nil {
		d.log.Warn("This cleanup cannot be remembered for later, so the job's Pods stay until a sweep finds them: %v", err)
	}
}

// forget takes over what an earlier attempt of this job could not clean up:
// nobody else may do it once this attempt has a Pod.
func (d *Driver) forget() {
	own := d.own()
	all, err := d.state.ListUndone()
	if err != nil {
		all = []state.Undone{own}
	}
	for _, u := range all {
		// Whatever the cluster was called then: its CA may have been replaced.
		if u.Key != own.Key || u.Namespace != own.Namespace {
			continue
		}
		if err := d.state.RemoveUndone(u); err != nil {
			d.log.Warn("%v", err)
		}
	}
}
