package reap

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/socialweb-computer/tenant-executor/kube/cluster"
	"github.com/socialweb-computer/tenant-executor/kube/objects"
	"github.com/socialweb-computer/tenant-executor/kube/pods"
)

// deleteGrace is how long the processes of a leftover have to end.
const deleteGrace = time.Second

// Client removes leftovers of one cluster.
type Client struct {
	cluster *cluster.Client
	pods    *pods.Client
	budget  time.Duration
}

// NewClient repeats requests for at most budget.
func NewClient(c *cluster.Client, budget time.Duration) *Client {
	return &Client{cluster: c, pods: pods.NewClient(c, budget), budget: budget}
}

// Secrets lists what is known of the Secrets with the labels of selector,
// without their content.
func (c *Client) Secrets(ctx context.Context, namespace, selector string) ([]metav1.PartialObjectMetadata, error) {
	list, err := c.metadata(ctx, func() *rest.Request {
		// rbac: secrets list
		return c.cluster.REST().Get().Namespace(namespace).Resource("secrets")
	}, selector)
	if err != nil {
		return nil, fmt.Errorf("listing the Secrets of %s in namespace %s: %w", selector, namespace, err)
	}
	return list, nil
}

// Namespaces lists what is known of the namespaces with the labels of selector.
func (c *Client) Namespaces(ctx context.Context, selector string) ([]metav1.PartialObjectMetadata, error) {
	list, err := c.metadata(ctx, func() *rest.Request {
		// rbac: namespaces list
		return c.cluster.REST().Get().Resource("namespaces")
	}, selector)
	if err != nil {
		return nil, fmt.Errorf("listing the namespaces of %s: %w", selector, err)
	}
	return list, nil
}

func (c *Client) metadata(ctx context.Context, request func() *rest.Request, selector string) ([]metav1.PartialObjectMetadata, error) {
	var text []byte
	err := c.cluster.Retry(ctx, c.budget, func(ctx context.Context) (err error) {
		text, err = request().
			VersionedParams(&metav1.ListOptions{LabelSelector: selector}, c.cluster.ParameterCodec()).
			SetHeader("Accept", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1").
			Do(ctx).Raw()
		return err
	})
	var list metav1.PartialObjectMetadataList
	if err == nil {
		err = json.Unmarshal(text, &list)
	}
	return list.Items, err
}

// Remove removes a leftover, that very object alone. One that is gone counts
// as removed.
func (c *Client) Remove(ctx context.Context, l Leftover) error {
	ref := pods.Ref{Namespace: l.Namespace, Name: l.Name, UID: l.UID}
	switch {
	case l.Kind == "Secret":
		return c.removeSecret(ctx, l)
	case l.Kind == "Namespace":
		return objects.NewClient(c.cluster, c.budget).DeleteNamespace(ctx, l.Name, l.UID)
	case l.Force:
		return c.pods.ForceDelete(ctx, ref)
	}
	return c.pods.Delete(ctx, ref, deleteGrace)
}

func (c *Client) removeSecret(ctx context.Context, l Leftover) error {
	options := &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &l.UID}}
	err := c.cluster.Retry(ctx, c.budget, func(ctx context.Context) error {
		// rbac: secrets delete
		return c.cluster.REST().Delete().Namespace(l.Namespace).Resource("secrets").Name(l.Name).Body(options).Do(ctx).Error()
	})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("deleting Secret %s/%s: %w", l.Namespace, l.Name, err)
	}
	return nil
}
