package objects

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/socialweb-computer/tenant-executor/kube/admission"
)

// CreateBudget makes a PodDisruptionBudget that goes with a Pod. Its name is
// the Pod's own, so one that is there already was made by a request whose
// answer got lost.
func (c *Client) CreateBudget(ctx context.Context, budget *policyv1.PodDisruptionBudget, owner *corev1.Pod) error {
	budget = budget.DeepCopy()
	budget.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: owner.Name, UID: owner.UID}}
	body, err := json.Marshal(budget)
	if err != nil {
		return fmt.Errorf("creating PodDisruptionBudget %s/%s: %w", budget.Namespace, budget.Name, err)
	}
	err = c.cluster.Retry(ctx, c.budget, func(ctx context.Context) error {
		// rbac: poddisruptionbudgets.policy create
		return admission.Stop(c.post(ctx, body, "/apis/policy/v1/namespaces", budget.Namespace, "poddisruptionbudgets"))
	})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating PodDisruptionBudget %s/%s: %w", budget.Namespace, budget.Name, err)
	}
	return nil
}

// post makes an object of an API group other than the core's, whose kinds the
// connection does not know.
func (c *Client) post(ctx context.Context, body []byte, path ...string) error {
	return c.cluster.REST().Post().AbsPath(path...).SetHeader("Content-Type", "application/json").Body(body).Do(ctx).Error()
}
