package stages

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/socialweb-computer/tenant-executor/executor/failure"
	"github.com/socialweb-computer/tenant-executor/kube/events"
	"github.com/socialweb-computer/tenant-executor/kube/pods"
)

// mostWarnings is how many warnings of the cluster stand in the job log. A
// cluster in trouble has the same to say many times over.
const mostWarnings = 10

// repeats says whether a warning says again what the wait or the error says.
func repeats(e events.Event) bool {
	switch e.Reason {
	case "FailedScheduling", "BackOff", "NodeNotReady", "InspectFailed":
		return true
	}
	return strings.HasPrefix(e.Message, "Error: ") || strings.HasPrefix(e.Message, "Failed to pull image ")
}

// podWarnings tells the reader of the job log what the cluster warns of about the
// job's Pod, each once. A nil one, where the operator does not want it, says
// nothing.
type podWarnings struct {
	driver *Driver
	about  *corev1.Pod
	told   map[string]bool
}

func (d *Driver) podWarnings(ref pods.Ref) *podWarnings {
	if on := d.settings.Kubernetes.PrintPodWarningEvents; on != nil && !*on {
		return nil
	}
	about := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: ref.Namespace, Name: ref.Name, UID: ref.UID}}
	return &podWarnings{driver: d, about: about, told: map[string]bool{}}
}

// tell says what is new and no part of the failure that is told next, nil if none
// is. What cannot be read is left out: the job log has the failure itself.
func (w *podWarnings) tell(ctx context.Context, next error) {
	if w == nil {
		return
	}
	ctx, cancel := detach(ctx, lookLimit)
	defer cancel()
	all, err := events.NewClient(w.driver.cluster, lookLimit).OfPod(ctx, w.about)
	if err != nil {
		return
	}
	said := ""
	if next != nil {
		said = next.Error()
	}
	for _, e := range all {
		line := e.Reason + ": " + oneLine(e.Message)
		if !e.Warning || w.told[line] || len(w.told) == mostWarnings || repeats(e) || strings.Contains(said, line) {
			continue
		}
		w.told[line] = true
		w.driver.log.Warn("The cluster says of the job's Pod: %s", line)
	}
}

// tellOnLoss says what the cluster has to say where a stage has ended by more
// than its script.
func (w *podWarnings) tellOnLoss(ctx context.Context, err error) {
	if err == nil {
		return
	}
	switch failure.Of(err).Cause {
	case failure.PodLost, failure.NodeLost, failure.OutOfMemory, failure.StageLost, failure.DiskFull, failure.ConnectionLost:
		w.tell(ctx, err)
	}
}
