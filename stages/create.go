package stages

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/socialweb-computer/tenant-executor/executor/pod"
	"github.com/socialweb-computer/tenant-executor/kube/objects"
)

// create makes the Pod and what belongs to it. Secrets come first, or the Pod's
// containers could start without them; they belong to the Pod as soon as it is
// there, and so go with it. Where the Pod cannot be made they go at once; a
// driver that dies in between leaves them to a sweep.
func (d *Driver) create(ctx context.Context, plan pod.Objects) (*corev1.Pod, error) {
	made := objects.NewClient(d.cluster, requestBudget)
	if plan.Namespace != nil {
		if err := d.createNamespace(ctx, made, plan.Namespace); err != nil {
			return nil, err
		}
	}
	if err := d.checkNeeds(ctx, plan); err != nil {
		return nil, err
	}
	d.takeWarm(ctx)
	for i, secret := range plan.Secrets {
		if err := made.CreateSecret(ctx, secret); err != nil {
			d.dropSecrets(ctx, made, plan.Secrets[:i])
			return nil, d.createFailure(err)
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
		return nil, d.createFailure(withBounded(err, &plan.Pod.Spec))
	}
	for _, secret := range plan.Secrets {
		if err := made.OwnSecret(ctx, secret.Namespace, secret.Name, created); err != nil {
			d.log.Warn("Secret %s does not go with the job's Pod, so it stays until a sweep finds it: %v", secret.Name, err)
		}
	}
	d.checkRank(ctx, created)
	if plan.Budget != nil {
		if err := made.CreateBudget(ctx, plan.Budget, created); err != nil {
			return nil, d.createFailure(err)
		}
	}
	return created, nil
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
