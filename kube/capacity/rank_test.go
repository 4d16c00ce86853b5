package capacity_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Only a placeholder that is above the job, and pushes others out, outranks it;
// the highest is named.
func TestOutranking(t *testing.T) {
	t.Parallel()
	b := newPool(t)
	never := corev1.PreemptNever
	add := func(name, component string, priority int32, policy *corev1.PreemptionPolicy) {
		b.AddPod(&corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, Labels: map[string]string{"node": "whole", "component": component}},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c"}}, Priority: &priority, PreemptionPolicy: policy},
		})
	}
	add("low", "placeholder", -10, nil)
	add("high", "placeholder", 10, nil)
	add("polite", "placeholder", 1000, &never)
	add("another-job", "job", 1000, nil)
	for job, want := range map[int32]string{-20: "high", 0: "high", 10: "", 2000: ""} {
		name, priority, err := b.pool.Outranking(t.Context(), job)
		if err != nil || name != want || want != "" && priority != 10 {
			t.Errorf("a job of priority %d is outranked by %q with %d, error %v; want %q", job, name, priority, err, want)
		}
	}
}
