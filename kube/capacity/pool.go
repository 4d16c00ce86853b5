package capacity

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/socialweb-computer/tenant-executor/kube/cluster"
	"github.com/socialweb-computer/tenant-executor/kube/pods"
)

// Clock tells the time.
type Clock interface{ Now() time.Time }

// Pool is the Pods of one namespace of which a node gets one: jobs, and the
// placeholders that hold nodes for jobs to come.
type Pool struct {
	cluster  *cluster.Client
	budget   time.Duration
	clock    Clock
	marks    Marks
	template Template
}

// NewPool repeats requests for at most budget.
func NewPool(c *cluster.Client, budget time.Duration, clock Clock, marks Marks, template Template) *Pool {
	return &Pool{cluster: c, budget: budget, clock: clock, marks: marks, template: template}
}

// list reads all Pods of the pool.
func (p *Pool) list(ctx context.Context) (*corev1.PodList, error) {
	list := &corev1.PodList{}
	err := p.cluster.Retry(ctx, p.budget, func(ctx context.Context) error {
		// rbac: pods list
		return p.cluster.REST().Get().Namespace(p.template.Namespace).Resource("pods").
			VersionedParams(p.selected(), p.cluster.ParameterCodec()).Do(ctx).Into(list)
	})
	if err != nil {
		return nil, fmt.Errorf("listing the Pods that have nodes of their own in namespace %s: %w", p.template.Namespace, err)
	}
	return list, nil
}

func (p *Pool) selected() *metav1.ListOptions {
	return &metav1.ListOptions{LabelSelector: p.marks.Node.Name + "=" + p.marks.Node.Value}
}

// create makes a placeholder. That one of its name is there already is no
// error: then somebody else was quicker.
func (p *Pool) create(ctx context.Context, pod *corev1.Pod) error {
	err := p.cluster.Retry(ctx, p.budget, func(ctx context.Context) error {
		// rbac: pods create
		return p.cluster.REST().Post().Namespace(pod.Namespace).Resource("pods").Body(pod).Do(ctx).Error()
	})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating placeholder %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return nil
}

// remove takes a placeholder away, and says whether it was there to be taken.
// It goes without any grace: its process does nothing, and until the object is
// gone the cluster counts it as a Pod that needs a node.
func (p *Pool) remove(ctx context.Context, ref pods.Ref) (bool, error) {
	now, background := int64(0), metav1.DeletePropagationBackground
	options := &metav1.DeleteOptions{
		GracePeriodSeconds: &now, PropagationPolicy: &background, Preconditions: &metav1.Preconditions{UID: &ref.UID},
	}
	err := p.cluster.Retry(ctx, p.budget, func(ctx context.Context) error {
		// rbac: pods delete
		return p.cluster.REST().Delete().Namespace(ref.Namespace).Resource("pods").Name(ref.Name).Body(options).Do(ctx).Error()
	})
	switch {
	case apierrors.IsNotFound(err) || apierrors.IsConflict(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("removing placeholder %s: %w", ref, err)
	}
	return true, nil
}

// renew says that a placeholder is still wanted.
func (p *Pool) renew(ctx context.Context, ref pods.Ref) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid":         ref.UID, // of another, the cluster refuses the change
		"annotations": map[string]string{p.marks.Wanted: stamp(p.clock.Now().Add(wantedFor))},
	}})
	if err != nil {
		return fmt.Errorf("renewing placeholder %s: %w", ref, err)
	}
	err = p.cluster.Retry(ctx, p.budget, func(ctx context.Context) error {
		// rbac: pods patch
		return p.cluster.REST().Patch(types.MergePatchType).Namespace(ref.Namespace).Resource("pods").Name(ref.Name).Body(patch).Do(ctx).Error()
	})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("renewing placeholder %s: %w", ref, err)
	}
	return nil
}

// Apply carries a Plan out, as far as it goes; placeholders that it creates
// live for so long. Its error is all that failed.
func (p *Pool) Apply(ctx context.Context, plan Plan, life time.Duration) error {
	var failed []error
	for _, s := range plan.Remove {
		_, err := p.remove(ctx, s.Ref)
		failed = append(failed, err)
	}
	for _, name := range plan.Create {
		failed = append(failed, p.create(ctx, p.anywhere(name, life, wantedFor)))
	}
	for _, ref := range plan.Renew {
		failed = append(failed, p.renew(ctx, ref))
	}
	return errors.Join(failed...)
}

// Plan looks at the pool and at the nodes and says what is to be done. Demand
// is how many nodes are to be free while so many jobs run. The version is the
// pool's, for Changed.
func (p *Pool) Plan(ctx context.Context, nodes *Nodes, demand func(jobs int) int) (plan Plan, version string, err error) {
	ready, err := nodes.ready(ctx)
	if err != nil {
		return Plan{}, "", err
	}
	list, err := p.list(ctx)
	if err != nil {
		return Plan{}, "", err
	}
	now := p.clock.Now()
	r := p.marks.review(list.Items, ready, now)
	return p.marks.plan(r, demand(r.jobs), now), list.ResourceVersion, nil
}

// Changed waits until a Pod of the pool changes after a version, or until the
// cluster does not tell; then its error says why. It also returns when ctx
// ends.
func (p *Pool) Changed(ctx context.Context, version string) error {
	options := p.selected()
	options.Watch, options.ResourceVersion = true, version
	// rbac: pods watch
	w, err := p.cluster.REST().Get().Namespace(p.template.Namespace).Resource("pods").
		VersionedParams(options, p.cluster.ParameterCodec()).Watch(ctx)
	if err != nil {
		return fmt.Errorf("watching the Pods that have nodes of their own: %w", cluster.Bare(err))
	}
	defer w.Stop()
	select {
	case <-ctx.Done():
		return nil
	case event, open := <-w.ResultChan():
		if !open || event.Type == watch.Error {
			return errors.New("watching the Pods that have nodes of their own: the watch ended")
		}
		return nil
	}
}
