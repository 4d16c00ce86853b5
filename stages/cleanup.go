package stages

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/socialweb-computer/tenant-executor/executor/pod"
	"github.com/socialweb-computer/tenant-executor/kube/capacity"
	"github.com/socialweb-computer/tenant-executor/kube/pods"
)

// quickGrace is how long the processes of a deleted Pod have to end. The
// keeper ends at once, so nothing is gained by more; with none at all the Pod
// would vanish while its processes still hold the node.
const quickGrace = time.Second

// Cleanup deletes every Pod of the job, of whichever attempt. It needs nothing
// of the earlier stages, may be called again, and does not wait for the Pods'
// end: the runner gives it little time when it shuts down.
//
// What it cannot do is remembered on the host, and a later stage does it. In
// turn it does what others could not.
func (d *Driver) Cleanup(ctx context.Context) error {
	d.warnOfExpiry()
	if err := d.deletePods(ctx); err != nil {
		d.remember()
		return err
	}
	d.forget()
	left := d.leftovers(d.host())
	ctx, cancel := context.WithTimeout(ctx, undoneBudget)
	defer cancel()
	left.undo(ctx, undoneAtOnce)
	return nil
}

func (d *Driver) deletePods(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, d.settings.Cleanup.Timeout.Value())
	defer cancel()
	list, err := d.pods.List(ctx, d.settings.Kubernetes.Namespace, pod.Selector(d.job))
	if err != nil {
		return d.requestFailure(err)
	}
	var failed []error
	for i := range list {
		if err := d.remove(ctx, &list[i]); err != nil {
			failed = append(failed, fmt.Errorf("left behind: %w", err))
		}
	}
	if len(failed) > 0 {
		return d.requestFailure(errors.Join(failed...))
	}
	return nil
}

// remove deletes one Pod. On a node that is lost nobody would carry the
// deletion out, and the Pod would count as unfinished for ever: there its
// processes are gone with the node, and the object is removed at once. A node
// that is not ready for a moment still carries it out.
func (d *Driver) remove(ctx context.Context, found *corev1.Pod) error {
	ref := pods.RefTo(found)
	if found.Spec.NodeName != "" {
		if health, err := d.nodes.Health(ctx, found.Spec.NodeName); err == nil && d.lost(health) {
			return d.pods.ForceDelete(ctx, ref)
		}
	}
	if found.DeletionTimestamp != nil {
		return nil
	}
	return d.pods.Delete(ctx, ref, quickGrace)
}

// lost says whether a node counts as lost: it is gone, or has not been ready
// for as long as a running stage would bear.
func (d *Driver) lost(h capacity.Health) bool {
	return !h.Exists || !h.Ready && d.clock.Now().Sub(h.Since) >= d.settings.Run.NodeLost.Value()
}
