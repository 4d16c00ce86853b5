package stages

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// A LimitRange refuses a Pod without saying which container is meant.
func TestContainersOutOfRange(t *testing.T) {
	t.Parallel()
	amounts := func(memory string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(memory)}
	}
	spec := &corev1.PodSpec{Containers: []corev1.Container{
		{Name: "build", Resources: corev1.ResourceRequirements{Limits: amounts("2048Mi"), Requests: amounts("1Gi")}},
		{Name: "helper", Resources: corev1.ResourceRequirements{Limits: amounts("512Mi"), Requests: amounts("64Mi")}},
		{Name: "db", Resources: corev1.ResourceRequirements{Limits: amounts("2Gi")}},
	}}
	for text, want := range map[string]string{
		`pods "a" is forbidden: maximum memory usage per Container is 1Gi, but limit is 2Gi`:                          " (container build, db)",
		`pods "a" is forbidden: minimum memory usage per Container is 128Mi, but request is 64Mi`:                     " (container helper)",
		`pods "a" is forbidden: [maximum memory usage per Container is 1Gi, but limit is 512Mi, maximum cpu usage …]`: " (container helper)",
		`pods "a" is forbidden: maximum memory usage per Pod is 1Gi, but limit is 4831838208`:                         "",
		`pods "a" is forbidden: maximum memory usage per Container is 1Gi, but limit is 3Gi`:                          "",
		`pods "a" is forbidden: maximum memory usage per Container is 1Gi, but limit is much`:                         "",
		`pods "a" is forbidden: exceeded quota`:                                                                       "",
	} {
		if got := withBounded(errors.New(text), spec).Error(); got != text+want {
			t.Errorf("got  %s\nwant %s", got, text+want)
		}
	}
}
