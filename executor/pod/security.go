package pod

import (
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/socialweb-computer/tenant-executor/executor/job"
	"github.com/socialweb-computer/tenant-executor/executor/settings"
)

// droppedByDefault is what every container loses unless settings say
// otherwise, as with the kubernetes executor (kubernetes.go, defaultCapDrop).
const droppedByDefault = "NET_RAW"

// secure says what the Pod and its containers may do. It comes after every
// step that adds containers. A user that such a step has given to a container
// counts where neither the container's kind nor the Pod has one by settings.
func (b *builder) secure() error {
	s := b.Settings.Security
	b.Pod.Spec.SecurityContext = podSecurity(s.PodSecurityContext)
	b.Pod.Spec.RuntimeClassName = s.RuntimeClassName
	if s.AutomountServiceAccount != nil {
		b.Pod.Spec.AutomountServiceAccountToken = s.AutomountServiceAccount
	}
	for i := range b.Pod.Spec.Containers {
		c := &b.Pod.Spec.Containers[i]
		c.SecurityContext = withUser(containerSecurity(s, contextOf(s, c.Name)), c.SecurityContext, s.PodSecurityContext)
	}
	return nil
}

// contextOf is the part of the settings for a container. Every other than build
// and helper is a service, whatever the job calls it.
func contextOf(s settings.Security, container string) settings.ContainerSecurityContext {
	switch container {
	case string(job.Build):
		return s.BuildSecurityContext
	case string(job.Helper):
		return s.HelperSecurityContext
	}
	return s.ServiceSecurityContext
}

// containerSecurity is what a container may do, by its part of the settings
// and by what holds for all.
func containerSecurity(s settings.Security, c settings.ContainerSecurityContext) *corev1.SecurityContext {
	context := &corev1.SecurityContext{
		Capabilities:             capabilities(s, c.Capabilities),
		Privileged:               either(c.Privileged, s.Privileged),
		AllowPrivilegeEscalation: either(c.AllowPrivilegeEscalation, s.AllowPrivilegeEscalation),
		RunAsUser:                c.RunAsUser,
		RunAsGroup:               c.RunAsGroup,
		RunAsNonRoot:             c.RunAsNonRoot,
		ReadOnlyRootFilesystem:   c.ReadOnlyRootFilesystem,
		SELinuxOptions:           seLinux(c.SELinuxType),
		SeccompProfile:           seccomp(c.SeccompProfile),
		AppArmorProfile:          appArmor(c.AppArmorProfile),
	}
	if mount := strings.ToLower(strings.TrimSpace(c.ProcMount)); mount != "" {
		kind := corev1.DefaultProcMount
		if mount == "unmasked" {
			kind = corev1.UnmaskedProcMount
		}
		context.ProcMount = &kind
	}
	return context
}

// withUser adds the user and the group that a container had before, where no
// setting is in the way: the container's own wins, then the Pod's, then the
// job's (executors/kubernetes/kubernetes.go, pickSecurityContextID).
func withUser(context, before *corev1.SecurityContext, whole settings.PodSecurityContext) *corev1.SecurityContext {
	if before == nil {
		return context
	}
	if context.RunAsUser == nil && whole.RunAsUser == nil {
		context.RunAsUser = before.RunAsUser
	}
	if context.RunAsGroup == nil && whole.RunAsGroup == nil {
		context.RunAsGroup = before.RunAsGroup
	}
	return context
}

func podSecurity(p settings.PodSecurityContext) *corev1.PodSecurityContext {
	if reflect.DeepEqual(p, settings.PodSecurityContext{}) {
		return nil
	}
	return &corev1.PodSecurityContext{
		FSGroup:            p.FSGroup,
		RunAsUser:          p.RunAsUser,
		RunAsGroup:         p.RunAsGroup,
		RunAsNonRoot:       p.RunAsNonRoot,
		SupplementalGroups: p.SupplementalGroups,
		SELinuxOptions:     seLinux(p.SELinuxType),
		SeccompProfile:     seccomp(p.SeccompProfile),
		AppArmorProfile:    appArmor(p.AppArmorProfile),
	}
}

// capabilities are those of all containers, and in place of each list the
// container's own where it has one. A capability that is dropped is not added.
func capabilities(s settings.Security, own *settings.Capabilities) *corev1.Capabilities {
	drop := slices.Clone(s.CapDrop)
	if !slices.Contains(s.CapAdd, droppedByDefault) {
		drop = append(drop, droppedByDefault)
	}
	var add []string
	for _, name := range s.CapAdd {
		if !slices.Contains(drop, name) {
			add = append(add, name)
		}
	}
	if own != nil && own.Add != nil {
		add = slices.Clone(own.Add)
	}
	if own != nil && own.Drop != nil {
		drop = slices.Clone(own.Drop)
	}
	if len(add)+len(drop) == 0 {
		return nil
	}
	return &corev1.Capabilities{Add: capabilityList(add), Drop: capabilityList(drop)}
}

func capabilityList(names []string) []corev1.Capability {
	slices.Sort(names)
	var list []corev1.Capability
	for _, name := range slices.Compact(names) {
		list = append(list, corev1.Capability(name))
	}
	return list
}

func either(first, second *bool) *bool {
	if first != nil {
		return first
	}
	return second
}

func seLinux(kind string) *corev1.SELinuxOptions {
	if kind == "" {
		return nil
	}
	return &corev1.SELinuxOptions{Type: kind}
}

func seccomp(p *settings.Profile) *corev1.SeccompProfile {
	if p == nil || p.Type == "" {
		return nil
	}
	return &corev1.SeccompProfile{Type: corev1.SeccompProfileType(p.Type), LocalhostProfile: present(p.LocalhostProfile)}
}

func appArmor(p *settings.Profile) *corev1.AppArmorProfile {
	if p == nil || p.Type == "" {
		return nil
	}
	return &corev1.AppArmorProfile{Type: corev1.AppArmorProfileType(p.Type), LocalhostProfile: present(p.LocalhostProfile)}
}

// present is nil for "".
func present(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}
