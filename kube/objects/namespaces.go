package objects

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/socialweb-computer/tenant-executor/kube/admission"
	"github.com/socialweb-computer/tenant-executor/kube/cluster"
)

// ErrForeignNamespace is the error of CreateNamespace for a name that is
// another's.
var ErrForeignNamespace = errors.New("a namespace of this name exists and is not this one")

// errEnding says that the namespace of an earlier try is still going away.
var errEnding = errors.New("the namespace of this name is still being deleted")

// CreateNamespace makes a namespace, or takes the one of its name that ours
// accepts. One that is on its way out is waited for.
func (c *Client) CreateNamespace(ctx context.Context, namespace *corev1.Namespace, ours func(*corev1.Namespace) bool) error {
	again := func(err error) bool { return errors.Is(err, errEnding) || cluster.Transient(err) }
	err := c.cluster.RetryIf(ctx, c.budget, again, func(ctx context.Context) error {
		// rbac: namespaces create
		err := c.cluster.REST().Post().Resource("namespaces").Body(namespace).Do(ctx).Error()
		if !apierrors.IsAlreadyExists(err) {
			return admission.Stop(err)
		}
		found, err := c.namespace(ctx, namespace.Name)
		switch {
		case apierrors.IsNotFound(err):
			return errEnding // gone by now
		case err != nil:
			return err
		case !ours(found):
			return ErrForeignNamespace
		case found.DeletionTimestamp != nil:
			return errEnding
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("creating namespace %s: %w", namespace.Name, err)
	}
	return nil
}

func (c *Client) namespace(ctx context.Context, name string) (*corev1.Namespace, error) {
	found := &corev1.Namespace{}
	// rbac: namespaces get
	err := c.cluster.REST().Get().Resource("namespaces").Name(name).Do(ctx).Into(found)
	return found, err
}

// Namespace reads a namespace; nil is one that is not there.
func (c *Client) Namespace(ctx context.Context, name string) (*corev1.Namespace, error) {
	var found *corev1.Namespace
	err := c.cluster.Retry(ctx, c.budget, func(ctx context.Context) (err error) {
		found, err = c.namespace(ctx, name)
		return err
	})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading namespace %s: %w", name, err)
	}
	return found, nil
}

// DeleteNamespace asks for the end of a namespace with all that is in it, of
// that very one alone. One that is gone counts as deleted.
func (c *Client) DeleteNamespace(ctx context.Context, name string, uid types.UID) error {
	options := &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}}
	err := c.cluster.Retry(ctx, c.budget, func(ctx context.Context) error {
		// rbac: namespaces delete
		return c.cluster.REST().Delete().Resource("namespaces").Name(name).Body(options).Do(ctx).Error()
	})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("deleting namespace %s: %w", name, err)
	}
	return nil
}
