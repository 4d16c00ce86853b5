package pod

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/socialweb-computer/tenant-executor/executor/job"
)

// jobUsers gives the build container and the services the users that the job
// names. It comes after secure: what settings say wins.
func (b *builder) jobUsers() error {
	if build := b.of(job.Build); build != nil {
		b.setUser(build, b.Job.Image)
	}
	for _, s := range b.Services {
		if c := b.of(job.Container(s.Container)); c != nil {
			b.setUser(c, s.definition)
		}
	}
	return nil
}

// setUser gives a container the user and the group that its image's options
// name ("uid" or "uid:gid"), as far as the operator lets the job choose: what
// the container's or the Pod's security context says wins, and root has to be
// listed. Otherwise the job runs as configured, with a word in the job log, as
// in the kubernetes executor (executors/kubernetes/kubernetes.go,
// getContainerUIDGID).
func (b *builder) setUser(c *corev1.Container, of job.Image) {
	user, group, _ := strings.Cut(b.expand(string(of.Options.Kubernetes.User)), ":")
	if c.SecurityContext == nil {
		c.SecurityContext = &corev1.SecurityContext{}
	}
	ofPod := b.Pod.Spec.SecurityContext
	if ofPod == nil {
		ofPod = &corev1.PodSecurityContext{}
	}
	b.setID(c, "user", user, b.Settings.AllowedUsers, &c.SecurityContext.RunAsUser, ofPod.RunAsUser)
	b.setID(c, "group", group, b.Settings.AllowedGroups, &c.SecurityContext.RunAsGroup, ofPod.RunAsGroup)
}

func (b *builder) setID(c *corev1.Container, kind, wanted string, allowed []string, own **int64, ofPod *int64) {
	if wanted == "" {
		return
	}
	for _, fixed := range []*int64{*own, ofPod} {
		if fixed != nil {
			b.note("Container %s runs as %s %d, which the configuration sets; the job's own (%s) is not used", c.Name, kind, *fixed, wanted)
			return
		}
	}
	id, err := allowedID(wanted, allowed)
	if err != nil {
		b.note("The %s %q that the job names for container %s is not used: %v", kind, wanted, c.Name, err)
		return
	}
	*own = &id
}

// allowedID reads an id that a job names. Root has to be listed; without a list
// all others are allowed (common/config.go, isUserOrGroupAllowed).
func allowedID(text string, allowed []string) (int64, error) {
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil || id < 0 {
		return 0, fmt.Errorf("it is not a number from 0 on")
	}
	if id != 0 && len(allowed) == 0 {
		return id, nil
	}
	listed := slices.ContainsFunc(allowed, func(entry string) bool {
		// As numbers, so that 00 is 0.
		n, err := strconv.ParseInt(entry, 10, 64)
		return err == nil && n == id
	})
	switch {
	case listed:
		return id, nil
	case len(allowed) == 0:
		return 0, fmt.Errorf("the configuration has to list 0 for that")
	}
	return 0, fmt.Errorf("the configuration allows %s", strings.Join(allowed, ", "))
}

// note keeps a word for the job log.
func (b *builder) note(format string, args ...any) {
	b.Notes = append(b.Notes, fmt.Sprintf(format, args...))
}
