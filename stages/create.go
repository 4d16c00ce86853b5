package stages

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/socialweb-computer/tenant-executor/executor/pod"
	"github.com/socialweb-computer/tenant-executor/kube/objects"
)

// create makes the Pod and what belongs to it, as soon as the cluster has room for
// it.
func (d *Driver) create(ctx context.Context, plan pod.Objects, e *entrance) (*corev1.Pod, error) {
	made := objects.NewClient(d.cluster, requestBudget)
	if plan.Namespace != nil {
		if err := e.pass(ctx, func() error { return d.createNamespace(ctx, made, plan.Namespace) }); err != nil {
			return nil, d.createFailure(err, plan)
		}
	}
	if err := d.checkNeeds(ctx, plan); err != nil {
		return nil, err
	}
	d.takeWarm(ctx)
	var created *corev1.Pod
	err := e.pass(ctx, func() (err error) {
		created, err = d.createPod(ctx, made, plan)
		return err
	})
	d.noteEntrance(e)
	if err != nil {
		return nil, d.createFailure(err, plan)
	}
	for _, secret := range plan.Secrets {
		if err := made.OwnSecret(ctx, secret.Namespace, secret.Name, created); err != nil {
			d.log.Warn("Secret %s could not be tied to the job's Pod; a later sweep removes it: %v", secret.Name, err)
		}
	}
	d.checkRank(ctx, created)
	if plan.Budget != nil {
		if err := e.pass(ctx, func() error { return made.CreateBudget(ctx, plan.Budget, created) }); err != nil {
			return nil, d.createFailure(err, plan)
		}
	}
	return created, nil
}

// createPod makes the Secrets and the Pod. Secrets come first, or the Pod's
// containers could start without them; they belong to the Pod as soon as it is
// there, and so go with it. Where the Pod cannot be made they go at once: for a
// sweep they are left over after a while. A driver that dies in between leaves
// them to it.
func (d *Driver) createPod(ctx context.Context, made *objects.Client, plan pod.Objects) (*corev1.Pod, error) {
	for i, secret := range plan.Secrets {
		if err := made.CreateSecret(ctx, secret); err != nil {
			d.dropSecrets(ctx, made, plan.Secrets[:i])
			return nil, err
		}
	}
	created, err := d.inNamespace(ctx, func(ctx context.Context) (*corev1.Pod, error) {
		return d.pods.Create(ctx, plan.Pod, func(found *corev1.Pod) bool {
			same := found.Labels[pod.LabelJob] == plan.Pod.Labels[pod.LabelJob] && found.Labels[pod.LabelAttempt] == plan.Pod.Labels[pod.LabelAttempt]
			// An earlier prepare of this attempt, which was killed, has stamped another time.
			return same && found.Annotations[pod.AnnotationExpires] == plan.Pod.Annotations[pod.AnnotationExpires]
		})
	})
	if err != nil {
		d.dropSecrets(ctx, made, plan.Secrets)
	}
	return created, err
}

// dropSecrets removes the Secrets of a Pod that was not made. What cannot be
// removed now, a sweep finds: it has no Pod.
func (d *Driver) dropSecrets(ctx context.Context, made *objects.Client, all []*corev1.Secret) {
	ctx, cancel := detach(ctx, abortBudget)
	defer cancel()
	for _, secret := range all {
		_ = made.DeleteSecret(ctx, secret.Namespace, secret.Name)
	}
}
