package stages

import (
	"context"
	"errors"
	"io"
	"strings"
	"time"

	"github.com/socialweb-computer/tenant-executor/executor/failure"
	"github.com/socialweb-computer/tenant-executor/executor/job"
	"github.com/socialweb-computer/tenant-executor/executor/joblog"
	"github.com/socialweb-computer/tenant-executor/executor/pod"
	"github.com/socialweb-computer/tenant-executor/kube/crash"
	"github.com/socialweb-computer/tenant-executor/kube/pods"
	"github.com/socialweb-computer/tenant-executor/kube/stream"
	"github.com/socialweb-computer/tenant-executor/kube/stream/agent"
	"github.com/socialweb-computer/tenant-executor/stages/course"
)

// stopSlack is what ending a stage's processes may take beyond their grace. The
// runner waits for graceful_kill_timeout and then kills the driver.
const stopSlack = 15 * time.Second

// Run runs one stage's script in the container that the stage belongs to, and
// writes the script's output to out. The script is sent once and started once,
// whatever happens to the connection; the stage's end is what the agent in the
// Pod says of it. When ctx ends, the stage's processes are ended; hurry, once
// closed, cuts their grace short.
func (d *Driver) Run(ctx context.Context, script []byte, stage string, out io.Writer, hurry <-chan struct{}) error {
	ref, err := d.findPod(ctx)
	if err != nil {
		return err
	}
	if err := d.stillLost(ctx, ref); err != nil {
		return err
	}
	id, err := newAttempt(nil)
	if err != nil {
		return err
	}
	container := job.ContainerFor(stage)
	s := stream.Stage{
		Namespace: ref.Namespace, Pod: ref.Name, Container: string(container),
		Agent: podAgent, Folder: stagesFolder(container), Name: stageName(stage) + "-" + id,
		Script: script, Umask: -1, Apart: d.settings.Run.SeparateStderr, Output: d.course.Count(out),
	}
	if script == nil {
		s.Script = []byte{}
	}
	if container == job.Helper {
		s.Path = podFolder + "/bin"
	}
	if container == job.Helper && !pod.Flag(d.variables, pod.FlagNoUmask) {
		// What the helper checks out has to be writable for whichever user the
		// job's image has, as with the kubernetes executor
		// (gitlab-runner-build of the helper image).
		s.Umask = 0
	}
	err = d.follow(ctx, ref, s, hurry)
	if other, found := d.remadePod(ctx, ref, err); found {
		s.Pod, ref = other.Name, other
		err = d.follow(ctx, other, s, hurry)
	}
	d.podWarnings(ref).tellOnLoss(ctx, err)
	d.noteLoss(ref, err)
	return err
}

// errNotThere is the failure of a stage whose Pod was gone before the stage
// began.
type errNotThere struct{ error }

func (e errNotThere) Unwrap() error { return e.error }

// remadePod is the Pod that prepare made in place of the one that config had
// named, if there is one. Nothing has run in the first.
func (d *Driver) remadePod(ctx context.Context, ref pods.Ref, err error) (pods.Ref, bool) {
	var notThere errNotThere
	if d.hint == "" || ctx.Err() != nil || !errors.As(err, &notThere) {
		return pods.Ref{}, false
	}
	other, err := d.podByLabel(ctx)
	return other, err == nil && other.Name != ref.Name
}

// findPod is the Pod of this job: the very one that prepare has written down, or
// the one of the name that config chose, or by label.
func (d *Driver) findPod(ctx context.Context) (pods.Ref, error) {
	if d.target.Name != "" {
		return d.findTarget(ctx)
	}
	if noted := d.podNote().read(); noted != nil {
		return noted.ref(), nil
	}
	if d.hint != "" {
		return pods.Ref{Namespace: d.settings.Kubernetes.Namespace, Name: d.hint}, nil
	}
	return d.podByLabel(ctx)
}

func (d *Driver) podByLabel(ctx context.Context) (pods.Ref, error) {
	list, err := d.pods.List(ctx, d.settings.Kubernetes.Namespace, pod.Selector(d.job))
	if err != nil {
		return pods.Ref{}, d.requestFailure(err)
	}
	// The newest attempt counts; a Pod on its way out belongs to an older one.
	for i := len(list) - 1; i >= 0; i-- {
		if list[i].DeletionTimestamp == nil {
			return pods.RefTo(&list[i]), nil
		}
	}
	f := failure.New(failure.PodLost, "job %d has no Pod in namespace %s", d.job.ID, d.settings.Kubernetes.Namespace)
	if d.hint == "" && d.variables.ExitCodeFile() == "" {
		f.Seen(failure.NotPrepared, "") // by hand, and no config ran before
	}
	return pods.Ref{}, f
}

// longestStage is how much of a stage's name its folder in the Pod shows.
const longestStage = 80

// stageName makes a stage's name fit for a folder.
func stageName(stage string) string {
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' {
			return r
		}
		return '-'
	}, stage)
	return name[:min(len(name), longestStage)]
}

// follow follows a stage to its end. Several things can end it: the script, the
// runner, a Pod or a node that is lost. It gets a context of its own, so that
// after the runner's TERM it lives until the script's processes are ended.
func (d *Driver) follow(ctx context.Context, ref pods.Ref, s stream.Stage, hurry <-chan struct{}) error {
	following, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	stop := make(chan time.Duration)
	done := make(chan stageEnd, 1)
	var services *attendance
	services, s.Output = d.attend(following, ref, s.Output)
	crash.Go(following, func() {
		status, err := d.follower(ref, s.Container).Run(following, s, stop)
		done <- stageEnd{status, err}
	})
	crash.Go(following, func() { d.guard(following, cancel, ref, s.Container, services) })
	crash.Go(following, func() { d.stopOn(ctx, following, stop, hurry, cancel) })

	r := d.awaitEnd(following, done)
	limit := lookBudget
	if r.err != nil || ctx.Err() != nil {
		limit = letGo // the cluster may be gone, or the runner waits
	}
	services.end(following, limit)
	switch {
	case ctx.Err() != nil && r.err != nil:
		return failure.Wrap(failure.Cancelled, r.err, "the runner ended the stage; it is not known whether the script's processes have ended")
	case ctx.Err() != nil:
		return d.asTheRunnerSays(failure.New(failure.Cancelled, "the runner ended the stage"))
	case r.err != nil:
		return d.stageFailure(ctx, ref, r.err)
	}
	return d.verdict(s.Container, r.status)
}

// stageEnd is how following a stage has ended.
type stageEnd struct {
	status agent.Status
	err    error
}

// letGo is how long the follower may take to end once it is told to. It cannot
// while nobody reads the job log, and the driver ends all the same.
const letGo = 2 * time.Second

// awaitEnd waits for the follower.
func (d *Driver) awaitEnd(following context.Context, done <-chan stageEnd) stageEnd {
	select {
	case r := <-done:
		return r
	case <-following.Done():
	}
	select {
	case r := <-done:
		return r
	case <-d.clock.After(letGo):
		return stageEnd{err: context.Cause(following)}
	}
}

func (d *Driver) follower(ref pods.Ref, container string) *stream.Follower {
	return &stream.Follower{
		Runner: d.runner,
		Clock:  d.clock,
		Bounds: stream.Bounds{
			Spool:   d.settings.Run.SpoolBytes(),
			Silence: d.settings.Run.Silence.Value(),
			Outage:  d.outage(ref.Name),
		},
		Broken: func(ctx context.Context, begun bool, err error) error {
			// Nothing is promised before the Pod was looked at.
			if lost := d.glance(ctx, ref, container); lost != nil {
				return lost
			}
			if err = stream.Reason(err); !begun {
				d.log.Warn("The job's Pod cannot be reached for the next stage, trying again. (%v)", err)
			} else {
				d.log.Warn("The connection to the script is lost, which does not end it; trying to reach it again. (%v)", err)
			}
			return nil
		},
		Restored: func(after time.Duration) {
			d.log.Info("Reached again, after %s. Nothing of the output is lost.", joblog.Duration(after))
		},
		Again: func(after time.Duration) {
			d.course.NoteStep(func(s *course.Step) {
				s.Reconnects++
				s.Outage += course.SecondsOf(after)
			})
		},
	}
}

// stopOn has the stage's processes ended once the runner wants it, and gives
// up on the connection when that takes too long.
func (d *Driver) stopOn(ctx, following context.Context, stop chan<- time.Duration, hurry <-chan struct{}, cancel context.CancelCauseFunc) {
	select {
	case <-following.Done():
		return
	case <-ctx.Done():
	}
	grace := d.settings.Run.CancelGrace.Value()
	over := d.clock.After(grace + stopSlack)
	for to := stop; ; {
		select {
		case to <- grace:
			to = nil
		case <-hurry:
			hurry, to, grace = nil, stop, 0
		case <-over:
			cancel(errStopTimeout)
			return
		case <-following.Done():
			return
		}
	}
}

// errStopTimeout says that a stage could not be ended in time.
var errStopTimeout = errors.New("the stage could not be ended in time")
