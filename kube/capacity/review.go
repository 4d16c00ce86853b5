package capacity

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/socialweb-computer/tenant-executor/kube/pods"
)

// Spent is a placeholder that holds nothing any more, and why.
type Spent struct {
	Ref    pods.Ref
	Reason string
}

// review is the state of a pool.
type review struct {
	// jobs are the Pods of jobs that have not ended, waiting those of them that
	// no node has taken.
	jobs, waiting int
	// busy are the nodes with a job on them, or with one that is just ending.
	busy map[string]bool
	// slots are the policy's placeholders that do their work, those with a
	// node first and then by age; holds are those of single nodes, the oldest
	// first.
	slots, holds []*corev1.Pod
	spent        []Spent
}

// review sorts the Pods of a pool. Ready tells which nodes are well; nil says
// that all are.
func (m Marks) review(list []corev1.Pod, ready map[string]bool, now time.Time) review {
	r := review{busy: map[string]bool{}}
	for i := range list {
		pod := &list[i]
		if !m.Job.on(pod) || finished(pod) {
			continue
		}
		if pod.Spec.NodeName != "" {
			r.busy[pod.Spec.NodeName] = true
		}
		if pod.DeletionTimestamp != nil {
			continue
		}
		r.jobs++
		if pod.Spec.NodeName == "" {
			r.waiting++
		}
	}
	for i := range list {
		pod := &list[i]
		if !m.Placeholder.on(pod) {
			continue
		}
		if reason := m.spent(pod, r.busy, ready, now); reason != "" {
			r.spent = append(r.spent, Spent{pods.RefTo(pod), reason})
		} else if m.Linger.on(pod) {
			r.holds = append(r.holds, pod)
		} else {
			r.slots = append(r.slots, pod)
		}
	}
	byAge := func(a, b *corev1.Pod) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	}
	slices.SortFunc(r.holds, byAge)
	slices.SortFunc(r.slots, func(a, b *corev1.Pod) int {
		if (a.Spec.NodeName == "") != (b.Spec.NodeName == "") {
			return map[bool]int{true: 1, false: -1}[a.Spec.NodeName == ""]
		}
		return byAge(a, b)
	})
	return r
}

// spent says why a placeholder holds nothing any more, "" if it does.
func (m Marks) spent(pod *corev1.Pod, busy, ready map[string]bool, now time.Time) string {
	switch {
	case finished(pod):
		return "its time is up"
	case pod.DeletionTimestamp != nil:
		return "it is being deleted"
	case busy[pod.Spec.NodeName]:
		return "a job has its node"
	case passed(pod, m.Expires, now):
		return "its time is up"
	case pod.Spec.NodeName != "" && ready != nil && !ready[pod.Spec.NodeName]:
		return "its node is not ready"
	}
	return ""
}

func finished(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}
