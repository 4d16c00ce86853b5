package stages

import (
	"fmt"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// outOfRange is what a LimitRange says of a container whose request or limit it does
// not allow. It does not say of which (plugin/pkg/admission/limitranger in
// Kubernetes).
var outOfRange = regexp.MustCompile(`(?:maximum|minimum) (\S+) usage per Container is [^,]+, but (limit|request) is ([^\s,\]]+)`)

// withBounded adds to the refusal of a Pod by a LimitRange the containers that it
// is about.
func withBounded(err error, spec *corev1.PodSpec) error {
	found := outOfRange.FindStringSubmatch(err.Error())
	if found == nil {
		return err
	}
	bad, parseErr := resource.ParseQuantity(strings.TrimSuffix(found[3], "."))
	if parseErr != nil {
		return err
	}
	var names []string
	for _, c := range spec.Containers {
		amounts := c.Resources.Limits
		if found[2] == "request" {
			amounts = c.Resources.Requests
		}
		if amount, set := amounts[corev1.ResourceName(found[1])]; set && amount.Cmp(bad) == 0 {
			names = append(names, c.Name)
		}
	}
	if len(names) == 0 {
		return err // the LimitRange's own default
	}
	return fmt.Errorf("%w (container %s)", err, strings.Join(names, ", "))
}
