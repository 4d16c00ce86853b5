package stages

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/socialweb-computer/tenant-executor/executor/pod"
	"github.com/socialweb-computer/tenant-executor/kube/capacity"
)

// Pods are those of the job, of whichever attempt, oldest first.
func (d *Driver) Pods(ctx context.Context) ([]corev1.Pod, error) {
	list, err := listAcross(d.reach(), func(namespace string) ([]corev1.Pod, error) {
		return d.pods.List(ctx, namespace, pod.Selector(d.job))
	})
	if err != nil {
		return nil, d.requestFailure(err)
	}
	return list, nil
}

// Node is how a node is.
func (d *Driver) Node(ctx context.Context, name string) (capacity.Health, error) {
	return d.nodes.Health(ctx, name)
}
