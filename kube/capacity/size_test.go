package capacity_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/socialweb-computer/tenant-executor/kube/capacity"
)

func amounts(cpu, memory string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for name, text := range map[corev1.ResourceName]string{corev1.ResourceCPU: cpu, corev1.ResourceMemory: memory} {
		if text != "" {
			list[name] = resource.MustParse(text)
		}
	}
	return list
}

func container(requests, limits corev1.ResourceList) corev1.Container {
	return corev1.Container{Resources: corev1.ResourceRequirements{Requests: requests, Limits: limits}}
}

func TestRequestsAndWhatIsBeyondANode(t *testing.T) {
	node := amounts("4", "8Gi")
	for _, test := range []struct {
		name string
		spec corev1.PodSpec
		want map[corev1.ResourceName]string // asked, of what is beyond
	}{
		{"nothing asked", corev1.PodSpec{Containers: []corev1.Container{container(nil, nil)}}, map[corev1.ResourceName]string{}},
		{"fits to the last byte", corev1.PodSpec{Containers: []corev1.Container{container(amounts("3", "8Gi"), nil), container(amounts("1", ""), nil)}}, map[corev1.ResourceName]string{}},
		{"the sum is too much", corev1.PodSpec{Containers: []corev1.Container{container(amounts("3", ""), nil), container(amounts("1001m", ""), nil)}}, map[corev1.ResourceName]string{"cpu": "4001m"}},
		{"a limit alone counts", corev1.PodSpec{Containers: []corev1.Container{container(nil, amounts("", "9Gi"))}}, map[corev1.ResourceName]string{"memory": "9Gi"}},
		{"a limit above the request does not", corev1.PodSpec{Containers: []corev1.Container{container(amounts("1", "1Gi"), amounts("64", "64Gi"))}}, map[corev1.ResourceName]string{}},
		{"an init container needs it alone", corev1.PodSpec{
			InitContainers: []corev1.Container{container(amounts("4", ""), nil), container(amounts("5", ""), nil)},
			Containers:     []corev1.Container{container(amounts("2", ""), nil)},
		}, map[corev1.ResourceName]string{"cpu": "5"}},
		{"the Pod's own resources count instead", corev1.PodSpec{
			Resources:  &corev1.ResourceRequirements{Requests: amounts("2", "")},
			Containers: []corev1.Container{container(amounts("5", ""), nil)},
		}, map[corev1.ResourceName]string{}},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := map[corev1.ResourceName]string{}
			for _, e := range capacity.Beyond(capacity.Requests(&test.spec), node) {
				got[e.Resource] = e.Asked.String()
				if has := node[e.Resource]; e.Has.Cmp(has) != 0 {
					t.Errorf("%s: the node has %s, said was %s", e.Resource, has.String(), e.Has.String())
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("beyond the node (-want +got):\n%s", diff)
			}
		})
	}
	if got := capacity.Beyond(amounts("400", ""), amounts("", "1Gi")); len(got) > 0 {
		t.Errorf("a node of unknown CPU is too small: %v", got)
	}
}
