package stages

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/socialweb-computer/tenant-executor/executor/failure"
	"github.com/socialweb-computer/tenant-executor/kube/events"
	"github.com/socialweb-computer/tenant-executor/kube/pods"
)

// sandboxWatch looks whether a Pod waits for the image of its sandbox. A refusal of
// the registry is bounded by wait.registry there, too; no container has a status
// that says so, only events have.
type sandboxWatch struct {
	driver *Driver
	// next is when the events are looked at next: a Pod that starts in time is
	// never asked about.
	next time.Time
}

// sandboxPause is how long after a look at the events the next one comes.
const sandboxPause = 10 * time.Second

// look gives the failure of a Pod whose sandbox image has not been pulled for too
// long, nil for any other Pod.
func (w *sandboxWatch) look(ctx context.Context, ref pods.Ref, node string) error {
	d, now := w.driver, w.driver.clock.Now()
	limit := d.settings.Wait.Registry.Value()
	if w.next.IsZero() {
		w.next = now.Add(limit)
	}
	if now.Before(w.next) {
		return nil
	}
	w.next = now.Add(sandboxPause)
	about := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: ref.Namespace, Name: ref.Name, UID: ref.UID}}
	all, err := events.NewClient(d.cluster, lookLimit).OfPod(ctx, about)
	if err != nil {
		return nil // the budget of the start ends it
	}
	if words, lasts := withoutSandbox(all); words != "" && lasts >= limit {
		return failure.New(failure.ImageStalled, "node %s cannot pull the sandbox image of the job's Pod%s: %s", node, lasted(lasts), words)
	}
	return nil
}

// withoutSandbox says why the image of the Pod's sandbox is not there, and for how
// long it has not been, by the one clock that stamps events. Anything that is said
// of a container afterwards shows that the sandbox is there.
func withoutSandbox(all []events.Event) (words string, lasts time.Duration) {
	var first time.Time
	for _, e := range all {
		why, ours := pods.SandboxPull(e.Message)
		switch {
		case e.Container != "":
			words, first = "", time.Time{}
		case e.Reason == pods.SandboxReason && ours:
			if first.IsZero() || e.First.Before(first) {
				first = e.First
			}
			words, lasts = oneLine(why), e.At.Sub(first)
		}
	}
	return words, lasts
}
