package stages

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/socialweb-computer/tenant-executor/kube/pods"
	"github.com/socialweb-computer/tenant-executor/stages/course"
)

// noteWaits notes how long a Pod waited, also one that waited in vain.
func (d *Driver) noteWaits(created *corev1.Pod, timing pods.Timing, err error) {
	var late *pods.PhaseTimeoutError
	if errors.As(err, &late) && late.State.Phase == pods.Unscheduled {
		timing.Node += late.After
	} else if late != nil {
		timing.Start += late.After
	}
	d.course.Note(func(c *course.Course) {
		c.Waits.Node += course.SecondsOf(timing.Node)
		c.Waits.Start += course.SecondsOf(timing.Start)
		c.Cluster, c.Namespace, c.Pod = d.cluster.Identity(), created.Namespace, created.Name
	})
}

// noteEntrance notes how long the cluster had no room for the Pod, which is a wait
// for a node.
func (d *Driver) noteEntrance(e *entrance) {
	d.course.Note(func(c *course.Course) { c.Waits.Node += course.SecondsOf(e.waited) })
}

// noteReach notes how long it took until a command ran in the Pod.
func (d *Driver) noteReach(since time.Time) {
	d.course.Note(func(c *course.Course) { c.Waits.Reach += course.SecondsOf(d.clock.Now().Sub(since)) })
}

// countServices is awaitServices with a note of how long it took.
func (d *Driver) countServices(ctx context.Context, running *corev1.Pod) error {
	since := d.clock.Now()
	err := d.awaitServices(ctx, running)
	d.course.Note(func(c *course.Course) { c.Waits.Services += course.SecondsOf(d.clock.Now().Sub(since)) })
	return err
}

// noteNode notes the Pod's node. It was there already, unless noteBoot says
// otherwise; one that was freed for this job was held for it.
func (d *Driver) noteNode(name string) {
	d.course.Note(func(c *course.Course) {
		if c.Kind = course.Warm; c.Node == name && name != "" {
			c.Kind = course.Held
		}
		c.Node = name
	})
}

// noteTaken notes a node that was freed for this job, "" for none.
func (d *Driver) noteTaken(node string) {
	d.course.Note(func(c *course.Course) { c.Node, c.Kind = node, "" })
}

// noteRemake notes that the Pod is made anew.
func (d *Driver) noteRemake() {
	d.course.Note(func(c *course.Course) { c.Remakes++ })
}

// noteReaped notes leftovers of other jobs that were removed.
func (d *Driver) noteReaped(count int) {
	d.course.Note(func(c *course.Course) { c.Reaped += count })
}

// noteLinger notes that the job's node is held for the next job.
func (d *Driver) noteLinger(hold time.Duration) {
	d.course.Note(func(c *course.Course) { c.Linger = course.SecondsOf(hold) })
}
