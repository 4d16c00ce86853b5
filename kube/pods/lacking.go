package pods

import (
	"regexp"
	"slices"
)

// lacking are the words of the scheduler, the kubelet and the container runtime
// for what a Pod names and nobody has: claims (pkg/scheduler in Kubernetes),
// Secrets, ConfigMaps and CSI drivers (pkg/volume), programs that mount a kind of
// file system (util-linux), runtimes and profiles (pkg/cri in containerd).
var lacking = regexp.MustCompile(
	`persistentvolumeclaim "[^"]*" not found|bound to non-existent persistentvolume|unbound immediate PersistentVolumeClaims|` +
		`(secret|configmap) "[^"]*" not found|references non-existent (secret|config) key|couldn't find key |` +
		`not found in the list of registered CSI drivers|might need a /sbin/mount\.|unknown filesystem type|` +
		`no runtime for "[^"]*" is configured|cannot load seccomp profile|apparmor profile not found|apparmor is not supported`)

// Lacking says whether the cluster's words are about something that the Pod
// names and the cluster or its node does not have. It may come a little later,
// as on a node that has just been booted.
func Lacking(words string) bool { return lacking.MatchString(words) }

// misfit says whether a kubelet has refused the Pod for what it asks for: the
// next node like this one would as well, topology included, since a node takes
// one job. Other refusals are about the node's state (pkg/kubelet/lifecycle,
// pkg/kubelet/sysctl, pkg/kubelet/cm/topologymanager in Kubernetes).
func misfit(reason string) bool {
	return slices.Contains([]string{
		"AppArmor", "SysctlForbidden", "PodFeatureUnsupported", "PodLevelResourcesNotSupported", "PodOSNotSupported",
		"PodOSSelectorNodeLabelDoesNotMatch", "SupplementalGroupsPolicyNotSupported", "InitContainerRestartPolicyForbidden",
		"TopologyAffinityError",
	}, reason)
}
