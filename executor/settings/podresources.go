package settings

// PodResources are what all containers of a Pod share. The cluster needs
// pod-level resources for it (Kubernetes 1.34, or the feature gate
// PodLevelResources).
type PodResources struct {
	PodCPURequest    string `toml:"pod_cpu_request" example:"1" doc:"CPU that all containers together are sure of. The cluster has to know pod-level resources (Kubernetes 1.34)."`
	PodCPULimit      string `toml:"pod_cpu_limit" example:"4" doc:"CPU that all containers together get at most."`
	PodMemoryRequest string `toml:"pod_memory_request" example:"2Gi" doc:"Memory that all containers together are sure of."`
	PodMemoryLimit   string `toml:"pod_memory_limit" example:"4Gi" doc:"Memory that all containers together get at most."`
}

// Whole are the resources of the whole Pod.
func (p PodResources) Whole() []Resource {
	return []Resource{
		{"pod_cpu", p.PodCPURequest, p.PodCPULimit},
		{"pod_memory", p.PodMemoryRequest, p.PodMemoryLimit},
	}
}

func (p PodResources) check() []error { return checkResources(p.Whole()) }
