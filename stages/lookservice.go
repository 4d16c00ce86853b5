package stages

import (
	"context"
	"errors"
	"io"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/socialweb-computer/tenant-executor/executor/failure"
	"github.com/socialweb-computer/tenant-executor/executor/job"
	"github.com/socialweb-computer/tenant-executor/kube/cluster"
	"github.com/socialweb-computer/tenant-executor/kube/crash"
	"github.com/socialweb-computer/tenant-executor/kube/pods"
)

// lookAtService shows what a service says: the log of its container, which its
// node keeps.
func (d *Driver) lookAtService(ctx context.Context, found *corev1.Pod, container job.Container, o LookOptions, out io.Writer) error {
	if o.Only != "" {
		return failure.New(failure.NoStage, "container %s is a service's: its log does not tell stdout and stderr apart", container)
	}
	if o.Stage != "" {
		return failure.New(failure.NoStage, "container %s is a service's: it has a log and no stages, so no %q", container, o.Stage)
	}
	if err := begun(found, container); err != nil {
		return err
	}
	looking, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	v := &serviceView{driver: d, ref: pods.RefTo(found), container: container}
	if o.Follow {
		crash.Go(looking, func() { d.guard(looking, cancel, v.ref, string(container), nil) })
	}
	err := v.show(looking, o, out)
	var lost *failure.Failure
	switch {
	case ctx.Err() != nil:
		return nil // a person has seen enough
	case errors.As(context.Cause(looking), &lost) && lost.Cause != failure.PodLost:
		return lost
	case lost != nil, o.Follow && apierrors.IsNotFound(err):
		d.log.Info("The job's Pod is gone, and the log of container %s with it.", container) // as at the end of each job
		return nil
	case err != nil:
		return d.requestFailure(err)
	}
	v.tellEnd(ctx)
	return nil
}

// serviceView is a look at the log of one container.
type serviceView struct {
	driver    *Driver
	ref       pods.Ref
	container job.Container
	// place is how far the log was seen, and written the error of the output.
	place   pods.LogPlace
	written error
}

// show shows what is wanted. The last lines are those at the time of the call.
func (v *serviceView) show(ctx context.Context, o LookOptions, out io.Writer) error {
	last := &tail{lines: o.Tail}
	to := out
	if o.Tail >= 0 {
		to = last
	}
	// The limit of a try is not for this one: a log may be long.
	err := v.driver.cluster.RetryIf(ctx, handBudget, v.mayGoOn, func(context.Context) error { return v.read(ctx, false, to) })
	if err == nil && o.Tail >= 0 {
		err = last.show(out, v.driver.log)
	}
	if err != nil || !o.Follow {
		return err
	}
	return v.follow(ctx, out)
}

// follow shows what comes until the container ends. A log that breaks off is
// asked for again where it did.
func (v *serviceView) follow(ctx context.Context, out io.Writer) error {
	for {
		found, lost := v.driver.pods.Get(ctx, v.ref)
		err := v.read(ctx, true, out)
		switch {
		case ctx.Err() != nil, err != nil && !v.again(ctx, err):
			return err
		case err != nil: // from where it broke off
		case lost == nil && ended(found, v.container) != nil:
			return nil // it had ended before the log was read
		case apierrors.IsNotFound(lost):
			return lost
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-v.driver.clock.After(logsAgain):
		}
	}
}

// again says whether a log that could not be read to its end may be read on:
// however its connection breaks, nothing is lost.
func (v *serviceView) again(ctx context.Context, err error) bool {
	if !v.mayGoOn(err) {
		return false
	}
	v.driver.cluster.Refind(ctx, err)
	return true
}

// mayGoOn is again before it is looked up where the cluster is.
func (v *serviceView) mayGoOn(err error) bool {
	return v.written == nil && !cluster.Denied(err) && !apierrors.IsNotFound(err) && !apierrors.IsBadRequest(err)
}

// read shows the log from where the view is.
func (v *serviceView) read(ctx context.Context, follow bool, out io.Writer) error {
	return v.driver.pods.ReadLog(ctx, v.ref, string(v.container), v.place, follow, func(line pods.LogLine, next pods.LogPlace) error {
		if line.Gap {
			v.driver.log.Warn("%s", linesMissing)
		}
		if _, v.written = io.WriteString(out, line.Text+"\n"); v.written != nil {
			return v.written
		}
		v.place = next
		return nil
	})
}

// tellEnd says how the container is.
func (v *serviceView) tellEnd(ctx context.Context) {
	found, err := v.driver.pods.Get(ctx, v.ref)
	if err != nil {
		return // what there was to see was shown
	}
	if t := ended(found, v.container); t != nil {
		v.driver.log.Info("Container %s has ended with exit code %d (%s).", v.container, t.ExitCode, t.Reason)
	} else {
		v.driver.log.Info("Container %s goes on; --follow shows what comes.", v.container)
	}
}
