package cluster

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const manifest = `# a comment
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: jobs, namespace: ci-two}
---
apiVersion: v1
kind: Namespace
metadata: {name: ci}
---
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: nodes}
`

func TestManifest(t *testing.T) {
	objects, err := ReadManifest(strings.NewReader(manifest))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"ci", "ci-two"}, Namespaces(objects)); diff != "" {
		t.Errorf("namespaces (-want +got):\n%s", diff)
	}
	var order []string
	for _, object := range inOrder(objects) {
		order = append(order, object.GetKind()+"/"+object.GetName())
	}
	want := []string{"Namespace/ci", "Namespace/ci-two", "Role/jobs", "ClusterRole/nodes"}
	if diff := cmp.Diff(want, order); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

func TestManifestRefuses(t *testing.T) {
	for name, text := range map[string]string{
		"no kind":  "apiVersion: v1\nmetadata: {name: x}\n",
		"no name":  "apiVersion: v1\nkind: Namespace\n",
		"not YAML": "a: [\n",
	} {
		if _, err := ReadManifest(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), "document 1") {
			t.Errorf("%s: %v, want an error that names document 1", name, err)
		}
	}
}

func TestBindsTo(t *testing.T) {
	pod := func(namespace, node string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace}, Spec: corev1.PodSpec{NodeName: node}}
	}
	for _, test := range []struct {
		name          string
		before, after any
		want          string
	}{
		{"a Pod is bound", pod("ci", ""), pod("ci", "a"), "a"},
		{"a Pod changes before", pod("ci", ""), pod("ci", ""), ""},
		{"a Pod changes after", pod("ci", "a"), pod("ci", "a"), ""},
		{"a Pod of the system", pod(SystemNamespace, ""), pod(SystemNamespace, "a"), ""},
		{"a Node", &corev1.Node{}, &corev1.Node{}, ""},
	} {
		if got := bindsTo(test.before, test.after); got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}

func TestCountUnfinished(t *testing.T) {
	pod := func(namespace string, phase corev1.PodPhase) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace}, Status: corev1.PodStatus{Phase: phase}}
	}
	objects := []any{
		pod("ci", corev1.PodPending), pod("ci-two", corev1.PodRunning), pod("ci", ""), pod("ci", corev1.PodUnknown),
		pod("ci", corev1.PodSucceeded), pod("ci", corev1.PodFailed), pod(SystemNamespace, corev1.PodRunning),
	}
	if got := countUnfinished(objects); got != 4 {
		t.Errorf("%d unfinished Pods, want 4", got)
	}
}
