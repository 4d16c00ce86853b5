package capacity

import (
	"context"

	corev1 "k8s.io/api/core/v1"
)

// Outranking is a placeholder that may take the node of a job with a priority,
// "" for none: it has a higher one, and is of those that push others out.
func (p *Pool) Outranking(ctx context.Context, job int32) (name string, priority int32, err error) {
	list, err := p.list(ctx)
	if err != nil {
		return "", 0, err
	}
	for i := range list.Items {
		pod := &list.Items[i]
		if !p.marks.Placeholder.on(pod) || finished(pod) || pod.Spec.Priority == nil {
			continue
		}
		pushes := pod.Spec.PreemptionPolicy == nil || *pod.Spec.PreemptionPolicy != corev1.PreemptNever
		if pushes && *pod.Spec.Priority > job && (name == "" || *pod.Spec.Priority > priority) {
			name, priority = pod.Name, *pod.Spec.Priority
		}
	}
	return name, priority, nil
}
