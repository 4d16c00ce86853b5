// Package pods makes, watches and removes Pods, and says in what phase of its
// start a Pod is.
package pods

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/socialweb-computer/tenant-executor/kube/admission"
	"github.com/socialweb-computer/tenant-executor/kube/cluster"
)

// Client works on the Pods of a cluster. Requests that may be repeated are
// repeated for as long as budget says.
type Client struct {
	cluster *cluster.Client
	budget  time.Duration
}

// NewClient is a Client that repeats requests for at most budget.
func NewClient(c *cluster.Client, budget time.Duration) *Client {
	return &Client{cluster: c, budget: budget}
}

// Ref names one Pod. With a UID it means that very Pod, not a later one of
// the same name.
type Ref struct {
	Namespace, Name string
	UID             types.UID
}

// RefTo names a Pod that was read.
func RefTo(pod *corev1.Pod) Ref {
	return Ref{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID}
}

// String is NAMESPACE/NAME.
func (r Ref) String() string { return r.Namespace + "/" + r.Name }

// ErrForeign is the error of Create when the name is taken by another's Pod.
var ErrForeign = errors.New("a Pod of this name exists and is not this one")

// Create makes the Pod. Where the answer got lost, the Pod may be there
// already: ours tells whether a Pod of that name is the one meant. That a webhook
// is down is told at once; see package admission.
func (c *Client) Create(ctx context.Context, pod *corev1.Pod, ours func(*corev1.Pod) bool) (*corev1.Pod, error) {
	created := &corev1.Pod{}
	tries := 0
	err := c.cluster.Retry(ctx, c.budget, func(ctx context.Context) error {
		tries++
		// rbac: pods create
		err := c.cluster.REST().Post().Namespace(pod.Namespace).Resource("pods").Body(pod).Do(ctx).Into(created)
		if tries > 1 && apierrors.IsAlreadyExists(err) {
			return c.get(ctx, pod.Namespace, pod.Name, created)
		}
		return admission.Stop(err)
	})
	if err != nil {
		return nil, fmt.Errorf("creating Pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	if !ours(created) || created.DeletionTimestamp != nil {
		return nil, fmt.Errorf("creating Pod %s/%s: %w", pod.Namespace, pod.Name, ErrForeign)
	}
	return created, nil
}

func (c *Client) get(ctx context.Context, namespace, name string, into *corev1.Pod) error {
	// rbac: pods get
	return c.cluster.REST().Get().Namespace(namespace).Resource("pods").Name(name).Do(ctx).Into(into)
}

// errReplaced stands beside the "not found" of a Pod whose name has another.
var errReplaced = errors.New("another Pod has its name")

// Replaced reports whether Get did not find the Pod since its name belongs to
// another one by now.
func Replaced(err error) bool { return errors.Is(err, errReplaced) }

// Get reads the Pod once, without repeating. Where ref has a UID and the name
// now belongs to another Pod, the error says "not found"; see Replaced.
func (c *Client) Get(ctx context.Context, ref Ref) (*corev1.Pod, error) {
	pod := &corev1.Pod{}
	if err := c.get(ctx, ref.Namespace, ref.Name, pod); err != nil {
		return nil, fmt.Errorf("reading Pod %s: %w", ref, cluster.Bare(err))
	}
	if ref.UID != "" && pod.UID != ref.UID {
		return nil, fmt.Errorf("reading Pod %s: %w: %w", ref, apierrors.NewNotFound(corev1.Resource("pods"), ref.Name), errReplaced)
	}
	return pod, nil
}

// List gives the Pods that carry the labels of selector, oldest first.
func (c *Client) List(ctx context.Context, namespace, selector string) ([]corev1.Pod, error) {
	list := &corev1.PodList{}
	err := c.cluster.Retry(ctx, c.budget, func(ctx context.Context) error {
		// rbac: pods list
		return c.cluster.REST().Get().Namespace(namespace).Resource("pods").
			VersionedParams(&metav1.ListOptions{LabelSelector: selector}, c.cluster.ParameterCodec()).Do(ctx).Into(list)
	})
	if err != nil {
		return nil, fmt.Errorf("listing the Pods of %s in namespace %s: %w", selector, namespace, err)
	}
	sortByAge(list.Items)
	return list.Items, nil
}

// Delete asks for the Pod's end. A Pod that is gone, or whose name belongs to
// another by now, counts as deleted. The grace is at least a second: with 0
// the object goes at once while the processes live on, and the next job could
// share the node with them. A Pod that no node has taken has no processes, and
// the cluster removes it at once whatever the grace.
func (c *Client) Delete(ctx context.Context, ref Ref, grace time.Duration) error {
	return c.delete(ctx, ref, max(int64(grace/time.Second), 1))
}

// ForceDelete removes the Pod's object without waiting for anybody to end its
// processes. It is for Pods whose node is lost, and needs the Pod's UID.
func (c *Client) ForceDelete(ctx context.Context, ref Ref) error {
	if ref.UID == "" {
		return fmt.Errorf("removing Pod %s: its UID is needed", ref)
	}
	return c.delete(ctx, ref, 0)
}

func (c *Client) delete(ctx context.Context, ref Ref, seconds int64) error {
	background := metav1.DeletePropagationBackground
	options := &metav1.DeleteOptions{GracePeriodSeconds: &seconds, PropagationPolicy: &background}
	if ref.UID != "" {
		options.Preconditions = &metav1.Preconditions{UID: &ref.UID}
	}
	err := c.cluster.Retry(ctx, c.budget, func(ctx context.Context) error {
		// rbac: pods delete
		return c.cluster.REST().Delete().Namespace(ref.Namespace).Resource("pods").Name(ref.Name).Body(options).Do(ctx).Error()
	})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("deleting Pod %s: %w", ref, err)
	}
	return nil
}

// watch opens a watch of one Pod from a version on.
func (c *Client) watch(ctx context.Context, ref Ref, version string) (watch.Interface, error) {
	// rbac: pods watch
	return c.cluster.REST().Get().Namespace(ref.Namespace).Resource("pods").
		VersionedParams(&metav1.ListOptions{
			Watch:           true,
			FieldSelector:   fields.OneTermEqualSelector("metadata.name", ref.Name).String(),
			ResourceVersion: version,
		}, c.cluster.ParameterCodec()).Watch(ctx)
}
