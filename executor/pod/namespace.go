package pod

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/socialweb-computer/tenant-executor/executor/job"
	"github.com/socialweb-computer/tenant-executor/executor/settings"
)

// Namespace is where a job's Pod lives: the settings' own, or the job's. Its name
// begins as the kubernetes executor's (executors/kubernetes/overwrites.go,
// namespace_per_job), which is made of the job's id alone: with jobs of two GitLab
// instances on one cluster that is not enough to tell them apart.
func Namespace(s settings.Kubernetes, j job.Job) string {
	if s.NamespacePerJob {
		return "ci-job-" + decimal(j.ID) + "-" + j.ShortKey()
	}
	return s.Namespace
}

// house adds the job's own namespace, where it has one. Labels and annotations
// are those by which a namespace that is left behind is found.
func (b *builder) house() error {
	if !b.Settings.NamespacePerJob {
		return nil
	}
	labels := map[string]string{}
	for _, name := range []string{LabelJob, LabelJobID, LabelRunner} {
		labels[name] = b.Pod.Labels[name]
	}
	annotations := map[string]string{AnnotationExpires: b.expires().UTC().Format(time.RFC3339)}
	if b.Owner != "" {
		annotations[AnnotationOwner] = b.Owner
	}
	b.Namespace = &corev1.Namespace{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
		ObjectMeta: metav1.ObjectMeta{Name: b.Pod.Namespace, Labels: labels, Annotations: annotations},
	}
	return nil
}
