package pod_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/socialweb-computer/tenant-executor/executor/failure"
	"github.com/socialweb-computer/tenant-executor/executor/job"
	"github.com/socialweb-computer/tenant-executor/executor/overwrite"
	"github.com/socialweb-computer/tenant-executor/executor/settings"
)

// Each of these keys is a number in the Pod: of one container, or of the Pod.
// Its variable sets it up to the number of its …_overwrite_max_allowed key, and
// no further.
func TestEveryResource(t *testing.T) {
	for _, test := range []struct{ key, max string }{
		{"cpu_request", "cpu_request_overwrite_max_allowed"},
		{"cpu_limit", "cpu_limit_overwrite_max_allowed"},
		{"memory_request", "memory_request_overwrite_max_allowed"},
		{"memory_limit", "memory_limit_overwrite_max_allowed"},
		{"ephemeral_storage_request", "ephemeral_storage_request_overwrite_max_allowed"},
		{"ephemeral_storage_limit", "ephemeral_storage_limit_overwrite_max_allowed"},
		{"helper_cpu_request", "helper_cpu_request_overwrite_max_allowed"},
		{"helper_cpu_limit", "helper_cpu_limit_overwrite_max_allowed"},
		{"helper_memory_request", "helper_memory_request_overwrite_max_allowed"},
		{"helper_memory_limit", "helper_memory_limit_overwrite_max_allowed"},
		{"helper_ephemeral_storage_request", "helper_ephemeral_storage_request_overwrite_max_allowed"},
		{"helper_ephemeral_storage_limit", "helper_ephemeral_storage_limit_overwrite_max_allowed"},
		{"service_cpu_request", "service_cpu_request_overwrite_max_allowed"},
		{"service_cpu_limit", "service_cpu_limit_overwrite_max_allowed"},
		{"service_memory_request", "service_memory_request_overwrite_max_allowed"},
		{"service_memory_limit", "service_memory_limit_overwrite_max_allowed"},
		{"service_ephemeral_storage_request", "service_ephemeral_storage_request_overwrite_max_allowed"},
		{"service_ephemeral_storage_limit", "service_ephemeral_storage_limit_overwrite_max_allowed"},
		{"pod_cpu_request", "pod_cpu_request_overwrite_max_allowed"},
		{"pod_cpu_limit", "pod_cpu_limit_overwrite_max_allowed"},
		{"pod_memory_request", "pod_memory_request_overwrite_max_allowed"},
		{"pod_memory_limit", "pod_memory_limit_overwrite_max_allowed"},
	} {
		t.Run(test.key, func(t *testing.T) {
			own, most, beyond := "2", "3", "4"
			if !strings.Contains(test.key, "cpu") {
				own, most, beyond = "2Gi", "3Gi", "4Gi"
			}
			if got := resourceOf(t, test.key, test.max, own, "", most); got != own {
				t.Errorf("the setting makes %q, want %q", got, own)
			}
			if got := resourceOf(t, test.key, test.max, own, most, most); got != most {
				t.Errorf("the variable makes %q, want %q", got, most)
			}
			if got := resourceOf(t, test.key, test.max, own, beyond, ""); got != own {
				t.Errorf("the variable, which nothing allows, makes %q, want %q", got, own)
			}
			if got := resourceOf(t, test.key, test.max, own, beyond, most); !strings.Contains(got, beyond) || !strings.Contains(got, most) || !strings.Contains(got, test.max) {
				t.Errorf("a variable beyond the limit is answered with %q", got)
			}
		})
	}
}

// resourceOf builds a Pod with a key set and its variable, and gives what became
// of it: the quantity, or the refusal.
func resourceOf(t *testing.T, key, limit, own, variable, most string) string {
	t.Helper()
	k := settings.Kubernetes{Namespace: "ci", Images: settings.Images{HelperImage: "helper:1"}}
	for name, text := range map[string]string{key: own, limit: most} {
		if f, ok := k.Field(name); !ok || !f.SetText(text) {
			t.Fatalf("there is no key %s", name)
		}
	}
	p := plan()
	p.Variables = job.Environment{"CUSTOM_ENV_KUBERNETES_" + strings.ToUpper(key): variable}
	p.Job.Services = []job.Image{{Name: "redis:7", Alias: "db"}}
	result, err := overwrite.Apply(k, p.Job, p.Variables)
	if err != nil {
		return refusal(t, err)
	}
	p.Settings = result.Settings
	built, err := p.Build()
	if err != nil {
		return refusal(t, err)
	}
	return quantityOf(built.Pod.Spec, key)
}

func refusal(t *testing.T, err error) string {
	t.Helper()
	if f := failure.Of(err); f.Class() != failure.Build {
		t.Errorf("%v is a failure of the system", err)
	}
	return err.Error()
}

// quantityOf is the number that a key stands for.
func quantityOf(spec corev1.PodSpec, key string) string {
	container, resources := "build", corev1.ResourceRequirements{}
	for prefix, name := range map[string]string{"helper_": "helper", "service_": "db"} {
		if rest, found := strings.CutPrefix(key, prefix); found {
			container, key = name, rest
		}
	}
	for _, c := range spec.Containers {
		if c.Name == container {
			resources = c.Resources
		}
	}
	if rest, found := strings.CutPrefix(key, "pod_"); found {
		key, resources = rest, corev1.ResourceRequirements{}
		if spec.Resources != nil {
			resources = *spec.Resources
		}
	}
	list := resources.Requests
	if strings.HasSuffix(key, "_limit") {
		list = resources.Limits
	}
	name := strings.ReplaceAll(strings.TrimSuffix(strings.TrimSuffix(key, "_limit"), "_request"), "_", "-")
	q, there := list[corev1.ResourceName(name)]
	if !there {
		return "nothing"
	}
	return q.String()
}
