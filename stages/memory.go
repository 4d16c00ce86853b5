package stages

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/socialweb-computer/tenant-executor/executor/failure"
	"github.com/socialweb-computer/tenant-executor/executor/job"
)

// memorySettings are what bounds the memory of a container: the limit as the job
// has it, the operator's own, the most that a job may set, and the setting's key.
func (d *Driver) memorySettings(container string) (limit, theirs, most, key string) {
	k, operators := d.settings.Kubernetes, d.asked.operators
	switch container {
	case string(job.Build):
		return k.MemoryLimit, operators.MemoryLimit, k.MemoryLimitOverwriteMaxAllowed, "memory_limit"
	case string(job.Helper):
		return k.HelperMemoryLimit, operators.HelperMemoryLimit, k.HelperMemoryLimitOverwriteMaxAllowed, "helper_memory_limit"
	}
	return k.ServiceMemoryLimit, operators.ServiceMemoryLimit, k.ServiceMemoryLimitMax, "service_memory_limit"
}

// memoryVariable is the variable by which a job sets a limit.
func memoryVariable(key string) string { return "KUBERNETES_" + strings.ToUpper(key) }

// outOfMemory is the failure of a job whose container has used up its memory. A
// job that may have more hears by which variable.
func (d *Driver) outOfMemory(container string, f *failure.Failure) *failure.Failure {
	limit, _, most, key := d.memorySettings(container)
	now, err := resource.ParseQuantity(limit)
	bound, boundErr := resource.ParseQuantity(most)
	if boundErr == nil && (err != nil || bound.Cmp(now) > 0) {
		f.Seen(failure.MayRaise, memoryVariable(key))
	}
	return f
}

// memoryLimit says how much memory a container may use, and how the job can ask
// for more, "" where the container has no limit of its own.
func (d *Driver) memoryLimit(container string) string {
	limit, theirs, most, key := d.memorySettings(container)
	variable := memoryVariable(key)
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
