package pod

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/socialweb-computer/tenant-executor/executor/failure"
	"github.com/socialweb-computer/tenant-executor/executor/registry"
)

// logins are the Secrets with which the Pod's images are pulled: those that
// the operator names, and one with the job's logins, which goes with the Pod.
// It holds no login that the images do not need. Where the service account has
// the logins, nothing may get in its way: a Pod that names Secrets does not get
// those of its service account.
func (b *builder) logins() error {
	if b.Settings.UseServiceAccountImagePullSecrets {
		return nil
	}
	for _, name := range b.Settings.ImagePullSecrets {
		b.Pod.Spec.ImagePullSecrets = append(b.Pod.Spec.ImagePullSecrets, corev1.LocalObjectReference{Name: name})
	}
	needed := registry.Logins(b.Logins).For(b.Images())
	if len(needed) == 0 {
		return nil
	}
	content, err := needed.JSON()
	if err != nil {
		return failure.Wrap(failure.Internal, err, "the logins of job %d", b.Job.ID)
	}
	secret := &corev1.Secret{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{
			Name:        b.Pod.Name + "-logins",
			Namespace:   b.Pod.Namespace,
			Labels:      b.ownLabels(),
			Annotations: b.ownAnnotations(),
		},
		Type: corev1.SecretTypeDockerConfigJson,
		Data: map[string][]byte{corev1.DockerConfigJsonKey: content},
	}
	b.Secrets = append(b.Secrets, secret)
	b.Pod.Spec.ImagePullSecrets = append(b.Pod.Spec.ImagePullSecrets, corev1.LocalObjectReference{Name: secret.Name})
	return nil
}

// ownLabels are the labels by which what is made for a job is found.
func (b *builder) ownLabels() map[string]string {
	return picked(b.Pod.Labels, LabelJob, LabelJobID, LabelRunner, LabelAttempt)
}

// ownAnnotations are the annotations by which it is known when nobody needs it
// any more.
func (b *builder) ownAnnotations() map[string]string {
	return picked(b.Pod.Annotations, AnnotationExpires, AnnotationOwner)
}

func picked(from map[string]string, names ...string) map[string]string {
	some := map[string]string{}
	for _, name := range names {
		if value, ok := from[name]; ok {
			some[name] = value
		}
	}
	return some
}
