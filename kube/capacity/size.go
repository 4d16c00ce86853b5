package capacity

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Requests is what a Pod asks of a node, as the scheduler counts it: the sum of
// its containers, or what its largest init container needs before them. A limit
// without a request counts as one.
func Requests(spec *corev1.PodSpec) corev1.ResourceList {
	total := corev1.ResourceList{}
	for i := range spec.Containers {
		for name, q := range requests(&spec.Containers[i].Resources) {
			sum := total[name]
			sum.Add(q)
			total[name] = sum
		}
	}
	for i := range spec.InitContainers {
		for name, q := range requests(&spec.InitContainers[i].Resources) {
			if have := total[name]; q.Cmp(have) > 0 {
				total[name] = q
			}
		}
	}
	if spec.Resources != nil {
		for name, q := range requests(spec.Resources) {
			total[name] = q
		}
	}
	return total
}

func requests(r *corev1.ResourceRequirements) corev1.ResourceList {
	all := corev1.ResourceList{}
	for name, q := range r.Limits {
		all[name] = q
	}
	for name, q := range r.Requests {
		all[name] = q
	}
	return all
}

// Excess is a resource of which more is asked than a node has.
type Excess struct {
	Resource   corev1.ResourceName
	Asked, Has resource.Quantity
}

// Beyond lists what asks for more than size has, in the order of importance.
// What size does not speak of is not judged.
func Beyond(asked, size corev1.ResourceList) []Excess {
	var all []Excess
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage} {
		has, known := size[name]
		if want := asked[name]; known && want.Cmp(has) > 0 {
			all = append(all, Excess{name, want, has})
		}
	}
	return all
}
