package stages

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/socialweb-computer/tenant-executor/executor/failure"
	"github.com/socialweb-computer/tenant-executor/executor/pod"
	"github.com/socialweb-computer/tenant-executor/kube/capacity"
	"github.com/socialweb-computer/tenant-executor/kube/pods"
)

// Target is which job's Pod a person means.
type Target struct {
	// Name is a job's id, the name of a Pod, or NAMESPACE/POD. "" is none.
	Name string
	// Namespace is where to look; "" is that of the settings. All looks into
	// every one.
	Namespace string
	All       bool
	// Runner is the short token of the runner whose jobs count, "" for any.
	Runner string
}

// handBudget is how long a request of a person is repeated. The person sees
// that the cluster does not answer, and asks again.
const handBudget = 5 * time.Second

// NewFor makes a Driver for a person who has no job file. Its job comes from
// the Pod that the Target names.
func NewFor(ctx context.Context, p Parts, t Target) (*Driver, error) {
	d, err := New(ctx, p)
	if err != nil {
		return nil, err
	}
	d.beByHand()
	if namespace, name, found := strings.Cut(t.Name, "/"); found {
		t.Namespace, t.Name, t.All = namespace, name, false
	}
	d.target = t
	return d, nil
}

// beByHand has requests fail soon.
func (d *Driver) beByHand() {
	d.pods, d.nodes = pods.NewClient(d.cluster, handBudget), capacity.NewNodes(d.cluster, handBudget)
}

// place is the namespace that the Target means.
func (d *Driver) place() string {
	switch {
	case d.target.All:
		return metav1.NamespaceAll
	case d.target.Namespace != "":
		return d.target.Namespace
	}
	return d.settings.Kubernetes.Namespace
}

// listFor lists Pods where the Target says, of its runner.
func (d *Driver) listFor(ctx context.Context, selector string) ([]corev1.Pod, error) {
	if d.target.Runner != "" {
		selector += "," + pod.RunnerObjects(d.target.Runner)
	}
	return d.listIn(ctx, selector)
}

// listIn lists Pods where the Target says, whoever's they are.
func (d *Driver) listIn(ctx context.Context, selector string) ([]corev1.Pod, error) {
	list := func(namespace string) ([]corev1.Pod, error) { return d.pods.List(ctx, namespace, selector) }
	where := &reach{known: []string{d.place()}}
	if d.target.Namespace == "" && !d.target.All {
		// Jobs may have chosen others, or have one each.
		where = d.reach().withChosen(d.state, d.clock.Now())
	}
	found, err := listAcross(where, list)
	switch {
	case err != nil && d.target.All && apierrors.IsForbidden(err):
		return nil, failure.Wrap(failure.Access, err, "--all-namespaces needs the right to list Pods in every namespace; apply examples/rbac.yaml again")
	case err != nil:
		return nil, d.requestFailure(err)
	}
	return found, nil
}

// findTarget is the Pod that a person means.
func (d *Driver) findTarget(ctx context.Context) (pods.Ref, error) {
	found, err := d.targetPod(ctx)
	if err != nil {
		return pods.Ref{}, err
	}
	return pods.RefTo(found), nil
}

// targetPod is findTarget with the whole Pod.
func (d *Driver) targetPod(ctx context.Context) (*corev1.Pod, error) {
	id, err := strconv.ParseInt(d.target.Name, 10, 64)
	if err != nil {
		return d.podByName(ctx)
	}
	list, err := d.listFor(ctx, pod.IDSelector(id))
	if err != nil {
		return nil, err
	}
	var keys, names []string
	for i := range list {
		names = append(names, list[i].Namespace+"/"+list[i].Name)
		if key := list[i].Labels[pod.LabelJob]; !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	switch {
	case len(keys) == 0:
		return nil, failure.New(failure.NoJob, "job %d has no Pod in %s", id, inNamespace(d.place()))
	case len(keys) > 1:
		return nil, failure.New(failure.NoJob, "there are jobs %d of several runners or GitLab instances; name one Pod: %s", id, strings.Join(names, ", "))
	}
	return newestAlive(list), nil
}

// newestAlive is the newest Pod of a job that is not on its way out, or the
// newest of all.
func newestAlive(list []corev1.Pod) *corev1.Pod {
	for i := len(list) - 1; i >= 0; i-- {
		if list[i].DeletionTimestamp == nil {
			return &list[i]
		}
	}
	return &list[len(list)-1]
}

func inNamespace(namespace string) string {
	if namespace == metav1.NamespaceAll {
		return "any namespace"
	}
	return "namespace " + namespace
}

func (d *Driver) podByName(ctx context.Context) (*corev1.Pod, error) {
	if d.target.All {
		list, err := d.listFor(ctx, pod.SelectorAll())
		if err != nil {
			return nil, err
		}
		for i := range list {
			if list[i].Name == d.target.Name {
				return &list[i], nil
			}
		}
		return nil, failure.New(failure.NoJob, "there is no job's Pod %q in any namespace", d.target.Name)
	}
	found, err := d.pods.Get(ctx, pods.Ref{Namespace: d.place(), Name: d.target.Name})
	switch {
	case apierrors.IsNotFound(err):
		return nil, failure.New(failure.NoJob, "there is no Pod %s/%s", d.place(), d.target.Name)
	case err != nil:
		return nil, d.requestFailure(err)
	case found.Labels[pod.LabelComponent] != pod.ComponentJob:
		return nil, failure.New(failure.NoJob, "Pod %s/%s belongs to no job of this driver", d.place(), d.target.Name)
	}
	return found, nil
}
