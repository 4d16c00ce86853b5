package pods

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
)

// Keep has the Pod end so many seconds after its start (the kubelet sees to it),
// and sets annotations that say why. A deadline can be made earlier and not
// later (ValidatePodUpdate in Kubernetes, pkg/apis/core/validation). Where the
// name belongs to another Pod by now, the error says "conflict".
func (c *Client) Keep(ctx context.Context, ref Ref, deadline int64, annotations map[string]string) error {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": ref.UID, "annotations": annotations},
		"spec":     map[string]any{"activeDeadlineSeconds": deadline},
	})
	if err != nil {
		return fmt.Errorf("keeping Pod %s: %w", ref, err)
	}
	err = c.cluster.Retry(ctx, c.budget, func(ctx context.Context) error {
		// rbac: pods patch
		return c.cluster.REST().Patch(types.MergePatchType).Namespace(ref.Namespace).Resource("pods").Name(ref.Name).Body(patch).Do(ctx).Error()
	})
	if err != nil {
		return fmt.Errorf("keeping Pod %s: %w", ref, err)
	}
	return nil
}
