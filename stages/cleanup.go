package stages

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/socialweb-computer/tenant-executor/executor/pod"
	"github.com/socialweb-computer/tenant-executor/kube/pods"
)

// quickGrace is how long the processes of a deleted Pod have to end unless
// settings say otherwise. The keeper ends at once, so nothing is gained by more;
// with none at all the Pod would vanish while its processes still hold the node.
const quickGrace = time.Second

// grace is how long the processes of a deleted Pod have to end.
func (d *Driver) grace() time.Duration {
	if seconds := d.settings.Kubernetes.CleanupGrace; seconds != nil {
		return time.Duration(*seconds) * time.Second
	}
	return quickGrace
}

// Cleanup deletes every Pod of the job, of whichever attempt. It needs nothing
// of the earlier stages, may be called again, and does not wait for the Pods'
// end: the runner gives it little time when it shuts down. Only where the
// job's node is to be held it waits, for a short while.
//
// What it cannot do is remembered on the host, and a later stage does it. In
// turn it does what others could not.
func (d *Driver) Cleanup(ctx context.Context) error {
	// What is said comes last: whoever should hear it may be gone.
	defer d.warnOfOrigin()
	defer d.warnOfExpiry()
	limited, cancel := context.WithTimeout(ctx, d.settings.Cleanup.Timeout.Value())
	defer cancel()
	if d.holdFailed(limited) {
		d.forget()
		d.undoOthers(ctx)
		return nil
	}
	d.podNote().remove()
	ended, spared, err := d.deletePods(limited)
	if err == nil && !spared {
		err = d.deleteNamespace(limited)
	}
	if err != nil {
		d.remember()
		return err
	}
	d.forget()
	d.linger(limited, ended)
	d.undoOthers(ctx)
	return nil
}

func (d *Driver) undoOthers(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, undoneBudget)
	defer cancel()
	d.noteReaped(d.leftovers(d.host()).undo(ctx, undoneAtOnce))
}

// deletePods deletes the job's Pods, but for one that another runner's process
// has made, which has the same job in hand; it says whether it has spared one. It
// gives one whose node is well, if there is one: the node could serve the next
// job.
func (d *Driver) deletePods(ctx context.Context) (ended *corev1.Pod, spared bool, err error) {
	list, err := listAcross(d.reach(), func(namespace string) ([]corev1.Pod, error) {
		return d.pods.List(ctx, namespace, pod.Selector(d.job))
	})
	if err != nil {
		return nil, false, d.requestFailure(err)
	}
	left := d.leftovers(d.host())
	var failed []error
	for i := range list {
		if left.ofAnother(&list[i]) {
			spared = true
			continue
		}
		well, err := d.remove(ctx, &list[i])
		if err != nil {
			failed = append(failed, fmt.Errorf("left behind: %w", err))
		} else if well {
			ended = &list[i]
		}
	}
	if len(failed) > 0 {
		return nil, spared, d.requestFailure(errors.Join(failed...))
	}
	return ended, spared, nil
}

// remove deletes one Pod, and says whether it has a node that is well. On a
// node that is lost nobody would carry the deletion out, and the Pod would
// count as unfinished for ever: there its processes are gone with the node,
// and the object is removed at once. A node that is not ready for a moment
// still carries it out.
func (d *Driver) remove(ctx context.Context, found *corev1.Pod) (well bool, err error) {
	ref := pods.RefTo(found)
	if found.Spec.NodeName != "" {
		health, err := d.nodes.Health(ctx, found.Spec.NodeName)
		if err == nil && health.Lost(d.clusterNow(), d.settings.Run.NodeLost.Value()) {
			return false, d.pods.ForceDelete(ctx, ref)
		}
		well = err == nil && health.Ready
	}
	if found.DeletionTimestamp != nil {
		return well, nil
	}
	return well, d.pods.Delete(ctx, ref, d.grace())
}
