package stages

import (
	"bytes"
	"context"
	"errors"
	"io"

	"github.com/socialweb-computer/tenant-executor/executor/failure"
	"github.com/socialweb-computer/tenant-executor/executor/job"
	"github.com/socialweb-computer/tenant-executor/executor/joblog"
	"github.com/socialweb-computer/tenant-executor/kube/crash"
	"github.com/socialweb-computer/tenant-executor/kube/pods"
	"github.com/socialweb-computer/tenant-executor/kube/stream"
	"github.com/socialweb-computer/tenant-executor/kube/stream/agent"
)

// LookOptions are what a person wants to see of a stage's output.
type LookOptions struct {
	// Container is where it was written: that of a stage, or a service by any
	// of its names. "" is any of a stage.
	Container string
	// Stage is as for Attach. A service has none.
	Stage string
	// Follow goes on to the stage's end; without it there is what is there.
	Follow bool
	// Tail is how many lines of what is there are shown, the last ones; below 0
	// all of them.
	Tail int
	// Only shows one of stdout and stderr, of a stage that tells them apart; ""
	// shows both. A service's log has both.
	Only string
}

// The streams that LookOptions can ask for.
const (
	OnlyStdout = "stdout"
	OnlyStderr = "stderr"
)

// Look shows the output of a stage as far as the Pod still has it, or the log of
// a service. It frees nothing of it: the driver that runs the stage misses
// nothing. How the stage ended is said and is no failure of the look.
func (d *Driver) Look(ctx context.Context, o LookOptions, out io.Writer) error {
	if o.Container == "" {
		ref, err := d.findPod(ctx)
		if err != nil {
			return err
		}
		return d.lookAtStage(ctx, ref, o, out, job.Build, job.Helper)
	}
	found, err := d.wholePod(ctx)
	if err != nil {
		return err
	}
	container, err := containerOf(found, o.Container)
	switch {
	case err != nil:
		return err
	case isStages(string(container)):
		return d.lookAtStage(ctx, pods.RefTo(found), o, out, container)
	}
	return d.lookAtService(ctx, found, container, o, out)
}

// lookAtStage shows the output of a stage in one of the containers.
func (d *Driver) lookAtStage(ctx context.Context, ref pods.Ref, o LookOptions, out io.Writer, containers ...job.Container) error {
	container, name, err := d.findStage(ctx, ref, o.Stage, containers...)
	if err != nil {
		return err
	}
	looking, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if o.Follow {
		crash.Go(looking, func() { d.guard(looking, cancel, ref, string(container), nil) })
	}
	v := &view{driver: d, stage: stream.Stage{
		Namespace: ref.Namespace, Pod: ref.Name, Container: string(container),
		Agent: podAgent, Folder: stagesFolder(container), Name: name, Look: true, Apart: o.Only != "",
	}, only: o.Only}
	status, err := v.show(looking, o, out)
	switch {
	case ctx.Err() != nil:
		return nil // a person has seen enough
	case errors.Is(err, stream.ErrNotApart):
		return failure.New(failure.NoStage, "stage %s does not tell stdout and stderr apart: run.separate_stderr was not set when it began", name)
	case errors.Is(err, stream.ErrGoesOn):
		d.log.Info("Stage %s goes on; --follow shows what comes.", name)
		return nil
	case err != nil:
		return d.stageFailure(ctx, ref, err)
	}
	if err := d.verdict(string(container), status); err != nil {
		d.log.Info("Stage %s has ended: %s", name, failure.Of(err).Error())
	} else {
		d.log.Info("Stage %s has ended well.", name)
	}
	return nil
}

// view is a look at one stage.
type view struct {
	driver *Driver
	stage  stream.Stage
	// only is the stream that is wanted, "" both.
	only string
	// at is how much of the output was seen or is gone, in bytes.
	at int64
}

// show shows what is wanted. The last lines of a stage that runs are those at
// the time of the call.
func (v *view) show(ctx context.Context, o LookOptions, out io.Writer) (agent.Status, error) {
	if o.Tail < 0 {
		return v.run(ctx, !o.Follow, out)
	}
	last := &tail{lines: o.Tail}
	status, err := v.run(ctx, true, last)
	if err == nil || errors.Is(err, stream.ErrGoesOn) {
		if werr := last.show(out, v.driver.log); werr != nil {
			return status, werr
		}
	}
	if o.Follow && errors.Is(err, stream.ErrGoesOn) {
		return v.run(ctx, false, out)
	}
	return status, err
}

// run shows the output from where the view is.
func (v *view) run(ctx context.Context, now bool, out io.Writer) (agent.Status, error) {
	f := v.driver.follower(pods.Ref{Namespace: v.stage.Namespace, Name: v.stage.Pod}, v.stage.Container)
	f.Freed = func(bytes int64) {
		v.at += bytes
		v.driver.log.Warn("%d bytes of the output of stage %s are gone from the Pod: the job log has them.", bytes, v.stage.Name)
	}
	s := v.stage
	stdout, stderr := out, out
	switch v.only {
	case OnlyStdout:
		stderr = io.Discard
	case OnlyStderr:
		stdout = io.Discard
	}
	s.Offset, s.Now, s.Output, s.Errors = v.at, now, counter{stdout, &v.at}, counter{stderr, &v.at}
	return f.Run(ctx, s, nil)
}

// counter counts what is written.
type counter struct {
	to io.Writer
	n  *int64
}

// Write implements io.Writer.
func (c counter) Write(p []byte) (int, error) {
	n, err := c.to.Write(p)
	*c.n += int64(n)
	return n, err
}

// tail keeps the last lines of what is written to it, tailMost bytes of them at
// the most: who writes decides how long a line is.
type tail struct {
	lines int
	kept  []byte
	// cut is whether the lines were more than that.
	cut bool
}

const (
	// tailSlack is how much is kept beyond the lines before it is looked for them.
	tailSlack = 1 << 20
	tailMost  = 8 << 20
)

// Write implements io.Writer.
func (t *tail) Write(p []byte) (int, error) {
	t.kept = append(t.kept, p...)
	if len(t.kept) > 2*tailSlack && len(t.kept) > 2*len(t.rest()) {
		t.kept = bytes.Clone(t.rest())
	}
	if over := len(t.kept) - tailMost; over > tailSlack {
		t.kept, t.cut = append(t.kept[:0], t.kept[over:]...), true
	}
	return len(p), nil
}

// show writes what was kept, and says on log if that is not all.
func (t *tail) show(out io.Writer, log joblog.Log) error {
	rest := t.rest()
	if t.cut || len(rest) > tailMost {
		rest = rest[max(len(rest)-tailMost, 0):]
		log.Warn("The last %s have more than %d MiB; the last %d MiB are shown.", joblog.Count(t.lines, "line"), tailMost>>20, tailMost>>20)
	}
	_, err := out.Write(rest)
	return err
}

// rest are the last lines. One that has no end yet is one of them.
func (t *tail) rest() []byte {
	end := len(bytes.TrimSuffix(t.kept, []byte("\n")))
	at := len(t.kept)
	for range t.lines {
		if at = bytes.LastIndexByte(t.kept[:end], '\n'); at < 0 {
			return t.kept
		}
		end = at
		at++
	}
	return t.kept[at:]
}
