package pods

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/socialweb-computer/tenant-executor/kube/cluster"
)

// Rehearse has the cluster judge a Pod as if it were made, admission and all,
// and makes none. It asks once.
func (c *Client) Rehearse(ctx context.Context, pod *corev1.Pod) error {
	// rbac: pods create
	err := c.cluster.REST().Post().Namespace(pod.Namespace).Resource("pods").
		VersionedParams(&metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}, c.cluster.ParameterCodec()).
		Body(pod).Do(ctx).Error()
	if err != nil {
		return fmt.Errorf("rehearsing Pod %s/%s: %w", pod.Namespace, pod.Name, cluster.Bare(err))
	}
	return nil
}
