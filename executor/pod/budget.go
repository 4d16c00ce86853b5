package pod

import (
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// protect adds a PodDisruptionBudget that one Pod has to be there of, so that a
// drain of the node waits for the job. It means this very attempt's Pod: one
// that is ending does not count for a later one.
func (b *builder) protect() error {
	if b.Settings.PodDisruptionBudget == nil || !*b.Settings.PodDisruptionBudget {
		return nil
	}
	one := intstr.FromInt(1)
	b.Budget = &policyv1.PodDisruptionBudget{
		TypeMeta: metav1.TypeMeta{APIVersion: "policy/v1", Kind: "PodDisruptionBudget"},
		ObjectMeta: metav1.ObjectMeta{
			Name: b.Pod.Name, Namespace: b.Pod.Namespace,
			Labels: map[string]string{
				LabelJob: b.Pod.Labels[LabelJob], LabelRunner: b.Pod.Labels[LabelRunner], LabelAttempt: b.Attempt,
			},
		},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: &one,
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{
				LabelJob: b.Pod.Labels[LabelJob], LabelAttempt: b.Attempt,
			}},
		},
	}
	return nil
}
