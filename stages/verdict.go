package stages

import (
	"context"
	"errors"
	"path"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/socialweb-computer/tenant-executor/executor/failure"
	"github.com/socialweb-computer/tenant-executor/executor/joblog"
	"github.com/socialweb-computer/tenant-executor/kube/bounded"
	"github.com/socialweb-computer/tenant-executor/kube/pods"
	"github.com/socialweb-computer/tenant-executor/kube/stream"
	"github.com/socialweb-computer/tenant-executor/kube/stream/agent"
)

// exitKilled is the exit code of a process that SIGKILL ended.
const exitKilled = 137

// lookBudget is how long it is tried to find out what became of a Pod.
const lookBudget = 10 * time.Second

// verdict is what the end of a stage means for the job. The agent has sent it,
// so it is the script's own and not that of a Pod that was taken down.
func (d *Driver) verdict(container string, s agent.Status) error {
	killed := s.Signal == int(syscall.SIGKILL) || s.Exit == exitKilled
	switch {
	case s.Stopped:
		// Where this driver has asked for it, its end is not judged at all.
		return failure.New(failure.Cancelled, "the stage in container %s was ended on request: the job was cancelled, or another driver has begun the stage anew", container)
	case s.OOM > 0 && (killed || s.Trouble == agent.TroubleLost):
		f := failure.New(failure.OutOfMemory, "a process of the script was killed: the memory of container %s was used up%s", container, d.memoryLimit(container))
		f.ExitCode = exitKilled
		return d.outOfMemory(container, f)
	case s.Trouble == agent.TroubleNoShell, s.Trouble == agent.TroubleStart:
		return failure.New(failure.ImageUnusable, "the script could not be started in container %s: %s", container, s.Detail)
	case s.Trouble == agent.TroubleNoRoom:
		return failure.New(failure.DiskFull, "the script in container %s did not begin, the disk has no room for it: %s", container, s.Detail)
	case s.Trouble == agent.TroubleDisk:
		return failure.New(failure.DiskFull, "the output of the script in container %s could not be kept, so it was ended: %s", container, s.Detail)
	case s.Trouble != agent.TroubleNone:
		return failure.New(failure.StageLost, "the stage in container %s: %s", container, s.Detail)
	case s.Signal != 0:
		return failure.Signal(s.Signal)
	case s.Exit != 0:
		return failure.Script(s.Exit)
	}
	return nil
}

// stageFailure is what it means that a stage's end could not be learned.
func (d *Driver) stageFailure(ctx context.Context, ref pods.Ref, err error) error {
	var own *failure.Failure // the guard's
	var outage *stream.OutageError
	var vanished *stream.VanishedError
	var refused *stream.RefusedError
	switch {
	case errors.As(err, &own):
		return own
	case errors.As(err, &outage), errors.As(err, &vanished), errors.As(err, &refused):
		if f := d.podFailure(ctx, ref, ""); f != nil {
			return f
		}
		if outage != nil {
			return failure.New(failure.ConnectionLost, "the stage in the job's Pod %s could not be reached for %s; %s: %v",
				ref, joblog.Duration(outage.After), outage.Known(), stream.Reason(outage.Err))
		}
		return failure.Wrap(failure.ConnectionLost, err, "the job's Pod %s", ref)
	}
	if lost := d.withoutAgent(ctx, ref, err); lost != nil {
		return lost
	}
	var final *stream.FinalError
	if stream.PodGone(err) && errors.As(err, &final) && !final.Begun {
		return errNotThere{d.execFailure(ctx, ref, err)}
	}
	return d.execFailure(ctx, ref, err)
}

// execFailure is the failure of a command that did not run.
func (d *Driver) execFailure(ctx context.Context, ref pods.Ref, err error) error {
	var runtime *stream.RuntimeError
	var long *bounded.TooLongError
	switch {
	case ctx.Err() != nil:
		return err
	case errors.As(err, &long):
		return failure.Wrap(failure.ConnectionLost, err, "what answers in the job's Pod %s is not the driver's agent", ref)
	case stream.PodGone(err):
		return failure.New(failure.PodLost, "the job's Pod %s does not exist any more", ref)
	case errors.As(err, &runtime) && strings.Contains(err.Error(), "/"+path.Base(podAgent)):
		// It was there when prepare ended.
		return failure.Wrap(failure.AgentRemoved, err, "the job's Pod %s", ref)
	case errors.As(err, &runtime):
		// Another Pod of this name has the same image, and nothing of the job.
		if lost := d.podFailure(ctx, ref, ""); lost != nil {
			return lost
		}
		return failure.Wrap(failure.ImageUnusable, err, "the job's Pod %s", ref)
	case stream.MayReachLater(err):
		return failure.Wrap(failure.Unreachable, err, "the job's Pod %s", ref)
	}
	return d.requestFailure(err)
}

// podFailure is the failure of the Pod itself or of its node, nil if both are
// well or nobody knows.
func (d *Driver) podFailure(ctx context.Context, ref pods.Ref, container string) error {
	ctx, cancel := detach(ctx, lookBudget)
	defer cancel()
	found, err := d.pods.Get(ctx, ref)
	if apierrors.IsNotFound(err) {
		return podGone(ref, err)
	}
	if err != nil {
		return nil
	}
	if loss := lossOf(found, container); loss != nil {
		return loss
	}
	health, err := d.nodes.Health(ctx, found.Spec.NodeName)
	switch {
	case err != nil || health.Ready:
		return nil
	case !health.Exists:
		return failure.New(failure.NodeLost, "node %s of the job's Pod %s does not exist any more", found.Spec.NodeName, ref)
	}
	return failure.New(failure.NodeLost, "node %s of the job's Pod %s is not ready (%s)", found.Spec.NodeName, ref, health.Reason)
}

// lossOf says what is the matter with a Pod in which a stage runs; nil if
// nothing is.
func lossOf(found *corev1.Pod, container string) error {
	state := stateOf(found)
	name := found.Namespace + "/" + found.Name
	for _, p := range state.Problems {
		switch {
		case p.Container == container && p.Kind == pods.OutOfMemory:
			// The script ended with its container.
			f := containerFailure(p)
			f.ExitCode = exitKilled
			return f
		case p.Kind == pods.ImagePlatform:
			// Such a container runs for a moment, so that it counted as started.
			return containerFailure(p)
		}
	}
	switch {
	case found.DeletionTimestamp != nil:
		return failure.New(failure.PodLost, "the job's Pod %s is being deleted%s", name, because(state.Detail))
	case state.Phase == pods.Ended:
		return failure.New(failure.PodLost, "the job's Pod %s ended%s", name, because(state.Detail))
	}
	return nil
}

func because(detail string) string {
	if detail == "" {
		return ""
	}
	return ": " + detail
}
