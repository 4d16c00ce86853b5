package admission

import (
	"errors"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
)

// bound is what a LimitRange says of one resource
// (plugin/pkg/admission/limitranger in Kubernetes). It does not name itself, nor
// the container.
var bound = regexp.MustCompile(`(?:(minimum|maximum) (\S+) usage|(\S+) max limit to request ratio) per (Container|Pod) is [^\s,\]]+(?:\.  No (request|limit) is specified|, but (request|limit) is ([^\s,\]]+)|, but [^,\]]+)`)

// OutOfRange says of a refusal by a LimitRange which containers of the Pod it
// may be about: none where it is about the Pod as a whole. Without found it is
// no refusal of the kind.
func OutOfRange(err error, pod *corev1.PodSpec) (containers []string, found bool) {
	var status apierrors.APIStatus
	if !apierrors.IsForbidden(err) || !errors.As(err, &status) {
		return nil, false
	}
	for _, m := range bound.FindAllStringSubmatch(status.Status().Message, -1) {
		found = true
		if m[4] != "Container" {
			continue
		}
		for _, c := range slices.Concat(pod.InitContainers, pod.Containers) {
			if matches(&c.Resources, m) && !slices.Contains(containers, c.Name) {
				containers = append(containers, c.Name)
			}
		}
	}
	return containers, found
}

// matches says whether a container has what a LimitRange complains of. What the
// cluster has filled in is not seen here; of a ratio nothing more is said.
func matches(r *corev1.ResourceRequirements, complaint []string) bool {
	name := corev1.ResourceName(complaint[2] + complaint[3])
	list := r.Requests
	if strings.Contains(complaint[5]+complaint[6], "limit") {
		list = r.Limits
	}
	has, set := list[name]
	switch {
	case complaint[3] != "":
		return set
	case complaint[5] != "":
		return !set
	}
	said, err := resource.ParseQuantity(complaint[7])
	return err == nil && set && has.Cmp(said) == 0
}
