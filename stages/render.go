package stages

import (
	"context"

	corev1 "k8s.io/api/core/v1"
)

// masked stands for a secret value.
const masked = "[MASKED]"

// Render is what prepare would make of the job, without making it, in the order
// of its making, each with its kind. The values of Secrets are masked;
// the Pod has none. The attempt in the names is another each time.
func (d *Driver) Render(ctx context.Context) ([]any, error) {
	_, objects, err := d.intended(ctx, d.host())
	if err != nil {
		return nil, err
	}
	for _, note := range objects.Notes {
		d.log.Warn("%s", note)
	}
	var all []any
	if objects.Namespace != nil {
		all = append(all, objects.Namespace)
	}
	for _, secret := range objects.Secrets {
		all = append(all, maskedSecret(secret))
	}
	objects.Pod.APIVersion, objects.Pod.Kind = "v1", "Pod"
	all = append(all, objects.Pod)
	if objects.Budget != nil {
		all = append(all, objects.Budget)
	}
	return all, nil
}

// maskedSecret is a Secret that can be shown: its keys, and no value. Values
// move to stringData, where they are text.
func maskedSecret(secret *corev1.Secret) *corev1.Secret {
	shown := secret.DeepCopy()
	shown.APIVersion, shown.Kind = "v1", "Secret"
	values := map[string]string{}
	for key := range secret.Data {
		values[key] = masked
	}
	for key := range secret.StringData {
		values[key] = masked
	}
	shown.Data, shown.StringData = nil, values
	return shown
}
