package pod

import (
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/socialweb-computer/tenant-executor/executor/registry"
)

// daemons notes services that are Docker's own daemon without the rights that it
// needs. They are noted and not refused: many a pipeline has such a service for
// all of its jobs, of which most use no Docker and pass without it. The nodes'
// usual runtime may also run daemons without privileges, which no Pod shows.
func (b *builder) daemons() error {
	for _, s := range b.Services {
		for _, c := range containersOf(b.Pod.Spec.Containers, s.Container) {
			if !startsDaemon(c) || b.mayRunDaemon(c) {
				continue
			}
			b.note("Service %s (container %s) starts a Docker daemon without privileges, so it will end at once in most clusters. The operator has to set kubernetes.privileged, or privileged in [kubernetes.service_container_security_context], or a kubernetes.runtime_class_name that runs daemons without it.", s.Label, c.Name)
		}
	}
	return nil
}

// startsDaemon says whether a container runs what Docker's image with a daemon
// runs by itself. Its entrypoint takes flags for the daemon, and any other
// argument but the daemon's name for another program.
func startsDaemon(c corev1.Container) bool {
	name, tag := path.Base(string(registry.RepositoryOf(c.Image))), registry.TagOf(c.Image)
	if name != "docker" || !slices.Contains(strings.Split(tag, "-"), "dind") || len(c.Command) > 0 {
		return false
	}
	return len(c.Args) == 0 || strings.HasPrefix(c.Args[0], "-") || c.Args[0] == "dockerd"
}

// mayRunDaemon says whether a container of the Pod as it is made may mount what
// a daemon mounts: by its rights, in another runtime, or with an own view of the
// system for daemons without root.
func (b *builder) mayRunDaemon(c corev1.Container) bool {
	s := c.SecurityContext
	switch {
	case b.Pod.Spec.RuntimeClassName != nil:
		return true
	case s == nil:
		return false
	case s.Privileged != nil && *s.Privileged, s.ProcMount != nil && *s.ProcMount == corev1.UnmaskedProcMount:
		return true
	}
	return s.Capabilities != nil && slices.ContainsFunc(s.Capabilities.Add, func(name corev1.Capability) bool {
		return name == "SYS_ADMIN" || name == "CAP_SYS_ADMIN" || name == "ALL"
	})
}
