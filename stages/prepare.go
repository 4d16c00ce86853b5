package stages

import (
	"context"
	"errors"
	"os"
	"runtime"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/socialweb-computer/tenant-executor/executor/failure"
	"github.com/socialweb-computer/tenant-executor/executor/job"
	"github.com/socialweb-computer/tenant-executor/executor/joblog"
	"github.com/socialweb-computer/tenant-executor/executor/pod"
	"github.com/socialweb-computer/tenant-executor/kube/pods"
)

// abortBudget is how long an interrupted prepare tries to delete its Pod. The
// runner calls cleanup anyway; this one saves the boot of a node that nobody
// needs.
const abortBudget = 10 * time.Second

// Prepare makes the job's Pod and waits until stages can run in it.
func (d *Driver) Prepare(ctx context.Context) error {
	host := d.host()
	plan, objects, err := d.intended(ctx, host)
	if err != nil {
		return err
	}
	for _, note := range objects.Notes {
		d.log.Warn("%s", note)
	}
	d.log.Info("Using tenant cluster %s, namespace %s, image %s", d.clusterName(), objects.Pod.Namespace, objects.Pod.Spec.Containers[0].Image)
	d.tellOverwrites()
	d.tellNoState()
	d.noteNamespace()

	d.tidy(ctx, host)
	err = d.makePod(ctx, plan)
	if ctx.Err() != nil {
		d.abandon(ctx)
		return d.asTheRunnerSays(failure.New(failure.Interrupted, "the runner ended prepare before the Pod was ready"))
	}
	return err
}

// intended is what this attempt is to make, or why it cannot.
func (d *Driver) intended(ctx context.Context, host Host) (pod.Plan, pod.Objects, error) {
	if d.asked.refused != nil {
		return pod.Plan{}, pod.Objects{}, d.asked.refused
	}
	plan, err := d.plan(host)
	if err != nil {
		return plan, pod.Objects{}, err
	}
	objects, err := plan.Build()
	if err == nil {
		err = d.checkSize(&objects.Pod.Spec)
	}
	if err != nil {
		return plan, pod.Objects{}, err
	}
	// Logins are looked for by the images that come out.
	if plan.Logins = d.logins(ctx, objects.Images()); len(plan.Logins) > 0 {
		objects, err = plan.Build()
	}
	return plan, objects, err
}

// plan is what this attempt makes.
func (d *Driver) plan(host Host) (pod.Plan, error) {
	attempt := strings.TrimPrefix(d.hint, d.job.PodName(""))
	if attempt == "" {
		var err error
		if attempt, err = newAttempt(nil); err != nil {
			return pod.Plan{}, err
		}
	}
	return pod.Plan{
		Job:        d.job,
		Settings:   d.settings.Kubernetes,
		Variables:  d.variables,
		BuildsDir:  d.settings.Job.BuildsDir,
		CacheDir:   d.settings.Job.CacheDir,
		Attempt:    attempt,
		Keeper:     keeperCommand(),
		Folder:     podFolder,
		KeeperMark: keeperMark(job.Build),
		HostArch:   runtime.GOARCH,
		Wait:       d.settings.Wait.Node.Value() + d.settings.Wait.Start.Value() + d.settings.Wait.Reach.Value() + d.settings.Wait.Services.Value(),
		Owner:      host.annotation(),
		Now:        d.clock.Now(),
		ReadFile:   os.ReadFile,
	}, nil
}

// start waits until the Pod runs and can be reached, and readies it.
func (d *Driver) start(parent context.Context, created *corev1.Pod, e *entrance, c crew, pull func(container string) time.Duration) error {
	n := d.narrator(created)
	ctx, cancel := d.withNode(parent, pods.RefTo(created), n.nodeName)
	defer cancel(errNodeWatched)
	n.giveUp = cancel
	n.logs = d.startLogs(ctx, pods.RefTo(created))
	err := d.startWatched(ctx, created, e, c, pull, n)
	d.endLogs(parent, n.logs)
	var lost *failure.Failure
	if errors.As(context.Cause(ctx), &lost) {
		err = lost
	}
	if err != nil && parent.Err() == nil {
		n.warnings.tell(parent, err)
	}
	return err
}

// startLogs shows what containers say from their start on, before there are
// stages. A Pod that prepare makes anew begins anew.
func (d *Driver) startLogs(ctx context.Context, ref pods.Ref) *containerLogs {
	services, err := d.services()
	if err != nil {
		return nil // it was refused
	}
	return d.containerLogs(ctx, ref, openBookmark(d.variables, ref.Name), d.logSources(services), d.log.Lines())
}

// endLogs shows what there still is, before prepare says how it has ended.
func (d *Driver) endLogs(ctx context.Context, logs *containerLogs) {
	ctx, cancel := detach(ctx, letGo)
	defer cancel()
	logs.end(ctx)
}

func (d *Driver) startWatched(ctx context.Context, created *corev1.Pod, e *entrance, c crew, pull func(container string) time.Duration, n *narrator) error {
	budgets := pods.Budgets{Node: e.rest(), Start: d.settings.Wait.Start.Value(), Pull: pull}
	running, timing, err := d.pods.Await(ctx, created, budgets, d.clock, n, pods.Roles{Needed: stageContainers(), Made: c.made})
	d.noteWaits(created, timing, err)
	if err != nil {
		var late *pods.PhaseTimeoutError
		if errors.As(err, &late) && late.State.Phase == pods.Unscheduled {
			late.After += e.waited
			return d.noNode(n.wait, late)
		}
		return d.awaitFailure(ctx, created, c, err)
	}
	n.node.Store(&running.Spec.NodeName)
	d.noteNode(running.Spec.NodeName)
	n.noteBoot(ctx, running, timing.Node)
	from := d.clock.Now()
	err = d.setup(ctx, running)
	if err == nil {
		d.awaitSources(ctx, running, from)
	}
	d.noteReach(from)
	if err != nil {
		return err
	}
	if err := d.tellUser(ctx, pods.RefTo(running)); err != nil {
		return err
	}
	d.log.Info("Pod %s runs on node %s (node %s, start %s, exec %s)", running.Name, running.Spec.NodeName,
		joblog.Short(e.waited+timing.Node), joblog.Short(timing.Start), joblog.Short(d.clock.Now().Sub(from)))
	if err := d.countServices(ctx, running); err != nil {
		return err
	}
	// Last, since the end of the placeholder is work for the job's node.
	d.releaseWarm(ctx)
	return nil
}

// abandon deletes the Pods of an interrupted prepare.
func (d *Driver) abandon(ctx context.Context) {
	ctx, cancel := detach(ctx, abortBudget)
	defer cancel()
	if _, _, err := d.deletePods(ctx); err != nil {
		d.log.Warn("The Pod of the job is not deleted yet, cleanup is to do it: %v", err)
	}
}
