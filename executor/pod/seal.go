package pod

import (
	"errors"
	"fmt"
	"path"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/socialweb-computer/tenant-executor/executor/failure"
	"github.com/socialweb-computer/tenant-executor/executor/job"
)

// seal is the last step. It refuses a Pod that patches have made into one that
// could share its node with another job, or in which stages could not run.
func (b *builder) seal() error {
	all := []error{b.sealPlace()}
	for _, name := range []job.Container{job.Build, job.Helper} {
		all = append(all, b.sealContainer(string(name)))
	}
	if err := errors.Join(all...); err != nil {
		return failure.Wrap(failure.Settings, err, "kubernetes.pod_spec is refused")
	}
	return nil
}

// sealPlace looks at what keeps the Pod on a node of its own.
func (b *builder) sealPlace() error {
	spec := &b.Pod.Spec
	var all []error
	if !keepsAway(spec.Affinity) {
		all = append(all, fmt.Errorf("it removes or changes the Pod's required anti-affinity to %s=%s: two jobs could share a node; add terms to the list instead", LabelComponent, ComponentJob))
	}
	if spec.NodeName != "" {
		all = append(all, fmt.Errorf("it sets nodeName to %s: no scheduler would keep jobs on nodes of their own; use a node selector or node affinity", spec.NodeName))
	}
	if spec.RestartPolicy != corev1.RestartPolicyNever {
		all = append(all, fmt.Errorf("it sets restartPolicy to %q: a job's containers cannot start again", spec.RestartPolicy))
	}
	return errors.Join(all...)
}

func keepsAway(a *corev1.Affinity) bool {
	return a != nil && a.PodAntiAffinity != nil && slices.ContainsFunc(a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution, func(term corev1.PodAffinityTerm) bool {
		return reflect.DeepEqual(term, oneJobANode())
	})
}

// sealContainer looks at one of the containers that stages run in.
func (b *builder) sealContainer(name string) error {
	now, before := containersOf(b.Pod.Spec.Containers, name), containersOf(b.unpatched.Containers, name)
	if len(now) != 1 || len(before) != 1 {
		return fmt.Errorf("it leaves %d containers named %s, where stages need one", len(now), name)
	}
	var all []error
	c := now[0]
	if !slices.Equal(c.Command, before[0].Command) || !slices.Equal(c.Args, before[0].Args) {
		all = append(all, fmt.Errorf("it changes the command or args of container %s, which keep it alive between stages", name))
	}
	for _, folder := range []string{b.Folder, b.BuildsDir} {
		all = append(all, b.sealMount(c, folder))
	}
	return errors.Join(all...)
}

// sealMount looks at a folder that build and helper have to share.
func (b *builder) sealMount(c corev1.Container, folder string) error {
	m, found := mountAt(c, folder)
	switch other := containersOf(b.Pod.Spec.Containers, string(job.Build)); {
	case !found:
		return fmt.Errorf("it leaves container %s without the volume at %s", c.Name, folder)
	case m.ReadOnly:
		return fmt.Errorf("it makes %s of container %s read-only", folder, c.Name)
	case !slices.ContainsFunc(b.Pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == m.Name }):
		return fmt.Errorf("it removes the volume %s, which is at %s of container %s", m.Name, folder, c.Name)
	case len(other) == 1:
		if o, there := mountAt(other[0], folder); there && (o.Name != m.Name || o.SubPath != m.SubPath || o.SubPathExpr != m.SubPathExpr) {
			return fmt.Errorf("it gives containers build and %s different volumes at %s", c.Name, folder)
		}
	}
	return nil
}

func mountAt(c corev1.Container, folder string) (corev1.VolumeMount, bool) {
	i := slices.IndexFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return path.Clean(m.MountPath) == path.Clean(folder) })
	if i < 0 {
		return corev1.VolumeMount{}, false
	}
	return c.VolumeMounts[i], true
}

func containersOf(list []corev1.Container, name string) []corev1.Container {
	var found []corev1.Container
	for _, c := range list {
		if c.Name == name {
			found = append(found, c)
		}
	}
	return found
}
