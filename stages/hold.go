package stages

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/socialweb-computer/tenant-executor/executor/failure"
	"github.com/socialweb-computer/tenant-executor/executor/job"
	"github.com/socialweb-computer/tenant-executor/executor/joblog"
	"github.com/socialweb-computer/tenant-executor/executor/pod"
	"github.com/socialweb-computer/tenant-executor/executor/settings"
	"github.com/socialweb-computer/tenant-executor/kube/pods"
)

// statusVariable is how the job went. The runner sets it before after_script
// (common/build.go, executeAfterScript), so cleanup sees it; "running" is that
// of a job which never came so far.
const statusVariable = "CI_JOB_STATUS"

// leastHold is the shortest time for which a Pod is worth keeping: less would be
// over before anybody could look.
const leastHold = 10 * time.Second

// holdAsked is for how long the job's Pod stays if the job fails.
func (d *Driver) holdAsked() (time.Duration, error) {
	return d.settings.Debug.Asked(d.variables.Variable(settings.HoldVariable))
}

// TellHold says in the job log, below a script that has failed, that the Pod
// stays for a look. Cleanup, which keeps it, is not heard there.
func (d *Driver) TellHold(stage string, err error) {
	if err == nil || stage == "after_script" || job.ContainerFor(stage) != job.Build {
		return
	}
	if cause := failure.Of(err).Cause; cause != failure.ScriptFailed && cause != failure.OutOfMemory {
		return
	}
	asked, trouble := d.holdAsked()
	switch {
	case trouble != nil:
		d.log.Warn("%v. The Pod of this job does not stay.", trouble)
	case asked >= leastHold:
		d.log.Info("The Pod of this job stays for up to %s after the job, for a look: tenant-executor shell %d", joblog.Duration(asked), d.job.ID)
	case d.variables.Variable(settings.HoldVariable) != "" && d.settings.Debug.Hold.Value() == 0:
		d.log.Info("%s has no effect: the operator allows none ([debug] hold).", settings.HoldVariable)
	}
}

// holdFailed keeps the Pod of a job that failed, if the job has asked for it and
// the operator allows it, and says whether it does. Other Pods of the job go. A
// Pod that is kept already is let go: whoever calls cleanup again wants that.
//
// The Pod's own deadline ends it, so that it does not outlive its time although
// no driver may run any more.
func (d *Driver) holdFailed(ctx context.Context) bool {
	asked, err := d.holdAsked()
	if err != nil || asked < leastHold || !slices.Contains([]string{"failed", "timedout"}, d.variables.Variable(statusVariable)) {
		return false
	}
	list, err := d.pods.List(ctx, d.settings.Kubernetes.Namespace, pod.Selector(d.job))
	if err != nil || len(list) == 0 {
		return false // what follows meets the same error, and tells it
	}
	kept := newestAlive(list)
	if !d.holdable(ctx, kept) {
		return false
	}
	until := d.holdUntil(kept, asked)
	if until.Sub(d.clusterNow()) < leastHold {
		return false
	}
	if err := d.keep(ctx, kept, until); err != nil {
		d.log.Warn("The Pod of the failed job is not kept for a look: %v", err)
		return false
	}
	for i := range list {
		if list[i].UID == kept.UID {
			continue
		}
		if _, err := d.remove(ctx, &list[i]); err != nil {
			d.log.Warn("An older Pod of the job stays until a sweep finds it: %v", err)
		}
	}
	d.log.Info("Pod %s/%s of the failed job %d is kept until %s: tenant-executor shell %d", kept.Namespace, kept.Name, d.job.ID, until.UTC().Format(time.RFC3339), d.job.ID)
	return true
}

// holdable says whether there is anything to look into, and nobody has kept it
// before.
func (d *Driver) holdable(ctx context.Context, p *corev1.Pod) bool {
	if p.DeletionTimestamp != nil || p.Annotations[pod.AnnotationHeld] != "" || stateOf(p).Phase != pods.Running || p.Status.StartTime == nil {
		return false
	}
	health, err := d.nodes.Health(ctx, p.Spec.NodeName)
	return err == nil && health.Ready
}

// holdUntil is the end of the time asked for, or of the Pod's deadline, which
// cannot be put off.
func (d *Driver) holdUntil(p *corev1.Pod, asked time.Duration) time.Time {
	until := d.clusterNow().Add(asked)
	if deadline := p.Spec.ActiveDeadlineSeconds; deadline != nil {
		if end := p.Status.StartTime.Add(time.Duration(*deadline) * time.Second); end.Before(until) {
			until = end
		}
	}
	return until.Truncate(time.Second)
}

// keep writes the end of its time into a Pod.
func (d *Driver) keep(ctx context.Context, p *corev1.Pod, until time.Time) error {
	stamp := until.UTC().Format(time.RFC3339)
	deadline := max(int64(until.Sub(p.Status.StartTime.Time)/time.Second), 1)
	return d.pods.Keep(ctx, pods.RefTo(p), deadline, map[string]string{pod.AnnotationHeld: stamp, pod.AnnotationExpires: stamp})
}

// Release ends the time for which a failed job's Pod is kept.
func (d *Driver) Release(ctx context.Context) error {
	ref, err := d.findPod(ctx)
	if err != nil {
		return err
	}
	found, err := d.pods.Get(ctx, ref)
	if err != nil {
		return d.requestFailure(err)
	}
	if found.Annotations[pod.AnnotationHeld] == "" {
		return failure.New(failure.NoJob, "Pod %s is not one that is kept for a look; end the job in GitLab if it is to end", ref)
	}
	if err := d.pods.Delete(ctx, pods.RefTo(found), quickGrace); err != nil {
		return d.requestFailure(err)
	}
	d.log.Info("Pod %s is deleted.", ref)
	return nil
}
