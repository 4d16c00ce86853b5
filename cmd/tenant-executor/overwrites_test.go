package main_test

import (
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/socialweb-computer/tenant-executor/kube/faultserver"
)

// A namespace of the job's choice is that of all its stages; cleanup runs
// without job_env.
func TestOverwrittenNamespace(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.play()
	h.settings["kubernetes.namespace_overwrite_allowed"] = "^ci-"
	h.settings["kubernetes.cpu_limit_overwrite_max_allowed"] = "4"
	h.env["CUSTOM_ENV_KUBERNETES_NAMESPACE_OVERWRITE"] = "ci-team"
	h.env["CUSTOM_ENV_KUBERNETES_CPU_LIMIT"] = "2"
	h.env["CUSTOM_ENV_KUBERNETES_MEMORY_LIMIT"] = "1Gi"
	got := h.stage("prepare")
	if got.code != 0 {
		t.Fatalf("prepare ended with %d: %s", got.code, got.stdout)
	}
	for _, line := range []string{
		"namespace ci-team", "\n\"Namespace\" overwritten with \"ci-team\"\n", "\n\"CPULimit\" overwritten with \"2\"\n",
		"\nWithout effect: KUBERNETES_MEMORY_LIMIT (kubernetes.memory_limit_overwrite_max_allowed is not set)\n",
	} {
		if !strings.Contains(got.stdout, line) {
			t.Errorf("the log lacks %q:\n%s", line, got.stdout)
		}
	}
	pods := h.server.Pods()
	if len(pods) != 1 || pods[0].Namespace != "ci-team" || pods[0].Spec.Containers[0].Resources.Limits.Cpu().String() != "2" {
		t.Fatalf("the Pods are %+v", pods)
	}
	if got := h.run("build_script", "echo in the Pod"); got.code != 0 || !strings.Contains(got.stdout, "in the Pod") {
		t.Errorf("run ended with %d: %s", got.code, got.stdout)
	}
	if got := h.stage("cleanup"); got.code != 0 || got.stderr != "" {
		t.Errorf("cleanup ended with %d: %s", got.code, got.stderr)
	}
	if pods := h.server.Pods(); len(pods) != 0 {
		t.Errorf("cleanup has left %d Pods", len(pods))
	}
}

// A job without overwrites says nothing of them, whatever the operator allows.
func TestNothingOverwritten(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.answerSetup()
	h.settings["kubernetes.cpu_limit_overwrite_max_allowed"] = "4"
	if got := h.stage("prepare"); got.code != 0 || strings.Contains(got.stdout, "overwritten") || strings.Contains(got.stdout, "Without effect") {
		t.Errorf("prepare ended with %d: %s", got.code, got.stdout)
	}
}

func TestRefusedOverwrite(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.settings["kubernetes.namespace_overwrite_allowed"] = "^ci-"
	h.env["CUSTOM_ENV_KUBERNETES_NAMESPACE_OVERWRITE"] = "kube-system"
	got := h.stage("prepare")
	want := "ERROR: variable KUBERNETES_NAMESPACE_OVERWRITE is \"kube-system\": it has to match \"^ci-\", as kubernetes.namespace_overwrite_allowed says\n" +
		"Correct or remove the variable in .gitlab-ci.yml or in the project's settings, or have the operator allow it in the [kubernetes] section of the driver's configuration.\n"
	h.expect(got, buildCode, want, "")
	if got := h.stage("cleanup"); got.code != 0 || got.stderr != "" {
		t.Errorf("cleanup ended with %d: %s", got.code, got.stderr)
	}
	for _, r := range h.server.Requests() {
		if r.Verb == "create" || r.Namespace == "kube-system" {
			t.Errorf("the cluster was asked for %s %s in %q", r.Verb, r.Resource, r.Namespace)
		}
	}
}

// A namespace without rights for the driver fails the job once: the job has
// chosen it, and the next attempt would choose it again.
func TestNamespaceWithoutRights(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		fault  faultserver.Fault
		chosen string
		code   int
	}{
		{"of the job's choice", faultserver.AnswerStatus(http.StatusForbidden, metav1.StatusReasonForbidden, "pods is forbidden"), "ci-x", buildCode},
		{"of the job's choice, and not there", faultserver.AnswerStatus(http.StatusNotFound, metav1.StatusReasonNotFound, "no such namespace"), "ci-x", buildCode},
		{"of the operator's", faultserver.AnswerStatus(http.StatusForbidden, metav1.StatusReasonForbidden, "pods is forbidden"), "", systemCode},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t)
			h.settings["kubernetes.namespace_overwrite_allowed"] = "^ci-"
			h.env["CUSTOM_ENV_KUBERNETES_NAMESPACE_OVERWRITE"] = test.chosen
			h.server.Fail(1, "create", "pods", test.fault)
			got := h.stage("prepare")
			if got.code != test.code || test.chosen != "" && !strings.Contains(got.stdout, "namespace ci-x, which the job asks for: ") {
				t.Errorf("prepare ended with %d: %s", got.code, got.stdout)
			}
		})
	}
}

// Where the driver may not look into all namespaces it looks into those it
// knows: the configured one and the job's.
func TestLeftoversOfOtherNamespaces(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		denied bool
		found  int
	}{
		{"may look everywhere", false, 3},
		{"may not", true, 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t)
			h.answerSetup()
			h.settings["kubernetes.namespace_overwrite_allowed"] = "^ci-"
			if got := h.stage("prepare"); got.code != 0 {
				t.Fatalf("prepare ended with %d: %s", got.code, got.stdout)
			}
			for _, other := range []string{"ci-a", "ci-b"} {
				pod := h.server.Pods()[0].DeepCopy()
				pod.Namespace = other
				h.server.AddPod(pod)
			}
			h.env["CUSTOM_ENV_KUBERNETES_NAMESPACE_OVERWRITE"] = "ci-b"
			if test.denied {
				h.server.Fail(1, "list", "pods", faultserver.AnswerStatus(http.StatusForbidden, metav1.StatusReasonForbidden, "pods is forbidden"))
			}
			got := h.stage("cleanup")
			if got.code != 0 {
				t.Fatalf("cleanup ended with %d: %s", got.code, got.stderr)
			}
			if left := 3 - len(h.server.Pods()); left != test.found {
				t.Errorf("cleanup removed %d Pods, want %d", left, test.found)
			}
		})
	}
}
