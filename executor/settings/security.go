package settings

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Security is what the containers may do. A pointer that is nil leaves the
// decision to the image, or to the cluster.
type Security struct {
	Privileged               *bool    `toml:"privileged" example:"true" doc:"Runs every container of the Pod privileged: root in it is root on the node. Without it the cluster decides, which means no."`
	AllowPrivilegeEscalation *bool    `toml:"allow_privilege_escalation" example:"false" doc:"Whether a process may gain more rights than its parent, as sudo does. Without it the cluster decides, which means yes."`
	CapAdd                   []string `toml:"cap_add" example:"SYS_PTRACE" doc:"Linux capabilities that every container gets beyond the usual ones. NET_RAW is dropped unless it stands here."`
	CapDrop                  []string `toml:"cap_drop" example:"MKNOD" doc:"Linux capabilities that every container loses. It wins over cap_add."`
	RuntimeClassName         *string  `toml:"runtime_class_name" example:"gvisor" doc:"Runtime class of the Pods."`
	AutomountServiceAccount  *bool    `toml:"automount_service_account_token" default:"false" doc:"Whether the token of service_account is mounted into the containers, so that scripts can use the cluster with it." parity:"off by default; the kubernetes executor leaves it to the cluster, which means on"`

	PodSecurityContext             PodSecurityContext       `toml:"pod_security_context" doc:"Users and profiles of the whole Pod."`
	BuildSecurityContext           ContainerSecurityContext `toml:"build_container_security_context" doc:"What the build container may do. Its keys win over those of the Pod, and over privileged, cap_add and their like above."`
	HelperSecurityContext          ContainerSecurityContext `toml:"helper_container_security_context" doc:"As build_container_security_context, for the helper container."`
	ServiceSecurityContext         ContainerSecurityContext `toml:"service_container_security_context" doc:"As build_container_security_context, for the containers of services."`
	InitPermissionsSecurityContext ContainerSecurityContext `toml:"init_permissions_container_security_context" doc:"Accepted so that files of the kubernetes executor stay valid: this driver needs no such container." parity:"has no effect: there is no init-permissions container"`
}

// PodSecurityContext is what the containers of a Pod have in common.
type PodSecurityContext struct {
	FSGroup            *int64   `toml:"fs_group" example:"1000" doc:"Group that every container is in, and that the folders of the job belong to. Give it where images run as other users than root."`
	RunAsUser          *int64   `toml:"run_as_user" example:"1000" doc:"User id of every container, in place of the image's own."`
	RunAsGroup         *int64   `toml:"run_as_group" example:"1000" doc:"Group id of every container, in place of the image's own."`
	RunAsNonRoot       *bool    `toml:"run_as_non_root" example:"true" doc:"Whether containers that would run as root are refused."`
	SupplementalGroups []int64  `toml:"supplemental_groups" example:"2000" doc:"Further groups that every container is in."`
	SELinuxType        string   `toml:"selinux_type" example:"container_t" doc:"SELinux type of every container."`
	SeccompProfile     *Profile `toml:"seccomp_profile" doc:"Seccomp profile of every container."`
	AppArmorProfile    *Profile `toml:"app_armor_profile" doc:"AppArmor profile of every container."`
}

// ContainerSecurityContext is what one kind of container may do.
type ContainerSecurityContext struct {
	Capabilities             *Capabilities `toml:"capabilities" doc:"Linux capabilities of the container. A list that is given takes the place of the Pod's."`
	Privileged               *bool         `toml:"privileged" example:"false" doc:"As kubernetes.privileged, for this container."`
	RunAsUser                *int64        `toml:"run_as_user" example:"1000" doc:"User id, in place of the image's own."`
	RunAsGroup               *int64        `toml:"run_as_group" example:"1000" doc:"Group id, in place of the image's own."`
	RunAsNonRoot             *bool         `toml:"run_as_non_root" example:"true" doc:"Whether the container is refused if it would run as root."`
	ReadOnlyRootFilesystem   *bool         `toml:"read_only_root_filesystem" example:"true" doc:"Whether all but the volumes is read-only. HOME and TMPDIR are then on a volume."`
	AllowPrivilegeEscalation *bool         `toml:"allow_privilege_escalation" example:"false" doc:"As kubernetes.allow_privilege_escalation, for this container."`
	SELinuxType              string        `toml:"selinux_type" example:"container_t" doc:"SELinux type."`
	ProcMount                string        `toml:"proc_mount" example:"default" doc:"How /proc is mounted: default, or unmasked for building images without privileges. Kubernetes demands hostUsers: false for unmasked, which a pod_spec patch can set."`
	SeccompProfile           *Profile      `toml:"seccomp_profile" doc:"Seccomp profile of the container."`
	AppArmorProfile          *Profile      `toml:"app_armor_profile" doc:"AppArmor profile of the container."`
}

// Capabilities are Linux capabilities.
type Capabilities struct {
	Add  []string `toml:"add" example:"SYS_PTRACE" doc:"Capabilities to add."`
	Drop []string `toml:"drop" example:"ALL" doc:"Capabilities to drop. Where it is given, NET_RAW is dropped only if it stands here."`
}

// Profile types, as Kubernetes names them.
const (
	ProfileRuntimeDefault = "RuntimeDefault"
	ProfileLocalhost      = "Localhost"
	ProfileUnconfined     = "Unconfined"
)

// Profile is a seccomp or AppArmor profile.
type Profile struct {
	Type             string `toml:"type" example:"Localhost" doc:"RuntimeDefault, Localhost or Unconfined."`
	LocalhostProfile string `toml:"localhost_profile" example:"profiles/ci" doc:"With Localhost, and only then: the profile's name, or its path below the kubelet's folder of profiles."`
}

func (s Security) check() []error {
	all := []error{}
	for _, list := range []struct {
		key   string
		names []string
	}{{"cap_add", s.CapAdd}, {"cap_drop", s.CapDrop}} {
		all = append(all, checkCapabilities("kubernetes."+list.key, list.names)...)
	}
	if s.RuntimeClassName != nil && len(validation.IsDNS1123Subdomain(*s.RuntimeClassName)) > 0 {
		all = append(all, fmt.Errorf("kubernetes.runtime_class_name is %q: it has to be the name of a RuntimeClass", *s.RuntimeClassName))
	}
	all = append(all, s.PodSecurityContext.check("kubernetes.pod_security_context")...)
	for _, context := range []struct {
		key   string
		value ContainerSecurityContext
	}{
		{"build_container_security_context", s.BuildSecurityContext},
		{"helper_container_security_context", s.HelperSecurityContext},
		{"service_container_security_context", s.ServiceSecurityContext},
		{"init_permissions_container_security_context", s.InitPermissionsSecurityContext},
	} {
		all = append(all, context.value.check("kubernetes."+context.key, s)...)
	}
	return all
}

func (p PodSecurityContext) check(key string) []error {
	all := []error{
		checkID(key+".fs_group", p.FSGroup), checkID(key+".run_as_user", p.RunAsUser), checkID(key+".run_as_group", p.RunAsGroup),
		checkNonRoot(key, p.RunAsNonRoot, p.RunAsUser),
		p.SeccompProfile.check(key+".seccomp_profile", true), p.AppArmorProfile.check(key+".app_armor_profile", false),
	}
	for _, group := range p.SupplementalGroups {
		all = append(all, checkID(key+".supplemental_groups", &group))
	}
	return all
}

func (c ContainerSecurityContext) check(key string, s Security) []error {
	all := []error{
		checkID(key+".run_as_user", c.RunAsUser), checkID(key+".run_as_group", c.RunAsGroup),
		checkNonRoot(key, c.RunAsNonRoot, c.RunAsUser),
		c.SeccompProfile.check(key+".seccomp_profile", true), c.AppArmorProfile.check(key+".app_armor_profile", false),
	}
	if c.Capabilities != nil {
		all = append(all, checkCapabilities(key+".capabilities.add", c.Capabilities.Add)...)
		all = append(all, checkCapabilities(key+".capabilities.drop", c.Capabilities.Drop)...)
	}
	if !slices.Contains([]string{"", "default", "unmasked"}, strings.ToLower(strings.TrimSpace(c.ProcMount))) {
		all = append(all, fmt.Errorf("%s.proc_mount is %q: use default or unmasked", key, c.ProcMount))
	}
	privileged, escalation := s.Privileged, s.AllowPrivilegeEscalation
	if c.Privileged != nil {
		privileged = c.Privileged
	}
	if c.AllowPrivilegeEscalation != nil {
		escalation = c.AllowPrivilegeEscalation
	}
	if privileged != nil && *privileged && escalation != nil && !*escalation {
		all = append(all, fmt.Errorf("%s: a privileged container cannot be without privilege escalation; remove privileged or allow_privilege_escalation = false", key))
	}
	return all
}

// maxID is the largest user or group id that Kubernetes takes.
const maxID = 1<<31 - 1

func checkID(key string, id *int64) error {
	if id != nil && (*id < 0 || *id > maxID) {
		return fmt.Errorf("%s is %d: an id is between 0 and %d", key, *id, maxID)
	}
	return nil
}

func checkNonRoot(key string, nonRoot *bool, user *int64) error {
	if nonRoot != nil && *nonRoot && user != nil && *user == 0 {
		return fmt.Errorf("%s.run_as_user is 0, which is root, beside run_as_non_root = true: no container would start", key)
	}
	return nil
}

// checkCapabilities takes names as Kubernetes does, without CAP_ before them.
func checkCapabilities(key string, names []string) []error {
	var all []error
	for _, name := range names {
		if name == "" || strings.HasPrefix(strings.ToUpper(name), "CAP_") || strings.ContainsAny(name, " ,") {
			all = append(all, fmt.Errorf("%s has %q: write one capability without CAP_, such as NET_RAW", key, name))
		}
	}
	return all
}

func (p *Profile) check(key string, isPath bool) error {
	switch {
	case p == nil || p.Type == "" && p.LocalhostProfile == "":
		return nil
	case !slices.Contains([]string{ProfileRuntimeDefault, ProfileLocalhost, ProfileUnconfined}, p.Type):
		return fmt.Errorf("%s.type is %q: use RuntimeDefault, Localhost or Unconfined", key, p.Type)
	case p.Type == ProfileLocalhost && p.LocalhostProfile == "":
		return fmt.Errorf("%s.localhost_profile is not set: Localhost needs the name of a profile on the nodes", key)
	case p.Type != ProfileLocalhost && p.LocalhostProfile != "":
		return fmt.Errorf("%s.localhost_profile is set beside type %s: it goes with Localhost alone", key, p.Type)
	case isPath && p.LocalhostProfile != "" && (path.IsAbs(p.LocalhostProfile) || slices.Contains(strings.Split(p.LocalhostProfile, "/"), "..")):
		return fmt.Errorf("%s.localhost_profile is %q: write a path below the kubelet's folder of profiles, without \"..\" in it", key, p.LocalhostProfile)
	}
	return nil
}
