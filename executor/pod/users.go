package pod

import (
	"path"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/socialweb-computer/tenant-executor/executor/job"
)

// Feature flags of the runner that change the Pod
// (helpers/featureflags/flags.go).
const (
	// FlagNoUmask has the helper's files belong to the build container's user,
	// in place of being writable for everybody.
	FlagNoUmask = "FF_DISABLE_UMASK_FOR_KUBERNETES_EXECUTOR"
	// FlagPodSpec has the patches of pod_spec applied.
	FlagPodSpec = "FF_USE_ADVANCED_POD_SPEC_CONFIGURATION"
)

// Flag says whether a feature flag is on for a job. The runner hands flags over
// as variables of the job.
func Flag(variables job.Environment, name string) bool {
	on, err := strconv.ParseBool(strings.TrimSpace(variables.Variable(name)))
	return err == nil && on
}

// uidCollector is the init container that tells the build container's user, and
// uidFile the file that it makes for it: the runner's scripts give what the
// helper has made to the owner of the file (shells/abstract.go:965-999, and
// executors/kubernetes/kubernetes.go, buildUiGidCollector).
const (
	uidCollector = "init-build-uid-gid-collector"
	uidFile      = ".gitlab-build-uid-gid"
)

// users has the helper's files belong to the build container's user, with the
// job's flag for it. Without it they are writable for everybody (stages.Run).
// It comes after the steps that give the build container its image, volumes
// and user.
func (b *builder) users() error {
	if !Flag(b.Variables, FlagNoUmask) {
		return nil
	}
	for i := range b.Pod.Spec.Containers {
		if c := &b.Pod.Spec.Containers[i]; c.Name == string(job.Build) {
			b.Pod.Spec.InitContainers = append(b.Pod.Spec.InitContainers, b.collector(c))
		}
	}
	return nil
}

// collector runs as the build container does, in its image, and makes a file
// that belongs to its user.
func (b *builder) collector(build *corev1.Container) corev1.Container {
	return corev1.Container{
		Name:            uidCollector,
		Image:           build.Image,
		ImagePullPolicy: build.ImagePullPolicy,
		Command:         []string{"sh", "-c", `: >"$1"`, uidCollector, path.Join(b.BuildsDir, uidFile)},
		Resources:       *build.Resources.DeepCopy(),
		SecurityContext: build.SecurityContext.DeepCopy(),
		VolumeMounts:    append([]corev1.VolumeMount{}, build.VolumeMounts...),
	}
}
