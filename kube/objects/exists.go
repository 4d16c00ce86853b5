package objects

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
)

// HasServiceAccount says whether a service account is there.
func (c *Client) HasServiceAccount(ctx context.Context, namespace, name string) (bool, error) {
	found, err := c.has(ctx, func() *rest.Request {
		// rbac: serviceaccounts get
		return c.cluster.REST().Get().Namespace(namespace).Resource("serviceaccounts").Name(name)
	})
	if err != nil {
		return false, fmt.Errorf("looking for service account %s/%s: %w", namespace, name, err)
	}
	return found, nil
}

// HasSecret says whether a Secret is there.
func (c *Client) HasSecret(ctx context.Context, namespace, name string) (bool, error) {
	found, err := c.has(ctx, func() *rest.Request {
		// rbac: secrets get
		return c.cluster.REST().Get().Namespace(namespace).Resource("secrets").Name(name)
	})
	if err != nil {
		return false, fmt.Errorf("looking for Secret %s/%s: %w", namespace, name, err)
	}
	return found, nil
}

// has asks for an object without its content.
func (c *Client) has(ctx context.Context, request func() *rest.Request) (bool, error) {
	err := c.cluster.Retry(ctx, c.budget, func(ctx context.Context) error {
		return request().SetHeader("Accept", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1").Do(ctx).Error()
	})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}
