package stages

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/socialweb-computer/tenant-executor/executor/failure"
	"github.com/socialweb-computer/tenant-executor/kube/events"
	"github.com/socialweb-computer/tenant-executor/kube/pods"
)

// sandboxWatch looks whether a Pod waits for the image of its sandbox. A refusal of
// the registry is bounded by wait.registry there, too; no container has a status
// that says so, only events have.
type sandboxWatch struct {
	driver *Driver
	looked time.Time
}

// sandboxPause is how long after a look at the events the next one comes.
const sandboxPause = 5 * time.Second

// look gives the failure of a Pod whose sandbox image has not been pulled for too
// long, nil for any other Pod.
func (w *sandboxWatch) look(ctx context.Context, found *corev1.Pod) error {
	d, now := w.driver, w.driver.clock.Now()
	limit := d.settings.Wait.Registry.Value()
	if !withoutSandbox(found) || now.Sub(w.looked) < min(sandboxPause, limit) {
		return nil
	}
	w.looked = now
	all, err := events.NewClient(d.cluster, lookLimit).OfPod(ctx, found)
	if err != nil {
		return nil // the budget of the start ends it
	}
	var first, last time.Time
	words := ""
	for _, e := range all {
		why, ours := pods.SandboxPull(e.Message)
		if e.Reason != pods.SandboxReason || !ours {
			continue
		}
		if first.IsZero() || e.First.Before(first) {
			first = e.First
		}
		last, words = e.At, oneLine(why)
	}
	// The same clock has stamped both.
	if lasts := last.Sub(first); words != "" && lasts >= limit {
		return failure.New(failure.ImageStalled, "node %s cannot pull the sandbox image of the job's Pod%s: %s", found.Spec.NodeName, lasted(lasts), words)
	}
	return nil
}

// withoutSandbox reports whether a node has the Pod and nothing of it has begun.
func withoutSandbox(found *corev1.Pod) bool {
	for _, c := range append(found.Status.InitContainerStatuses, found.Status.ContainerStatuses...) {
		if w := c.State.Waiting; w == nil || w.Reason != "ContainerCreating" && w.Reason != "PodInitializing" {
			return false
		}
	}
	return found.Spec.NodeName != "" && found.Status.Phase == corev1.PodPending
}
