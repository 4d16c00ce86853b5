package stages

import (
	"fmt"
	"strings"

	"github.com/socialweb-computer/tenant-executor/executor/job"
)

// memoryLimit says how much memory a container may use, and how the job can ask
// for more, "" where the container has no limit of its own.
func (d *Driver) memoryLimit(container string) string {
	k := d.settings.Kubernetes
	limit, most, variable := k.ServiceMemoryLimit, k.ServiceMemoryLimitMax, "KUBERNETES_SERVICE_MEMORY_LIMIT"
	switch container {
	case string(job.Build):
		limit, most, variable = k.MemoryLimit, k.MemoryLimitOverwriteMaxAllowed, "KUBERNETES_MEMORY_LIMIT"
	case string(job.Helper):
		limit, most, variable = k.HelperMemoryLimit, k.HelperMemoryLimitOverwriteMaxAllowed, "KUBERNETES_HELPER_MEMORY_LIMIT"
	}
	var parts []string
	if limit != "" {
		parts = append(parts, "its limit is "+limit)
	}
	if most != "" {
		parts = append(parts, fmt.Sprintf("the job may set %s up to %s", variable, most))
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, "; ") + ")"
}
