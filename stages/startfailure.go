package stages

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/socialweb-computer/tenant-executor/executor/failure"
	"github.com/socialweb-computer/tenant-executor/executor/job"
	"github.com/socialweb-computer/tenant-executor/executor/joblog"
	"github.com/socialweb-computer/tenant-executor/executor/pod"
	"github.com/socialweb-computer/tenant-executor/kube/admission"
	"github.com/socialweb-computer/tenant-executor/kube/cluster"
	"github.com/socialweb-computer/tenant-executor/kube/events"
	"github.com/socialweb-computer/tenant-executor/kube/pods"
)

// createFailure says why the cluster did not take the Pod.
func (d *Driver) createFailure(err error, plan pod.Objects) error {
	if f := d.refused(err, plan.Pod.Namespace); f != nil {
		return f
	}
	var status apierrors.APIStatus
	containers, limited := admission.OutOfRange(err, &plan.Pod.Spec)
	switch {
	case limited && len(containers) > 0:
		return failure.Wrap(failure.PodRefused, err, "a LimitRange of namespace %s refuses the job's Pod for container %s", plan.Pod.Namespace, strings.Join(containers, ", "))
	case limited:
		return failure.Wrap(failure.PodRefused, err, "a LimitRange of namespace %s refuses the job's Pod", plan.Pod.Namespace)
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err), cluster.TooLarge(err):
		return failure.Wrap(failure.PodRefused, err, "the job's Pod")
	case apierrors.IsNotFound(err) && d.choseNamespace():
		return d.namespaceFailure(err)
	case apierrors.IsNotFound(err):
		return failure.Wrap(failure.Settings, err, "namespace %s", d.settings.Kubernetes.Namespace)
	case apierrors.IsForbidden(err) && errors.As(err, &status) && mentionsPolicy(status.Status().Message):
		return failure.Wrap(failure.PodRefused, err, "the job's Pod")
	case apierrors.IsForbidden(err) && d.choseNamespace():
		return d.namespaceFailure(err)
	}
	return d.requestFailure(err)
}

// byAdmission is how a refusal begins that is about one object. One of the
// caller names the kind alone: to create is a right on all of a kind
// (apiserver/pkg/admission and endpoints/handlers/responsewriters in Kubernetes).
var byAdmission = regexp.MustCompile(`^[a-z./]+ "[^"]+" is forbidden: `)

// mentionsPolicy tells a Pod that admission refuses from a caller without the
// right to create Pods: both are "forbidden".
func mentionsPolicy(message string) bool {
	for _, word := range []string{"exceeded quota", "PodSecurity", "LimitRange", "maximum", "minimum", "admission webhook", "serviceaccount"} {
		if strings.Contains(message, word) {
			return true
		}
	}
	return byAdmission.MatchString(message) && !strings.Contains(message, "is being terminated")
}

// awaitFailure says why the Pod does not run.
func (d *Driver) awaitFailure(ctx context.Context, created *corev1.Pod, c crew, err error) error {
	var timeout *pods.PhaseTimeoutError
	var container *pods.ContainerError
	var failed *pods.FailedError
	var gone *pods.GoneError
	switch {
	case errors.As(err, &container) && container.Problem.Foreign:
		return d.foreignFailure(ctx, created, c, container.Problem, lasted(container.After))
	case errors.As(err, &timeout) && timeout.State.Phase == pods.Starting && timeout.State.Foreigner() != nil:
		return d.foreignFailure(ctx, created, c, *timeout.State.Foreigner(), lasted(timeout.After))
	case errors.As(err, &timeout):
		return d.timeoutFailure(ctx, created, timeout)
	case errors.As(err, &container):
		if f := d.pullFailure(ctx, container); f != nil {
			return f
		}
		if f := endedEarly(container.Problem); f != nil {
			return f
		}
		return containerFailure(container.Problem)
	case errors.As(err, &failed) && failed.State.Misfit:
		return failure.Wrap(failure.PodRefused, err, "node %s does not take the job's Pod", failed.State.Node)
	case errors.As(err, &failed), errors.As(err, &gone):
		return failure.Wrap(failure.PodLost, err, "the job's Pod")
	}
	return d.requestFailure(err)
}

// noNode is the failure of a Pod that waited for a node for too long; wait is what was
// seen last, nil where nothing was.
func (d *Driver) noNode(wait *nodeWait, timeout *pods.PhaseTimeoutError) error {
	detail := timeout.State.Detail
	switch {
	case pods.Lacking(detail):
		return failure.New(failure.ClusterLacks, "the job's Pod: %s", inVain(timeout))
	case wait != nil:
		return wait.failure(timeout.After)
	}
	return failure.New(failure.NoNode, "no node for the job after %s%s", joblog.Duration(timeout.After), because(detail))
}

// timeoutFailure is that of a Pod which waited for too long. What would be in
// vain the next time as well is no failure of the cluster.
func (d *Driver) timeoutFailure(ctx context.Context, created *corev1.Pod, timeout *pods.PhaseTimeoutError) error {
	state := &timeout.State
	switch {
	case state.Detail == "":
		state.Detail = d.lastTrouble(ctx, created)
	}
	if pods.Lacking(state.Detail) {
		return failure.New(failure.ClusterLacks, "the job's Pod on node %s: %s", state.Node, inVain(timeout))
	}
	return failure.New(failure.StartTimeout, "the job's Pod on node %s: %s", state.Node, inVain(timeout))
}

// lastTrouble is why a Pod does not start whose containers have nothing to say,
// since there are none yet: its volumes and its sandbox come first. "" is for no
// known reason.
func (d *Driver) lastTrouble(ctx context.Context, created *corev1.Pod) string {
	ctx, cancel := detach(ctx, lookLimit)
	defer cancel()
	all, err := events.NewClient(d.cluster, lookLimit).OfPod(ctx, created)
	if err != nil {
		return "" // the failure itself is known
	}
	for _, e := range slices.Backward(all) {
		if e.Warning && slices.Contains([]string{"FailedMount", "FailedAttachVolume", "FailedMapVolume", "FailedCreatePodSandBox"}, e.Reason) {
			return e.Reason + ": " + oneLine(e.Message)
		}
	}
	return ""
}

// inVain is how long a Pod waited, and for what.
func inVain(e *pods.PhaseTimeoutError) string {
	return fmt.Sprintf("the Pod was still %s after %s%s", e.State.Phase, joblog.Duration(e.After), because(e.State.Detail))
}

// oneLine is a text of the cluster on one line.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// containerFailure is the failure that a container's problem means.
func containerFailure(p pods.Problem) *failure.Failure {
	cause := map[pods.Kind]failure.Cause{
		pods.NotStartable:  failure.ImageUnusable,
		pods.ImagePlatform: failure.ImagePlatform,
		pods.OutOfMemory:   failure.OutOfMemory,
	}[p.Kind]
	switch {
	case cause == "":
		return failure.New(failure.PodLost, "container %s ended by itself%s", p.Container, because(p.Words()))
	case p.Kind == pods.NotStartable && pods.Lacking(p.Message):
		cause = failure.ClusterLacks
	case p.Container == string(job.Helper) && p.Kind != pods.OutOfMemory:
		cause = failure.HelperUnusable
	case p.Container != string(job.Build) && p.Kind == pods.NotStartable:
		cause = failure.ServiceUnusable
	}
	why := because(p.Words())
	switch p.Kind {
	case pods.ImagePlatform:
		why = ": the image is for other machines than the node" + why
	case pods.OutOfMemory:
		why = ": its memory was used up" + why
	}
	return failure.New(cause, "container %s%s%s", p.Container, withImage(p.Image), why)
}
