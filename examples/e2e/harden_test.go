//go:build e2e

package e2e

import (
	"context"
	"testing"
	"time"

	admission "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typed "k8s.io/client-go/kubernetes/typed/admissionregistration/v1"

	"github.com/socialweb-computer/tenant-executor/examples/testbed"
)

// Labels by which a Pod of these tests asks for a careful cluster.
const (
	labelUser     = "careful/user"
	labelReadOnly = "careful/read-only"
	labelTakeTmp  = "careful/take-tmp"
)

// harden has the cluster change the build containers of Pods that ask for it,
// as admission does on careful clusters; the driver does not know of it.
func harden(t *testing.T) {
	t.Helper()
	client := policies(t)
	for name, p := range map[string]struct{ label, patch string }{
		"careful-user":      {labelUser, `JSONPatch{op: "add", path: "/spec/containers/0/securityContext/runAsUser", value: int(object.metadata.labels["` + labelUser + `"])}`},
		"careful-read-only": {labelReadOnly, `JSONPatch{op: "add", path: "/spec/containers/0/securityContext/readOnlyRootFilesystem", value: true}`},
		"careful-take-tmp": {labelTakeTmp, `JSONPatch{op: "add", path: "/spec/containers/0/lifecycle", value: Object.spec.containers.lifecycle{` +
			`postStart: Object.spec.containers.lifecycle.postStart{exec: Object.spec.containers.lifecycle.postStart.exec{command: ["rm", "-rf", "/tmp"]}}}}`},
	} {
		install(t, client, name, p.label, "["+p.patch+"]")
	}
	// The apiserver reads policies a moment after they are made.
	asks := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "careful", Labels: map[string]string{labelUser: "7", labelReadOnly: "true", labelTakeTmp: "true"}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "build", Image: "none", SecurityContext: &corev1.SecurityContext{Capabilities: &corev1.Capabilities{}},
		}}},
	}
	pods := admin(t).Pods(testbed.Namespace)
	if err := testbed.Until(context.Background(), "the policies to count", time.Minute, func(ctx context.Context) (bool, error) {
		got, err := pods.Create(ctx, asks, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err != nil {
			return false, err
		}
		c := got.Spec.Containers[0]
		return c.SecurityContext.RunAsUser != nil && c.SecurityContext.ReadOnlyRootFilesystem != nil && c.Lifecycle != nil, nil
	}); err != nil {
		t.Fatal(err)
	}
}

func policies(t *testing.T) *typed.AdmissionregistrationV1Client {
	t.Helper()
	return clientOf(t, typed.NewForConfig)
}

// install makes one policy for Pods with a label, until the end of the test.
func install(t *testing.T, client *typed.AdmissionregistrationV1Client, name, label, patch string) {
	t.Helper()
	ctx := limited(t, time.Minute)
	fails := admission.Fail
	policy := &admission.MutatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admission.MutatingAdmissionPolicySpec{
			MatchConstraints: &admission.MatchResources{ResourceRules: []admission.NamedRuleWithOperations{{RuleWithOperations: admission.RuleWithOperations{
				Operations: []admission.OperationType{admission.Create},
				Rule:       admission.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
			}}}},
			MatchConditions:    []admission.MatchCondition{{Name: "asks", Expression: `has(object.metadata.labels) && "` + label + `" in object.metadata.labels`}},
			Mutations:          []admission.Mutation{{PatchType: admission.PatchTypeJSONPatch, JSONPatch: &admission.JSONPatch{Expression: patch}}},
			FailurePolicy:      &fails,
			ReinvocationPolicy: admission.NeverReinvocationPolicy,
		},
	}
	if _, err := client.MutatingAdmissionPolicies().Create(ctx, policy, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	binding := &admission.MutatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       admission.MutatingAdmissionPolicyBindingSpec{PolicyName: name},
	}
	if _, err := client.MutatingAdmissionPolicyBindings().Create(ctx, binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := context.Background()
		for _, err := range []error{
			client.MutatingAdmissionPolicyBindings().Delete(ctx, name, metav1.DeleteOptions{}),
			client.MutatingAdmissionPolicies().Delete(ctx, name, metav1.DeleteOptions{}),
		} {
			if err != nil {
				t.Error(err)
			}
		}
	})
}
