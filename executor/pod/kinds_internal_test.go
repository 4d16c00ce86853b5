package pod

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/socialweb-computer/tenant-executor/executor/settings"
)

// Containers that other steps have added, of services, get what is for them: a
// part of the settings of their own, the volumes of the settings and of the
// builds, and nothing of the driver's, whatever the job calls them.
func TestServicesAmongContainers(t *testing.T) {
	yes, user, root := true, int64(1234), int64(0)
	for _, name := range []string{"db", "init-permissions"} {
		b := &builder{Plan: Plan{BuildsDir: "/builds", CacheDir: "/cache", Folder: "/driver", Settings: settings.Kubernetes{
			Security: settings.Security{
				BuildSecurityContext:           settings.ContainerSecurityContext{Privileged: &yes, RunAsUser: &root},
				InitPermissionsSecurityContext: settings.ContainerSecurityContext{Privileged: &yes},
				ServiceSecurityContext:         settings.ContainerSecurityContext{ReadOnlyRootFilesystem: &yes},
			},
			Storage: settings.Storage{Volumes: settings.Volumes{EmptyDirs: []settings.EmptyDir{{Name: "x", MountPath: "/x"}}}},
		}}}
		b.Pod = &corev1.Pod{Spec: corev1.PodSpec{
			Volumes: []corev1.Volume{scratch(buildsVolume), {Name: "secrets"}},
			Containers: []corev1.Container{
				{Name: "build"}, {Name: "helper"},
				{Name: name, VolumeMounts: []corev1.VolumeMount{{Name: buildsVolume, MountPath: "/builds"}},
					SecurityContext: &corev1.SecurityContext{RunAsUser: &user, Privileged: &yes}},
			},
		}}
		for _, step := range []func() error{b.storage, b.secure} {
			if err := step(); err != nil {
				t.Fatal(err)
			}
		}
		c := b.Pod.Spec.Containers[2]
		if c.SecurityContext.Privileged != nil || c.SecurityContext.ReadOnlyRootFilesystem == nil || *c.SecurityContext.RunAsUser != user {
			t.Errorf("%s: security context %+v", name, c.SecurityContext)
		}
		if len(c.VolumeMounts) != 2 || c.VolumeMounts[0].Name != buildsVolume || c.VolumeMounts[1].Name != "x" {
			t.Errorf("%s: mounts %+v", name, c.VolumeMounts)
		}
		if len(b.Pod.Spec.Volumes) != 5 {
			t.Errorf("%s: volumes %+v", name, b.Pod.Spec.Volumes)
		}
	}
}

// A user that the configuration names wins over the job's, the Pod's too.
func TestWhoseUserCounts(t *testing.T) {
	one, two, three := int64(1), int64(2), int64(3)
	for _, test := range []struct{ container, pod, job, want *int64 }{
		{&one, &two, &three, &one}, {nil, &two, &three, nil}, {nil, nil, &three, &three}, {nil, nil, nil, nil},
	} {
		context := containerSecurity(settings.Security{}, settings.ContainerSecurityContext{RunAsUser: test.container, RunAsGroup: test.container})
		context = withUser(context, &corev1.SecurityContext{RunAsUser: test.job, RunAsGroup: test.job}, settings.PodSecurityContext{RunAsUser: test.pod, RunAsGroup: test.pod})
		for _, got := range []*int64{context.RunAsUser, context.RunAsGroup} {
			if (got == nil) != (test.want == nil) || got != nil && *got != *test.want {
				t.Errorf("%+v: %v", test, got)
			}
		}
	}
}
