package stages

import (
	"testing"

	"github.com/socialweb-computer/tenant-executor/executor/settings"
)

// Who reads of a container's limit learns what sets it.
func TestMemoryLimitNamesWhatSetsIt(t *testing.T) {
	operators := settings.Kubernetes{}
	operators.MemoryLimit, operators.HelperMemoryLimit = "1Gi", "128Mi"
	operators.MemoryLimitOverwriteMaxAllowed = "4Gi"
	jobs := operators
	jobs.MemoryLimit = "2Gi"
	for _, test := range []struct {
		settings        settings.Kubernetes
		container, want string
	}{
		{operators, "build", " (memory_limit is 1Gi; the job may set KUBERNETES_MEMORY_LIMIT up to 4Gi)"},
		{jobs, "build", " (KUBERNETES_MEMORY_LIMIT is 2Gi; the job may set KUBERNETES_MEMORY_LIMIT up to 4Gi)"},
		{operators, "helper", " (helper_memory_limit is 128Mi)"},
		{operators, "db", ""},
	} {
		d := &Driver{settings: settings.Settings{Kubernetes: test.settings}, asked: overwrites{operators: operators}}
		if got := d.memoryLimit(test.container); got != test.want {
			t.Errorf("container %s: %q, want %q", test.container, got, test.want)
		}
	}
}
