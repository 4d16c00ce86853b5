package stages

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/socialweb-computer/tenant-executor/executor/failure"
	"github.com/socialweb-computer/tenant-executor/executor/pod"
	"github.com/socialweb-computer/tenant-executor/kube/pods"
)

// crew is who has put which containers into a job's Pod. What is in neither list
// was added on the way into the cluster, by a webhook or a policy.
type crew struct {
	// made are the driver's own: those of the stages and of the job's services.
	made []string
	// patched are those of the operator's pod_spec.
	patched []string
}

// containersOf is the crew of a Pod as it is sent to the cluster.
func containersOf(objects pod.Objects) crew {
	c := crew{made: objects.Made}
	spec := &objects.Pod.Spec
	for _, container := range slices.Concat(spec.InitContainers, spec.Containers) {
		if !slices.Contains(c.made, container.Name) {
			c.patched = append(c.patched, container.Name)
		}
	}
	return c
}

// foreignFailure is the failure of a Pod that a container keeps from running which
// is neither the job's nor the driver's. Its author cannot read its log elsewhere,
// so what it said last is shown.
func (d *Driver) foreignFailure(ctx context.Context, created *corev1.Pod, c crew, p pods.Problem, lasted string) error {
	if p.Ended || p.Ran {
		d.foreignWords(ctx, pods.RefTo(created), p)
	}
	whose, seen := "a webhook or a policy of the cluster has added it", failure.Sign("")
	if slices.Contains(c.patched, p.Container) {
		whose, seen = "the operator's pod_spec has added it", failure.ByPodSpec
	}
	return failure.New(failure.ForeignContainer, "the Pod does not run because of container %s with image %s, which is not the job's (%s)%s: %s",
		p.Container, p.Image, whose, lasted, p.Words()).Seen(seen, "")
}

// foreignWords shows the last lines of such a container.
func (d *Driver) foreignWords(ctx context.Context, ref pods.Ref, p pods.Problem) {
	found, err := d.lastLines(ctx, ref, p.Container)
	switch {
	case err != nil:
		d.log.Warn("What container %s said last cannot be read: %v", p.Container, err)
	case len(found) == 0:
		d.log.Info("Container %s has not said anything.", p.Container)
	default:
		d.log.Info("What container %s said last:", p.Container)
	}
	for _, line := range found {
		d.log.Info("[%s] %s", p.Container, shortened(line.Text))
	}
}
