package stages

import (
	"context"
	"errors"
	"io"

	"github.com/socialweb-computer/tenant-executor/executor/failure"
	"github.com/socialweb-computer/tenant-executor/kube/stream"
)

// Look shows the output of a stage as far as the Pod still has it, and frees
// nothing of it: the driver that runs the stage misses nothing. Stage is as for
// Attach. With follow it goes on to the stage's end; without, it ends with what
// there is. How the stage ended is said and is no failure of the look.
func (d *Driver) Look(ctx context.Context, stage string, follow bool, out io.Writer) error {
	ref, err := d.findPod(ctx)
	if err != nil {
		return err
	}
	container, name, err := d.findStage(ctx, ref, stage)
	if err != nil {
		return err
	}
	f := d.follower()
	f.Freed = func(bytes int64) {
		d.log.Warn("%d bytes of the output of stage %s are gone from the Pod: the job log has them.", bytes, name)
	}
	looking, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if follow {
		go d.guard(looking, cancel, ref, string(container))
	}
	status, err := f.Run(looking, stream.Stage{
		Namespace: ref.Namespace, Pod: ref.Name, Container: string(container),
		Agent: podAgent, Folder: stagesFolder(container), Name: name, Output: out, Look: true, Now: !follow,
	}, nil)
	switch {
	case ctx.Err() != nil:
		return nil // a person has seen enough
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
