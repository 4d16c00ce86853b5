package pod

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/socialweb-computer/tenant-executor/executor/job"
)

// Limits of variables.
const (
	// largestSecret is how much one Secret holds: Kubernetes takes 1 MiB, and
	// its store less than 1.5 MiB of the object as it is sent.
	largestSecret = 768 << 10
	// largestVariable is how long NAME=value may be for Linux to start a
	// program with it (MAX_ARG_STRLEN, with the zero at its end).
	largestVariable = 128<<10 - 1
)

// secret is an empty Secret that goes with the Pod.
func (b *builder) secret(name string) *corev1.Secret {
	return &corev1.Secret{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{
			Name:        b.Pod.Name + "-" + name,
			Namespace:   b.Pod.Namespace,
			Labels:      b.objectLabels(),
			Annotations: b.objectAnnotations(),
		},
		Type: corev1.SecretTypeOpaque,
		Data: map[string][]byte{},
	}
}

// objectLabels are the labels by which a sweep finds what was made for a job.
func (p Plan) objectLabels() map[string]string {
	return map[string]string{
		LabelJob:     p.Job.Key(),
		LabelJobID:   decimal(p.Job.ID),
		LabelRunner:  LabelValue(p.Job.RunnerToken),
		LabelAttempt: p.Attempt,
	}
}

// objectAnnotations are the annotations by which a sweep judges it.
func (p Plan) objectAnnotations() map[string]string {
	all := p.annotations()
	kept := map[string]string{}
	for _, name := range []string{AnnotationExpires, AnnotationOwner} {
		if value := all[name]; value != "" {
			kept[name] = value
		}
	}
	return kept
}

// secretEnvironment puts variables into Secrets of the job, as few as hold them,
// and says how a container gets them. The Pod itself then shows neither values
// nor names. Kubernetes does not replace anything in values that come from a
// Secret, so that dollar signs stay what they are. A variable whose name no
// environment can have is left out: no program could ask for it.
func (b *builder) secretEnvironment(name string, variables []job.Variable) ([]corev1.EnvFromSource, error) {
	var sources []corev1.EnvFromSource
	var secret *corev1.Secret
	size := 0
	for _, v := range variables {
		if len(validation.IsConfigMapKey(v.Key)) > 0 {
			b.Notes = append(b.Notes, fmt.Sprintf("The services do not get the variable %q: that is no name of a variable", v.Key))
			continue
		}
		length := len(v.Key) + len("=") + len(v.Value)
		switch {
		case length > largestVariable:
			return nil, fmt.Errorf("the variable %s has %d bytes: Linux starts no program with a variable of more than %d", v.Key, length, largestVariable)
		case strings.ContainsRune(v.Value, 0):
			return nil, fmt.Errorf("the variable %s has a zero byte in it, with which Linux starts no program", v.Key)
		}
		if secret == nil || size+length > largestSecret {
			full := name
			if len(sources) > 0 {
				full = fmt.Sprintf("%s.%d", name, len(sources)+1) // no container has a dot in its name
			}
			secret, size = b.secret(full), 0
			b.Secrets = append(b.Secrets, secret)
			sources = append(sources, corev1.EnvFromSource{SecretRef: &corev1.SecretEnvSource{
				LocalObjectReference: corev1.LocalObjectReference{Name: secret.Name},
			}})
		}
		secret.Data[v.Key] = []byte(v.Value)
		size += length
	}
	return sources, nil
}
