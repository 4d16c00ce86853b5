package stages

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/socialweb-computer/tenant-executor/executor/failure"
	"github.com/socialweb-computer/tenant-executor/executor/job"
	"github.com/socialweb-computer/tenant-executor/executor/pod"
)

// ContainerName is a container of a job's Pod as people may call it.
type ContainerName struct {
	// Name is what people write, Image what runs in the container.
	Name, Image string
}

// ContainerNames are the containers of the job's Pod: those of stages first,
// then each service by all of its names.
func (d *Driver) ContainerNames(ctx context.Context) ([]ContainerName, error) {
	found, err := d.wholePod(ctx)
	if err != nil {
		return nil, err
	}
	var all []ContainerName
	for _, c := range found.Spec.Containers {
		if isStages(c.Name) {
			all = append(all, ContainerName{c.Name, c.Image})
		}
	}
	for _, s := range pod.ServiceNames(found) {
		for _, name := range namesOf(s) {
			all = append(all, ContainerName{name, s.Image})
		}
	}
	return all, nil
}

// wholePod is the Pod that a person means.
func (d *Driver) wholePod(ctx context.Context) (*corev1.Pod, error) {
	ref, err := d.findPod(ctx)
	if err != nil {
		return nil, err
	}
	found, err := d.pods.Get(ctx, ref)
	if err != nil {
		return nil, d.requestFailure(err)
	}
	return found, nil
}

// isStages says whether stages run in a container. Every other is a service's,
// or one that a patch has added.
func isStages(container string) bool { return slices.Contains(stageContainers(), container) }

// namesOf are the names of a service, that of its container first.
func namesOf(s pod.ServiceName) []string {
	names := []string{s.Container}
	for _, name := range s.Names {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// containerOf is the container that a person calls by its name, or by a name of
// the service in it. A container's own name comes first.
func containerOf(found *corev1.Pod, name string) (job.Container, error) {
	if isStages(name) {
		return job.Container(name), nil
	}
	var there, fit []string
	there = append(there, stageContainers()...)
	for _, s := range pod.ServiceNames(found) {
		if s.Container == name {
			return job.Container(name), nil
		}
		names := namesOf(s)
		if slices.Contains(names, name) {
			fit = append(fit, s.Container)
		}
		there = append(there, strings.Join(names, " = "))
	}
	ref := found.Namespace + "/" + found.Name
	switch len(fit) {
	case 1:
		return job.Container(fit[0]), nil
	case 0:
		return "", failure.New(failure.NoStage, "the job's Pod %s has no container or service %q; it has %s", ref, name, strings.Join(there, ", "))
	}
	return "", failure.New(failure.NoStage, "the job's Pod %s has several services %q; name one by its container: %s", ref, name, strings.Join(fit, ", "))
}

// begun says why nothing can be done with a service's container yet.
func begun(found *corev1.Pod, container job.Container) error {
	name := found.Namespace + "/" + found.Name
	for _, c := range found.Status.ContainerStatuses {
		switch {
		case c.Name != string(container):
		case c.State.Waiting == nil:
			return nil
		default:
			return failure.New(failure.NoStage, "container %s of the job's Pod %s has not started%s", container, name, because(c.State.Waiting.Reason))
		}
	}
	return failure.New(failure.NoStage, "container %s of the job's Pod %s has not started", container, name)
}

// ended is how a container has ended, nil if it has not.
func ended(found *corev1.Pod, container job.Container) *corev1.ContainerStateTerminated {
	for _, c := range found.Status.ContainerStatuses {
		if c.Name == string(container) {
			return c.State.Terminated
		}
	}
	return nil
}
