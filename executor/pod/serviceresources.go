package pod

import (
	"cmp"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/socialweb-computer/tenant-executor/executor/failure"
	"github.com/socialweb-computer/tenant-executor/executor/settings"
)

// serviceResources are the resources of a service: those of the configuration,
// overwritten by variables of the job and, before these, of the service itself,
// as far as the configuration allows (executors/kubernetes/overwrites.go).
func (b *builder) serviceResources(s Service) (corev1.ResourceRequirements, error) {
	requirements := corev1.ResourceRequirements{}
	for _, r := range b.Settings.ServiceResources() {
		value, err := b.serviceQuantity(s, r)
		if err != nil {
			return requirements, err
		}
		if value == nil {
			continue
		}
		name, err := resourceName(r.Resource)
		if err != nil {
			return requirements, failure.Wrap(failure.Internal, err, "the service %s", s.Image)
		}
		list := &requirements.Requests
		if r.Limit {
			list = &requirements.Limits
		}
		if *list == nil {
			*list = corev1.ResourceList{}
		}
		(*list)[name] = *value
	}
	for name, request := range requirements.Requests {
		if limit, limited := requirements.Limits[name]; limited && request.Cmp(limit) > 0 {
			return requirements, s.refuse(fmt.Errorf("it asks for %s of %s and is limited to %s", request.String(), name, limit.String()))
		}
	}
	return requirements, nil
}

// serviceQuantity is one number of a service's resources, nil where none is
// set.
func (b *builder) serviceQuantity(s Service, r settings.ServiceResource) (*resource.Quantity, error) {
	text, wanted := r.Value, ""
	if r.Max != "" {
		wanted = cmp.Or(s.variable(r.Variable()), b.Variables.Variable(r.Variable()))
	}
	if wanted != "" {
		text = wanted
	}
	if text == "" {
		return nil, nil
	}
	value, err := resource.ParseQuantity(text)
	switch {
	case err != nil && wanted == "":
		return nil, failure.Wrap(failure.Settings, err, "kubernetes.%s is %q", r.Key(), text)
	case err != nil || value.Sign() < 0:
		return nil, s.refuse(fmt.Errorf("its %s is %q: write a Kubernetes quantity such as 500m, 2 or 4Gi", r.Variable(), text))
	case wanted == "":
		return &value, nil
	}
	most, err := resource.ParseQuantity(r.Max)
	if err != nil {
		return nil, failure.Wrap(failure.Settings, err, "kubernetes.%s_overwrite_max_allowed is %q", r.Key(), r.Max)
	}
	if value.Cmp(most) > 0 {
		return nil, s.refuse(fmt.Errorf("its %s is %s, and kubernetes.%s_overwrite_max_allowed is %s", r.Variable(), wanted, r.Key(), r.Max))
	}
	b.Notes = append(b.Notes, fmt.Sprintf("Service %s: %s is %s, by the variable %s", s.Label, r.Key(), wanted, r.Variable()))
	return &value, nil
}
