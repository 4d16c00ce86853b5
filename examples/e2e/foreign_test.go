//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedadmission "k8s.io/client-go/kubernetes/typed/admissionregistration/v1"

	"github.com/socialweb-computer/tenant-executor/examples/localrunner/job"
	"github.com/socialweb-computer/tenant-executor/examples/localrunner/runner"
	"github.com/socialweb-computer/tenant-executor/examples/testbed"
)

// adds has the cluster add to the Pod of one job what the expression makes, as
// webhooks of meshes and of secret stores do.
func adds(t *testing.T, j *job.Job, expression string) {
	t.Helper()
	const label = "tenant-executor.socialweb.computer/job-id"
	client := clientOf(t, typedadmission.NewForConfig)
	name, ctx := fmt.Sprintf("adds-%d", j.ID), limited(t, time.Minute)
	fail, once := admissionv1.Fail, admissionv1.NeverReinvocationPolicy
	policy := &admissionv1.MutatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: admissionv1.MutatingAdmissionPolicySpec{
		MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
			Operations: []admissionv1.OperationType{admissionv1.Create},
			Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
		}}}},
		MatchConditions: []admissionv1.MatchCondition{{Name: "job", Expression: fmt.Sprintf(`has(object.metadata.labels) && %q in object.metadata.labels && object.metadata.labels[%q] == "%d"`, label, label, j.ID)}},
		Mutations: []admissionv1.Mutation{{PatchType: admissionv1.PatchTypeJSONPatch,
			JSONPatch: &admissionv1.JSONPatch{Expression: expression}}},
		FailurePolicy: &fail, ReinvocationPolicy: once,
	}}
	if _, err := client.MutatingAdmissionPolicies().Create(ctx, policy, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	binding := &admissionv1.MutatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: admissionv1.MutatingAdmissionPolicyBindingSpec{PolicyName: name}}
	if _, err := client.MutatingAdmissionPolicyBindings().Create(ctx, binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := limited(t, time.Minute)
		_ = client.MutatingAdmissionPolicyBindings().Delete(ctx, name, metav1.DeleteOptions{})
		_ = client.MutatingAdmissionPolicies().Delete(ctx, name, metav1.DeleteOptions{})
	})
	// The apiserver learns of it a little later.
	sample := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: testbed.Namespace, Labels: map[string]string{label: fmt.Sprint(j.ID)}},
		Spec: corev1.PodSpec{Volumes: []corev1.Volume{{Name: "repo"}}, Containers: []corev1.Container{{Name: "build", Image: bed.Image("busybox")}}}}
	if err := testbed.Until(ctx, "the policy to be heeded", time.Minute, func(ctx context.Context) (bool, error) {
		made, err := admin(t).Pods(testbed.Namespace).Create(ctx, sample, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err == nil && len(made.Spec.InitContainers)+len(made.Spec.Containers) > 1, err
	}); err != nil {
		t.Fatal(err)
	}
}

// Containers that the cluster adds to a job's Pod are not the job's: the kubelet's
// rules for restarts count, and what fails for good is a system failure that names
// the container and shows its words.
func TestContainersOfOthersOnACluster(t *testing.T) {
	const (
		init    = `[JSONPatch{op: "add", path: "/spec/initContainers", value: [Object.spec.initContainers{name: "licence", image: %q, command: ["sh", "-c", %q]%s}]}]`
		sidecar = `[JSONPatch{op: "add", path: "/spec/containers/-", value: Object.spec.containers{name: "mesh", image: %q%s}}]`
	)
	const whose = ", which is not the job's (a webhook or a policy of the cluster has added it)"
	for _, c := range []struct {
		name, expression string
		fails            []string
		log              string
	}{
		{"an init container that says why and ends", fmt.Sprintf(init, bed.Image("busybox"), "echo no licence left; exit 1", ""),
			[]string{"What container licence said last:", "no licence left", "container licence with image " + bed.Image("busybox") + whose}, ""},
		{"a sidecar without an image", fmt.Sprintf(sidecar, bed.Image("nosuch"), ""),
			[]string{"because of container mesh with image " + bed.Image("nosuch") + whose, "The operator has to find whose it is"}, ""},
		{"a native sidecar that needs two tries", fmt.Sprintf(init, bed.Image("busybox"), `[ -e /builds/tried ] && exec sleep 600; touch /builds/tried; exit 1`, `, restartPolicy: "Always", volumeMounts: [Object.spec.initContainers.volumeMounts{name: "repo", mountPath: "/builds"}]`), nil, "done"},
		{"a sidecar that ends", fmt.Sprintf(sidecar, bed.Image("busybox"), `, command: ["false"]`), nil, "done"},
	} {
		t.Run(c.name, func(t *testing.T) {
			j := testbed.WithoutSources(bed.Job("sleep 3", "echo done"))
			adds(t, j, c.expression)
			out := runJobWith(t, imagesConfig(t, ""), j, runner.Options{})
			if c.fails == nil {
				wantPassed(t, out)
				wantLog(t, out, c.log)
				return
			}
			wantSystemFailure(t, out, c.fails...)
			wantNoPods(t, j.ID)
		})
	}
	t.Run("of pod_spec", func(t *testing.T) {
		patch := fmt.Sprintf("[[kubernetes.pod_spec]]\nname = \"licence\"\npatch = '''\ninitContainers: [{ name: licence, image: %q, command: [sh, -c, \"echo no licence left; exit 1\"] }]\n'''\n", bed.Image("busybox"))
		j := withFlag(testbed.WithoutSources(bed.Job("true")), "FF_USE_ADVANCED_POD_SPEC_CONFIGURATION")
		out := runJobWith(t, podConfig(t, "", patch), j, runner.Options{})
		wantSystemFailure(t, out, "no licence left", "(the operator's pod_spec has added it)", "has to repair it there")
	})
}

// A script that empties the driver's folder is told what it has done.
func TestScriptRemovesTheDriver(t *testing.T) {
	j := testbed.WithoutSources(bed.Job("rm -rf /tenant-executor/* || true", "echo removed"))
	testbed.AfterScript(j, "echo never")
	out := runJobWith(t, bed.Config, j, runner.Options{})
	const told = "Something in the job has emptied the folder /tenant-executor"
	wantLog(t, out, told, "Not run: the driver's folder in the job's Pod is gone, see above.")
	if n := strings.Count(out.Log, told); n != 1 {
		t.Errorf("it is told %d times", n)
	}
}
