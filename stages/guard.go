package stages

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/socialweb-computer/tenant-executor/executor/failure"
	"github.com/socialweb-computer/tenant-executor/executor/joblog"
	"github.com/socialweb-computer/tenant-executor/kube/capacity"
	"github.com/socialweb-computer/tenant-executor/kube/pods"
)

// guard watches the Pod and its node while a stage runs, and ends the stage
// when either is lost. The stream does not tell: the connection to a node that
// dies silently stays open without a word, and the Pod's phase stays Running.
// It begins after the first interval, so that short stages cost no request.
func (d *Driver) guard(ctx context.Context, end context.CancelCauseFunc, ref pods.Ref, container string, services *attendance) {
	watch := nodeWatch{clock: d.clock, limit: d.settings.Run.NodeLost.Value()}
	for {
		select {
		case <-ctx.Done():
			return
		case <-d.clock.After(d.settings.Run.Poll.Value()):
		}
		if err := d.look(ctx, &ref, container, &watch, services); err != nil {
			end(err)
			return
		}
	}
}

// look reads the Pod and its node once. What cannot be read says nothing: the
// apiserver may be restarting, and the stage goes on meanwhile.
func (d *Driver) look(ctx context.Context, ref *pods.Ref, container string, watch *nodeWatch, services *attendance) error {
	limited, cancel := context.WithTimeout(ctx, lookBudget)
	defer cancel()
	found, err := d.pods.Get(limited, *ref)
	if apierrors.IsNotFound(err) {
		return podGone(*ref, err)
	}
	if err != nil {
		d.cluster.Refind(ctx, err)
		return nil
	}
	// From now on a Pod of the same name is not this one.
	ref.UID = found.UID
	if loss := lossOf(found, container); loss != nil {
		return loss
	}
	services.look(ctx, found)
	health, err := d.nodes.Health(limited, found.Spec.NodeName)
	if err != nil {
		return nil
	}
	if text := watch.lost(health); text != "" {
		return failure.New(failure.NodeLost, "node %s of the job's Pod %s %s", found.Spec.NodeName, ref, text)
	}
	return nil
}

// glanceBudget is how long a glance may take: the stage is not followed
// meanwhile.
const glanceBudget = 2 * time.Second

// glance is a look beside those of guard. A node that is not ready now may well
// be back.
func (d *Driver) glance(ctx context.Context, ref pods.Ref, container string) error {
	ctx, cancel := context.WithTimeout(ctx, glanceBudget)
	defer cancel()
	watch := nodeWatch{clock: d.clock, limit: d.settings.Run.NodeLost.Value()}
	return d.look(ctx, &ref, container, &watch, nil)
}

// nodeWatch decides when a node counts as lost, by what it has itself seen of it:
// since when the node is not ready is told by one clock then, that of the driver.
type nodeWatch struct {
	clock interface{ Now() time.Time }
	limit time.Duration
	since time.Time
}

func (w *nodeWatch) lost(h capacity.Health) string {
	now := w.clock.Now()
	switch {
	case h.Ready:
		w.since = time.Time{}
	case w.since.IsZero():
		w.since = now
	}
	h.Since = w.since
	switch {
	case !h.Lost(now, w.limit):
		return ""
	case !h.Exists:
		return "does not exist any more"
	}
	return fmt.Sprintf("has not been ready for %s (%s)", joblog.Duration(now.Sub(h.Since)), h.Reason)
}
