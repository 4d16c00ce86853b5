package pod

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/socialweb-computer/tenant-executor/executor/job"
)

// What the operator sets wins over what the job names: the container's security
// context first, then the Pod's.
func TestSecurityContextsWinOverTheJob(t *testing.T) {
	id := func(n int64) *int64 { return &n }
	for name, test := range map[string]struct {
		container, pod, want *int64
		note                 string
	}{
		"container": {id(10), nil, id(10), "runs as user 10,"},
		"Pod":       {nil, id(20), nil, "runs as user 20,"},
		"both":      {id(10), id(20), id(10), "runs as user 10,"},
		"neither":   {nil, nil, id(1000), ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := &builder{Objects: Objects{Pod: &corev1.Pod{Spec: corev1.PodSpec{
				SecurityContext: &corev1.PodSecurityContext{RunAsUser: test.pod},
				Containers:      []corev1.Container{{Name: string(job.Build), SecurityContext: &corev1.SecurityContext{RunAsUser: test.container}}},
			}}}}
			b.Job.Image.Options.Kubernetes.User = "1000"
			if err := b.jobUsers(); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, b.Pod.Spec.Containers[0].SecurityContext.RunAsUser); diff != "" {
				t.Error(diff)
			}
			if notes := strings.Join(b.Notes, "\n"); !strings.Contains(notes, test.note) || test.note == "" && notes != "" {
				t.Errorf("notes %q, want %q", notes, test.note)
			}
		})
	}
}
