package stages

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/socialweb-computer/tenant-executor/executor/failure"
	"github.com/socialweb-computer/tenant-executor/executor/job"
	"github.com/socialweb-computer/tenant-executor/executor/joblog"
	"github.com/socialweb-computer/tenant-executor/executor/pod"
	"github.com/socialweb-computer/tenant-executor/kube/crash"
	"github.com/socialweb-computer/tenant-executor/kube/pods"
	"github.com/socialweb-computer/tenant-executor/kube/stream"
)

// Terminal is where a person sits, and what runs for the person.
type Terminal struct {
	// Container is where the command runs: build, helper, or a service by any of
	// its names.
	Container job.Container
	// Command is what runs; nil for a shell in the job's folder.
	Command []string
	// Kind is the kind of terminal, as in TERM.
	Kind           string
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// Sizes are as in stream.Command: nil without a terminal.
	Sizes <-chan stream.Size
	// Say tells the person something while the command runs.
	Say func(line string)
}

// Shell runs a command for a person in the job's Pod. It ends with the command,
// and when the Pod or its node is lost. The end of the time for which a failed
// job's Pod is kept is said ahead.
func (d *Driver) Shell(ctx context.Context, t Terminal) error {
	found, err := d.wholePod(ctx)
	if err != nil {
		return err
	}
	ref := pods.RefTo(found)
	if t.Container, err = containerOf(found, string(t.Container)); err != nil {
		return err
	}
	if err := runs(found, t.Container); err != nil {
		return err
	}
	command := t.Command
	if command == nil {
		command = d.personCommand(found, t)
	}
	running, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	crash.Go(running, func() { d.guard(running, cancel, ref, string(t.Container), nil) })
	crash.Go(running, func() { d.announceEnd(running, ref, t.Say) })
	code, err := d.runFor(running, ref, command, t)
	if (err != nil || code == exitKilled) && ctx.Err() == nil && d.timeIsUp(ctx, ref) {
		return failure.New(failure.Detached, "the time for which the job's Pod %s was kept is over", ref)
	}
	if err != nil {
		return d.shellFailure(ctx, running, ref, t, err)
	}
	if code != 0 {
		f := failure.Script(code)
		f.Message = fmt.Sprintf("the command ended with exit code %d", code)
		return f
	}
	return nil
}

// runs says why nothing can run in a container. A service may run before the
// rest of its Pod does.
func runs(found *corev1.Pod, container job.Container) error {
	name := found.Namespace + "/" + found.Name
	if isStages(string(container)) {
		if state := stateOf(found); state.Phase != pods.Running {
			return failure.New(failure.NoJob, "the job's Pod %s is %s%s", name, state.Phase, because(state.Detail))
		}
		return nil
	}
	if t := ended(found, container); t != nil {
		return failure.New(failure.NoStage, "container %s of the job's Pod %s has ended with exit code %d", container, name, t.ExitCode)
	}
	return begun(found, container)
}

// personCommand begins a shell where the runner has put the job's sources:
// below the builds folder, in one of the project's name. That of a service
// begins where the service does.
func (d *Driver) personCommand(found *corev1.Pod, t Terminal) []string {
	if !isStages(string(t.Container)) {
		return []string{"sh", "-c", personProgram, "person", t.Kind, podFolder + "/bin"}
	}
	builds := d.settings.Job.BuildsDir
	return []string{"sh", "-c", personProgram, "person", t.Kind, podFolder + "/bin",
		path.Join(builds, pod.Tell(found.Annotations).Project), builds, "/"}
}

// runFor runs the command. A node that cannot be reached for a moment is tried
// again; a command that has begun is not begun again.
func (d *Driver) runFor(ctx context.Context, ref pods.Ref, command []string, t Terminal) (code int, err error) {
	err = d.cluster.RetryIf(ctx, handBudget, stream.MayReachLater, func(context.Context) (err error) {
		// The limit of a try is not for this one: a person stays as long as it
		// pleases.
		code, err = d.runner.Run(ctx, stream.Command{
			Namespace: ref.Namespace, Pod: ref.Name, Container: string(t.Container), Args: command,
			Stdin: t.Stdin, Stdout: t.Stdout, Stderr: t.Stderr, Sizes: t.Sizes,
		})
		return err
	})
	return code, err
}

// shellFailure is why a person's command ended without an exit code.
func (d *Driver) shellFailure(ctx, running context.Context, ref pods.Ref, t Terminal, err error) error {
	var lost *failure.Failure
	var unstartable *stream.RuntimeError
	var broken *stream.LostError
	switch {
	case ctx.Err() != nil:
		return failure.New(failure.Detached, "the connection to the command in Pod %s was given up", ref)
	case errors.As(context.Cause(running), &lost):
		return lost
	case errors.As(err, &unstartable) && !isStages(string(t.Container)) && t.Command == nil:
		return failure.Wrap(failure.NoStage, err, "container %s of the job's Pod %s has no shell (sh); a program of its image can be named behind \"--\"", t.Container, ref)
	case errors.As(err, &unstartable) && !isStages(string(t.Container)):
		return failure.Wrap(failure.NoStage, err, "container %s of the job's Pod %s does not run the command", t.Container, ref)
	case errors.As(err, &broken):
		if f := d.podFailure(ctx, ref, ""); f != nil {
			return f
		}
		return failure.Wrap(failure.ConnectionLost, err, "the job's Pod %s", ref)
	}
	return d.execFailure(ctx, ref, err)
}

// timeIsUp says whether the time for which a Pod was kept is over, or just about
// to be by a clock that is not ours.
func (d *Driver) timeIsUp(ctx context.Context, ref pods.Ref) bool {
	ctx, cancel := context.WithTimeout(ctx, lookBudget)
	defer cancel()
	found, err := d.pods.Get(ctx, ref)
	if err != nil {
		return false
	}
	until := stampOf(found, pod.AnnotationHeld)
	return until != nil && d.clusterNow().Add(2*time.Second).After(*until)
}

// When the end of a kept Pod is said, before it comes.
func warnings() []time.Duration {
	return []time.Duration{5 * time.Minute, time.Minute, 10 * time.Second}
}

// holdPoll is how often it is looked whether a Pod is kept, and until when.
const holdPoll = 5 * time.Second

// announceEnd tells a person at once until when the Pod is kept, and again when
// that is near. The Pod of a job that runs may become one later.
func (d *Driver) announceEnd(ctx context.Context, ref pods.Ref, say func(string)) {
	said := time.Duration(-1) // what was left when it was said last
	for {
		limited, cancel := context.WithTimeout(ctx, lookBudget)
		found, err := d.pods.Get(limited, ref)
		cancel()
		if err == nil {
			if until := stampOf(found, pod.AnnotationHeld); until != nil {
				left := until.Sub(d.clusterNow())
				if dueToSay(said, left) {
					said = left
					say(fmt.Sprintf("This Pod of a failed job is kept until %s, for %s from now.", until.Local().Format("15:04:05"), joblog.Duration(max(left, 0))))
				}
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-d.clock.After(holdPoll):
		}
	}
}

// dueToSay says whether one of the warnings lies between what was left when it
// was said last (below 0: never) and what is left now.
func dueToSay(said, left time.Duration) bool {
	if said < 0 {
		return true
	}
	for _, w := range warnings() {
		if left <= w && said > w {
			return true
		}
	}
	return false
}
