package stages

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/socialweb-computer/tenant-executor/executor/joblog"
	"github.com/socialweb-computer/tenant-executor/executor/pod"
	"github.com/socialweb-computer/tenant-executor/executor/settings"
	"github.com/socialweb-computer/tenant-executor/kube/capacity"
	"github.com/socialweb-computer/tenant-executor/kube/cluster"
	"github.com/socialweb-computer/tenant-executor/kube/pods"
)

// warmBudget is how long a job's stage spends on warm nodes at most. They save
// time; a cluster that does not answer must not make them cost it.
const warmBudget = 5 * time.Second

// endPatience is how long cleanup waits for the end of the job's Pod before it
// holds the node. The keeper ends at once, and the kubelet within two seconds
// or so.
const endPatience = 5 * time.Second

func newPool(c *cluster.Client, s settings.Settings, clock pods.Clock) *capacity.Pool {
	return capacity.NewPool(c, requestBudget, clock, capacity.Marks{
		Node:        capacity.Label{Name: pod.LabelNode, Value: pod.NodeWhole},
		Job:         capacity.Label{Name: pod.LabelComponent, Value: pod.ComponentJob},
		Placeholder: capacity.Label{Name: pod.LabelComponent, Value: pod.ComponentPlaceholder},
		Linger:      capacity.Label{Name: pod.LabelHold, Value: pod.HoldLinger},
		Policy:      capacity.Label{Name: pod.LabelHold, Value: pod.HoldPolicy},
		Expires:     pod.AnnotationExpires,
		Wanted:      pod.AnnotationWanted,
	}, capacity.Template{
		Namespace:     s.Kubernetes.Namespace,
		Image:         s.Warm.PausePodImage,
		PullPolicy:    corev1.PullIfNotPresent,
		PullSecrets:   s.Warm.PausePodImagePullSecrets,
		PriorityClass: s.Warm.PausePodPriorityClass,
		NodeSelector:  s.Kubernetes.NodeSelector,
		Tolerations:   pod.Tolerations(s.Kubernetes.NodeTolerations),
	})
}

// takeWarm frees a node that lingers for the job's Pod.
func (d *Driver) takeWarm(ctx context.Context) {
	if !d.settings.Warm.Used() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, warmBudget)
	defer cancel()
	node, err := d.pool.Take(ctx)
	d.noteTaken(node)
	if err != nil {
		d.log.Warn("A held node could not be taken for this job: %v", err)
	}
}

// checkRank warns of placeholders that may take a job's node away. Both
// priorities are what the cluster has made of the classes' names.
func (d *Driver) checkRank(ctx context.Context, created *corev1.Pod) {
	named := d.settings.Warm.PausePodPriorityClass != "" || created.Spec.PriorityClassName != ""
	if !d.settings.Warm.Used() || !named || created.Spec.Priority == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, warmBudget)
	defer cancel()
	name, priority, err := d.pool.Outranking(ctx, *created.Spec.Priority)
	if err == nil && name != "" {
		d.log.Warn("The job's Pod has the priority %d, less than placeholder %s with %d, which may take its node away. The operator has to set kubernetes.priority_class_name, or a lower warm.pause_pod_priority_class_name.",
			*created.Spec.Priority, name, priority)
	}
}

// releaseWarm removes the placeholder beside the job's Pod, if there is one.
func (d *Driver) releaseWarm(ctx context.Context) {
	if !d.settings.Warm.Used() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, warmBudget)
	defer cancel()
	if err := d.pool.Release(ctx); err != nil {
		d.log.Warn("The placeholder on the job's node could not be removed: %v", err)
	}
}

// linger holds the node of a job's Pod that has been deleted. It waits for the
// end of the Pod first: the cluster counts Pods, and would boot a node for the
// placeholder while the Pod is still there.
func (d *Driver) linger(ctx context.Context, ended *corev1.Pod) {
	hold := d.settings.Warm.Linger.Value()
	if hold <= 0 || ended == nil {
		return
	}
	waiting, cancel := context.WithTimeout(ctx, endPatience)
	defer cancel()
	if !d.ended(waiting, ended) {
		d.log.Warn("Node %s is not held for the next job: the Pod of this one has not ended within %s", ended.Spec.NodeName, joblog.Duration(endPatience))
		return
	}
	held, err := d.pool.Hold(ctx, ended.Spec.NodeName, hold)
	if err != nil {
		d.log.Warn("Node %s is not held for the next job: %v", ended.Spec.NodeName, err)
	} else if held {
		d.noteLinger(hold)
	}
}

// ended waits until a Pod has ended or is gone.
func (d *Driver) ended(ctx context.Context, found *corev1.Pod) bool {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for change := range d.pods.Follow(ctx, found, d.clock) {
		if change.Gone || change.Pod != nil && (change.Pod.Status.Phase == corev1.PodSucceeded || change.Pod.Status.Phase == corev1.PodFailed) {
			return true
		}
	}
	return false
}
