package stages

import (
	"context"
	"errors"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/socialweb-computer/tenant-executor/executor/failure"
	"github.com/socialweb-computer/tenant-executor/executor/pod"
	"github.com/socialweb-computer/tenant-executor/kube/cluster"
	"github.com/socialweb-computer/tenant-executor/kube/objects"
	"github.com/socialweb-computer/tenant-executor/kube/reap"
	"github.com/socialweb-computer/tenant-executor/stages/state"
)

// furnished is how long a new namespace may be without its service account,
// which the cluster makes.
const furnished = 20 * time.Second

// createNamespace makes the job's own namespace. One of an earlier attempt is
// this job's as well.
func (d *Driver) createNamespace(ctx context.Context, made *objects.Client, namespace *corev1.Namespace) error {
	err := made.CreateNamespace(ctx, namespace, func(found *corev1.Namespace) bool {
		return found.Labels[pod.LabelJob] == d.job.Key()
	})
	switch {
	case err == nil:
		return nil
	case errors.Is(err, objects.ErrForeignNamespace):
		return failure.Wrap(failure.Settings, err, "kubernetes.namespace_per_job")
	case cluster.Denied(err):
		return failure.Wrap(failure.Access, err, "kubernetes.namespace_per_job needs the roles of examples/rbac-namespace-per-job.yaml")
	}
	return d.requestFailure(err)
}

// inNamespace makes a Pod that may have to wait for its namespace to be
// furnished.
func (d *Driver) inNamespace(ctx context.Context, create func(context.Context) (*corev1.Pod, error)) (*corev1.Pod, error) {
	if !d.settings.Kubernetes.NamespacePerJob {
		return create(ctx)
	}
	var created *corev1.Pod
	err := cluster.RetryIf(ctx, furnished, unfurnished, func(context.Context) (err error) {
		created, err = create(ctx)
		return err
	})
	return created, err
}

// unfurnished says whether a Pod was refused since its service account is not
// there yet (plugin/pkg/admission/serviceaccount in Kubernetes).
func unfurnished(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "error looking up service account")
}

// deleteNamespace deletes the job's own namespace, if it has one.
func (d *Driver) deleteNamespace(ctx context.Context) error {
	if !d.settings.Kubernetes.NamespacePerJob {
		return nil
	}
	client := objects.NewClient(d.cluster, requestBudget)
	name := d.settings.Kubernetes.Namespace
	found, err := client.Namespace(ctx, name)
	if err == nil && found != nil && found.Labels[pod.LabelJob] == d.job.Key() {
		err = client.DeleteNamespace(ctx, name, found.UID)
	}
	if err != nil {
		return d.requestFailure(err)
	}
	return nil
}

// ofJobs are the namespaces of jobs with the labels of selector, where each job
// has one of its own.
func (l *leftovers) ofJobs(ctx context.Context, selector string) ([]metav1.PartialObjectMetadata, error) {
	if !l.reach.perJob {
		return nil, nil
	}
	return l.reap.Namespaces(ctx, selector)
}

// sweepNamespaces removes namespaces of jobs that have ended without cleanup.
// That of this very job is used again.
func (d *Driver) sweepNamespaces(ctx context.Context, left *leftovers, list []metav1.PartialObjectMetadata, pods []corev1.Pod) {
	for i, one := range left.rules(ctx).Namespaces(list, pods) {
		if i == sweepAtOnce {
			return
		}
		if one.Labels[pod.LabelJob] != d.job.Key() {
			_ = left.remove(ctx, one) // the next sweep meets it again
		}
	}
}

// home is the namespace of a job whose cleanup is to be done, if it is the
// job's own.
func (l *leftovers) home(ctx context.Context, u state.Undone) ([]reap.Leftover, error) {
	found, err := objects.NewClient(l.cluster, requestBudget).Namespace(ctx, u.Namespace)
	if err != nil || found == nil || found.Labels[pod.LabelJob] != u.Key || found.DeletionTimestamp != nil {
		return nil, err
	}
	return []reap.Leftover{{
		Kind: "Namespace", Name: found.Name, UID: found.UID, Reason: reap.Undone,
		Made: found.CreationTimestamp.Time, Labels: found.Labels,
	}}, nil
}
