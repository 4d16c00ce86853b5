// Package objects makes what a Pod needs beside itself, and has it go with the
// Pod.
package objects

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/socialweb-computer/tenant-executor/kube/admission"
	"github.com/socialweb-computer/tenant-executor/kube/cluster"
)

// Client works on the objects of a cluster. Requests are repeated for as long
// as budget says.
type Client struct {
	cluster *cluster.Client
	budget  time.Duration
}

// NewClient repeats requests for at most budget.
func NewClient(c *cluster.Client, budget time.Duration) *Client {
	return &Client{cluster: c, budget: budget}
}

// CreateSecret makes a Secret. Names are not given twice, so one that is there
// already was made by a request whose answer got lost.
func (c *Client) CreateSecret(ctx context.Context, secret *corev1.Secret) error {
	tries := 0
	err := c.cluster.Retry(ctx, c.budget, func(ctx context.Context) error {
		tries++
		// rbac: secrets create
		err := c.cluster.REST().Post().Namespace(secret.Namespace).Resource("secrets").Body(secret).Do(ctx).Error()
		if tries > 1 && apierrors.IsAlreadyExists(err) {
			return nil
		}
		return admission.Stop(err)
	})
	if err != nil {
		return fmt.Errorf("creating Secret %s/%s: %w", secret.Namespace, secret.Name, err)
	}
	return nil
}

// OwnSecret has a Secret go with a Pod.
func (c *Client) OwnSecret(ctx context.Context, namespace, name string, owner *corev1.Pod) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"ownerReferences": []metav1.OwnerReference{{
		APIVersion: "v1", Kind: "Pod", Name: owner.Name, UID: owner.UID,
	}}}})
	if err != nil {
		return fmt.Errorf("giving Secret %s/%s to Pod %s: %w", namespace, name, owner.Name, err)
	}
	err = c.cluster.Retry(ctx, c.budget, func(ctx context.Context) error {
		// rbac: secrets patch
		return c.cluster.REST().Patch(types.MergePatchType).Namespace(namespace).Resource("secrets").Name(name).Body(patch).Do(ctx).Error()
	})
	if err != nil {
		return fmt.Errorf("giving Secret %s/%s to Pod %s: %w", namespace, name, owner.Name, err)
	}
	return nil
}

// DeleteSecret removes a Secret. One that is not there counts as removed.
func (c *Client) DeleteSecret(ctx context.Context, namespace, name string) error {
	err := c.cluster.Retry(ctx, c.budget, func(ctx context.Context) error {
		// rbac: secrets delete
		err := c.cluster.REST().Delete().Namespace(namespace).Resource("secrets").Name(name).Do(ctx).Error()
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("deleting Secret %s/%s: %w", namespace, name, err)
	}
	return nil
}
