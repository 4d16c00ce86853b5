package capacity

import (
	corev1 "k8s.io/api/core/v1"
)

// Freeing gives those Pods of jobs that are just ending and whose node the next
// job can have: none where it finds a free node anyway. Jobs are all of them,
// those that are ending too. Who makes the next one's Pod before one of these is
// gone has the cluster boot a node: it counts Pods.
func Freeing(nodes []corev1.Node, jobs, ending []corev1.Pod) []corev1.Pod {
	usable := map[string]bool{}
	for i := range nodes {
		if healthOf(&nodes[i]).Ready && !nodes[i].Spec.Unschedulable {
			usable[nodes[i].Name] = true
		}
	}
	free := len(usable)
	busy := map[string]bool{}
	for i := range jobs {
		p := &jobs[i]
		switch {
		case finished(p):
		case p.Spec.NodeName == "" && p.DeletionTimestamp == nil:
			free-- // it comes first
		case usable[p.Spec.NodeName] && !busy[p.Spec.NodeName]:
			busy[p.Spec.NodeName] = true
			free--
		}
	}
	if free > 0 {
		return nil
	}
	var some []corev1.Pod
	for i := range ending {
		if !finished(&ending[i]) && usable[ending[i].Spec.NodeName] {
			some = append(some, ending[i])
		}
	}
	return some
}
