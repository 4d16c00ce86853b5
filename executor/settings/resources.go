package settings

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Resources are what the containers are sure of and what they get at most, as
// Kubernetes quantities.
type Resources struct {
	CPURequest              string `toml:"cpu_request" example:"500m" doc:"CPU that the build container is sure of."`
	CPULimit                string `toml:"cpu_limit" example:"2" doc:"CPU that the build container gets at most."`
	MemoryRequest           string `toml:"memory_request" example:"1Gi" doc:"Memory that the build container is sure of."`
	MemoryLimit             string `toml:"memory_limit" example:"2Gi" doc:"Memory at which the build container is ended."`
	EphemeralStorageRequest string `toml:"ephemeral_storage_request" example:"2Gi" doc:"Disk space that the build container is sure of."`
	EphemeralStorageLimit   string `toml:"ephemeral_storage_limit" example:"10Gi" doc:"Disk space at which the Pod is evicted."`

	HelperCPURequest              string `toml:"helper_cpu_request" example:"100m" doc:"As cpu_request, for the helper container."`
	HelperCPULimit                string `toml:"helper_cpu_limit" example:"1" doc:"As cpu_limit, for the helper container."`
	HelperMemoryRequest           string `toml:"helper_memory_request" example:"128Mi" doc:"As memory_request, for the helper container."`
	HelperMemoryLimit             string `toml:"helper_memory_limit" example:"512Mi" doc:"As memory_limit, for the helper container."`
	HelperEphemeralStorageRequest string `toml:"helper_ephemeral_storage_request" example:"1Gi" doc:"As ephemeral_storage_request, for the helper container."`
	HelperEphemeralStorageLimit   string `toml:"helper_ephemeral_storage_limit" example:"10Gi" doc:"As ephemeral_storage_limit, for the helper container."`
}

// Resource is a pair of settings for one resource of one container.
type Resource struct {
	// Name is the resource as the settings name it: cpu, memory or
	// ephemeral_storage, with "helper_" before it for the helper.
	Name           string
	Request, Limit string
}

// BuildResources are the resources of the build container.
func (r Resources) BuildResources() []Resource {
	return []Resource{
		{"cpu", r.CPURequest, r.CPULimit},
		{"memory", r.MemoryRequest, r.MemoryLimit},
		{"ephemeral_storage", r.EphemeralStorageRequest, r.EphemeralStorageLimit},
	}
}

// HelperResources are the resources of the helper container.
func (r Resources) HelperResources() []Resource {
	return []Resource{
		{"helper_cpu", r.HelperCPURequest, r.HelperCPULimit},
		{"helper_memory", r.HelperMemoryRequest, r.HelperMemoryLimit},
		{"helper_ephemeral_storage", r.HelperEphemeralStorageRequest, r.HelperEphemeralStorageLimit},
	}
}

func (r Resources) check() []error {
	return checkResources(append(r.BuildResources(), r.HelperResources()...))
}

func checkResources(pairs []Resource) []error {
	var all []error
	for _, pair := range pairs {
		request, err1 := parseQuantity("kubernetes."+pair.Name+"_request", pair.Request)
		limit, err2 := quantity("kubernetes."+pair.Name+"_limit", pair.Limit)
		all = append(all, err1, err2)
		if err1 == nil && err2 == nil && pair.Request != "" && pair.Limit != "" && request.Cmp(limit) > 0 {
			all = append(all, fmt.Errorf("kubernetes.%s_request is %s, more than %s_limit, which is %s", pair.Name, pair.Request, pair.Name, pair.Limit))
		}
	}
	return all
}

// quantity reads a quantity above 0. Kubernetes takes a limit of 0 for none at
// all.
func quantity(key, text string) (resource.Quantity, error) {
	q, err := parseQuantity(key, text)
	if err == nil && text != "" && q.Sign() == 0 {
		err = fmt.Errorf("%s is %q: it has to be above 0", key, text)
	}
	return q, err
}

func parseQuantity(key, text string) (resource.Quantity, error) {
	if text == "" {
		return resource.Quantity{}, nil
	}
	q, err := resource.ParseQuantity(text)
	if err != nil {
		return q, fmt.Errorf("%s is %q: write a Kubernetes quantity such as 500m, 2 or 4Gi", key, text)
	}
	if q.Sign() < 0 {
		return q, fmt.Errorf("%s is %q: it has to be 0 or more", key, text)
	}
	return q, nil
}
