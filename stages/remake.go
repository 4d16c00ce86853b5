package stages

import (
	"cmp"
	"context"
	"errors"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/socialweb-computer/tenant-executor/executor/failure"
	"github.com/socialweb-computer/tenant-executor/executor/pod"
	"github.com/socialweb-computer/tenant-executor/kube/crash"
	"github.com/socialweb-computer/tenant-executor/kube/pods"
)

// maxRemakes is how often prepare makes a lost Pod anew. A gateway that drops its
// nodes while a Pod binds to one does so once; a cluster that loses Pod after
// Pod has another trouble.
const maxRemakes = 3

// makePod makes the job's Pod and waits until it can be used. A Pod whose image
// cannot be pulled is made anew with the image's next pull policy. One that is
// lost before anything ran in it, with its node or by itself, is made anew: the
// idle hold of the gateway may end at the very moment a Pod binds to a node.
// The runner would do the same by another attempt, of which it has three.
func (d *Driver) makePod(ctx context.Context, plan pod.Plan) error {
	note := d.podNote()
	note.remove() // it would be of an earlier attempt
	for lost, taken := 0, 0; ; plan.Remake++ {
		plan.Now = d.clusterNow()
		objects, err := plan.Build()
		if err != nil {
			return err
		}
		e := d.entrance(objects.Pod.Namespace)
		created, err := d.create(ctx, objects, e)
		if taken < maxTaken && nameTaken(err) {
			taken++
			continue
		}
		if err != nil {
			return err
		}
		noted := note.write(pods.RefTo(created), false)
		err = d.start(ctx, created, e, containersOf(objects), d.pullBudget(plan, objects.Pulls))
		if err == nil && noted == nil {
			noted = note.write(pods.RefTo(created), true)
		}
		if err == nil || ctx.Err() != nil {
			return err
		}
		if noted == nil && note.read() == nil {
			return failure.New(failure.Interrupted, "cleanup was called for this job while prepare waited")
		}
		if !d.nextPull(&plan, objects.Pulls, err) {
			f := failure.Of(err)
			if lost == maxRemakes || f.Cause != failure.PodLost && f.Cause != failure.NodeLost {
				return err
			}
			lost++
			d.log.Info("%s. Nothing has run yet; recreating the Pod.", strings.TrimSuffix(f.Error(), "."))
		}
		d.noteRemake()
		if err := d.replace(ctx, pods.RefTo(created)); err != nil {
			return d.requestFailure(err)
		}
	}
}

// replace removes a Pod in whose place another is to come, and waits for its end
// if it has a node that is well: that is the one for the next.
func (d *Driver) replace(ctx context.Context, ref pods.Ref) error {
	limited, cancel := context.WithTimeout(ctx, lookBudget)
	defer cancel()
	found, err := d.pods.Get(limited, ref) // as it is by now: it had no node when it was made
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return d.pods.Delete(ctx, ref, d.grace())
	}
	well, err := d.remove(ctx, found)
	if err == nil && well {
		d.awaitAny(ctx, []corev1.Pod{*found})
	}
	return err
}

// maxTaken is how many names of Pods are passed over.
const maxTaken = 10

// nameTaken reports whether an object of the Pod's name, or of one that belongs
// to it, is there already: of an earlier prepare of the same attempt that was
// killed, and perhaps about to go. It is not this one's, so another name is
// taken.
func nameTaken(err error) bool {
	return apierrors.IsAlreadyExists(err) || errors.Is(err, pods.ErrForeign)
}

// errNodeWatched ends the watch of a node whose Pod has started.
var errNodeWatched = errors.New("the Pod has started")

// withNode is a context that ends when the Pod's node is lost; the cause is the
// failure. While a Pod starts only its node can tell: a Pod that is bound to a
// node which has been dropped reads Pending for minutes.
//
// Node names the Pod's node, "" while it has none: whoever follows the Pod knows.
func (d *Driver) withNode(ctx context.Context, ref pods.Ref, node func() string) (context.Context, context.CancelCauseFunc) {
	watched, cancel := context.WithCancelCause(ctx)
	crash.Go(watched, func() {
		watch := nodeWatch{clock: d.clock, limit: d.settings.Run.NodeLost.Value()}
		sandbox := &sandboxWatch{driver: d}
		for {
			select {
			case <-watched.Done():
				return
			case <-d.clock.After(d.settings.Run.Poll.Value()):
			}
			name := node()
			if name == "" {
				continue
			}
			limited, done := context.WithTimeout(watched, lookBudget)
			err := cmp.Or(d.lookAtNode(limited, ref, name, &watch), sandbox.look(limited, ref, name))
			done()
			if err != nil {
				cancel(err)
				return
			}
		}
	})
	return watched, cancel
}

// lookAtNode reads the Pod's node once. What cannot be read says nothing.
func (d *Driver) lookAtNode(ctx context.Context, ref pods.Ref, name string, watch *nodeWatch) error {
	health, err := d.nodes.Health(ctx, name)
	if err != nil {
		return nil
	}
	if text := watch.lost(health); text != "" {
		return failure.New(failure.NodeLost, "node %s of the job's Pod %s %s", name, ref, text)
	}
	return nil
}
