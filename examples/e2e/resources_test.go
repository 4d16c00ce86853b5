//go:build e2e

package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/socialweb-computer/tenant-executor/examples/localrunner/job"
	"github.com/socialweb-computer/tenant-executor/examples/localrunner/runner"
)

// resourceKeys give every container and the Pod something, and say how much a
// job may ask for in its place.
const resourceKeys = `
cpu_request = "20m"
cpu_limit = "1"
memory_request = "16Mi"
memory_limit = "96Mi"
ephemeral_storage_request = "1Mi"
ephemeral_storage_limit = "64Mi"
cpu_request_overwrite_max_allowed = "50m"
cpu_limit_overwrite_max_allowed = "1"
memory_request_overwrite_max_allowed = "24Mi"
memory_limit_overwrite_max_allowed = "128Mi"
ephemeral_storage_request_overwrite_max_allowed = "2Mi"
ephemeral_storage_limit_overwrite_max_allowed = "80Mi"
helper_cpu_request = "20m"
helper_cpu_limit = "1"
helper_memory_request = "16Mi"
helper_memory_limit = "96Mi"
helper_ephemeral_storage_request = "1Mi"
helper_ephemeral_storage_limit = "64Mi"
helper_cpu_request_overwrite_max_allowed = "50m"
helper_cpu_limit_overwrite_max_allowed = "1"
helper_memory_request_overwrite_max_allowed = "24Mi"
helper_memory_limit_overwrite_max_allowed = "128Mi"
helper_ephemeral_storage_request_overwrite_max_allowed = "2Mi"
helper_ephemeral_storage_limit_overwrite_max_allowed = "80Mi"
service_cpu_request = "20m"
service_cpu_limit = "1"
service_memory_request = "16Mi"
service_memory_limit = "96Mi"
service_ephemeral_storage_request = "1Mi"
service_ephemeral_storage_limit = "64Mi"
service_cpu_request_overwrite_max_allowed = "50m"
service_cpu_limit_overwrite_max_allowed = "1"
service_memory_request_overwrite_max_allowed = "24Mi"
service_memory_limit_overwrite_max_allowed = "128Mi"
service_ephemeral_storage_request_overwrite_max_allowed = "2Mi"
service_ephemeral_storage_limit_overwrite_max_allowed = "80Mi"
pod_cpu_request = "200m"
pod_cpu_limit = "1"
pod_memory_request = "128Mi"
pod_memory_limit = "512Mi"
pod_cpu_request_overwrite_max_allowed = "300m"
pod_cpu_limit_overwrite_max_allowed = "1"
pod_memory_request_overwrite_max_allowed = "192Mi"
pod_memory_limit_overwrite_max_allowed = "640Mi"
`

// The resources of every container and of the Pod reach the cluster, as the
// configuration has them and as the job asks, and the kernel keeps them.
func TestResourcesOfEveryContainer(t *testing.T) {
	const limit = "cat /sys/fs/cgroup/memory/memory.limit_in_bytes /sys/fs/cgroup/memory.max 2>/dev/null || true"
	for name, test := range map[string]struct {
		values, pod  []string // requests, then limits
		asked, asPod []string
		memory       string
	}{
		"of the configuration": {
			values: []string{"20m", "16Mi", "1Mi", "1", "96Mi", "64Mi"}, pod: []string{"200m", "128Mi", "1", "512Mi"}, memory: "100663296",
		},
		"as the job asks": {
			values: []string{"40m", "20Mi", "2Mi", "500m", "128Mi", "80Mi"}, pod: []string{"300m", "192Mi", "800m", "640Mi"}, memory: "134217728",
			asked: []string{"CPU_REQUEST", "MEMORY_REQUEST", "EPHEMERAL_STORAGE_REQUEST", "CPU_LIMIT", "MEMORY_LIMIT", "EPHEMERAL_STORAGE_LIMIT"},
			asPod: []string{"CPU_REQUEST", "MEMORY_REQUEST", "CPU_LIMIT", "MEMORY_LIMIT"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			gate := safe(t.Name())
			j := served("busybox", []job.Image{service("service-probe", "probe")}, limit, bed.Gate(gate))
			for i, what := range test.asked {
				for _, group := range []string{"", "HELPER_", "SERVICE_"} {
					variable(j, "KUBERNETES_"+group+what, test.values[i])
				}
			}
			for i, what := range test.asPod {
				variable(j, "KUBERNETES_POD_"+what, test.pod[i])
			}
			defer bed.Open(gate)
			wait := start(t, podConfig(t, resourceKeys, ""), j, runner.Options{})
			if err := bed.Arrived(limited(t, jobLimit), gate); err != nil {
				t.Fatal(err)
			}
			found, err := podOf(limited(t, time.Minute), admin(t), j.ID)
			if err != nil || found == nil {
				t.Fatalf("the Pod: %v, %v", found, err)
			}
			want, got := map[string]string{"the Pod": fmt.Sprint(test.pod)}, map[string]string{}
			for _, c := range found.Spec.Containers {
				want[c.Name] = fmt.Sprint(test.values)
				got[c.Name] = fmt.Sprint(quantities(c.Resources, corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage))
			}
			if found.Spec.Resources != nil {
				got["the Pod"] = fmt.Sprint(quantities(*found.Spec.Resources, corev1.ResourceCPU, corev1.ResourceMemory))
			}
			if diff := cmp.Diff(want, got); diff != "" || len(got) != 4 {
				t.Errorf("resources (-want +got):\n%s", diff)
			}
			bed.Open(gate)
			out := wait()
			wantPassed(t, out)
			wantLog(t, out, "\n"+test.memory+"\n")
		})
	}
}

// quantities are the requests, then the limits.
func quantities(r corev1.ResourceRequirements, names ...corev1.ResourceName) []string {
	var all []string
	for _, list := range []corev1.ResourceList{r.Requests, r.Limits} {
		for _, name := range names {
			q := list[name]
			all = append(all, q.String())
		}
	}
	return all
}
