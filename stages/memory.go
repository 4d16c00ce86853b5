package stages

import (
	"fmt"
	"strings"

	"github.com/socialweb-computer/tenant-executor/executor/job"
)

// memoryLimit says how much memory a container may use, and how the job can ask
// for more, "" where the container has no limit of its own.
func (d *Driver) memoryLimit(container string) string {
	k, operators := d.settings.Kubernetes, d.asked.operators
	limit, theirs, most, key := k.ServiceMemoryLimit, operators.ServiceMemoryLimit, k.ServiceMemoryLimitMax, "service_memory_limit"
	switch container {
	case string(job.Build):
		limit, theirs, most, key = k.MemoryLimit, operators.MemoryLimit, k.MemoryLimitOverwriteMaxAllowed, "memory_limit"
	case string(job.Helper):
		limit, theirs, most, key = k.HelperMemoryLimit, operators.HelperMemoryLimit, k.HelperMemoryLimitOverwriteMaxAllowed, "helper_memory_limit"
	}
	variable := "KUBERNETES_" + strings.ToUpper(key)
	var parts []string
	switch {
	case limit == "":
	case limit != theirs:
		parts = append(parts, variable+" is "+limit)
	default:
		parts = append(parts, key+" is "+limit)
	}
	if most != "" {
		parts = append(parts, fmt.Sprintf("the job may set %s up to %s", variable, most))
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, "; ") + ")"
}
