//go:build e2e

package e2e

import (
	"context"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedadmission "k8s.io/client-go/kubernetes/typed/admissionregistration/v1"

	"github.com/socialweb-computer/tenant-executor/examples/localrunner/runner"
	"github.com/socialweb-computer/tenant-executor/examples/testbed"
)

// quota limits the namespace of jobs for a test. Until the cluster has counted what
// is there it lets nothing in.
func quota(t *testing.T, hard map[corev1.ResourceName]string) {
	t.Helper()
	q := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "team"}, Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{}}}
	for name, text := range hard {
		q.Spec.Hard[name] = resource.MustParse(text)
	}
	client := admin(t).ResourceQuotas(testbed.Namespace)
	if _, err := client.Create(limited(t, time.Minute), q, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Delete(context.Background(), q.Name, metav1.DeleteOptions{}) })
}

// told gives where lines are to be looked at, and a wait for one that holds words.
func told(words string) (look func(string), wait func(*testing.T)) {
	heard := make(chan struct{})
	said := false
	look = func(line string) {
		if !said && strings.Contains(line, words) {
			said = true
			close(heard)
		}
	}
	return look, func(t *testing.T) {
		t.Helper()
		select {
		case <-heard:
		case <-limited(t, 90*time.Second).Done():
			t.Errorf("nobody says %q", words)
		}
	}
}

// A quota that another job uses up is waited for, in one attempt, with its name.
func TestAQuotaThatIsFullForAMoment(t *testing.T) {
	wantNoPodsAtAll(t)
	quota(t, map[corev1.ResourceName]string{corev1.ResourcePods: "1"})
	first := testbed.WithoutSources(bed.Job(bed.Gate("quota")))
	firstWait := start(t, bed.Config, first, runner.Options{})
	defer bed.Open("quota")
	nodeOf(t, "quota", first.ID)
	const words = "Waiting for quota team of namespace ci: 1 of 1 pods used"
	look, wait := told(words)
	secondWait := start(t, bed.Config, testbed.WithoutSources(bed.Job("echo second")), runner.Options{OnLine: look})
	wait(t)
	bed.Open("quota")
	wantPassed(t, firstWait())
	out := secondWait()
	wantPassed(t, out)
	if n := strings.Count(out.Log, words); n != 1 || out.Attempts > 1 {
		t.Errorf("told %d times in %d attempts:\n%s", n, out.Attempts, plain(out.Log))
	}
}

// One that stays full ends the wait with its budget, as a failure of the system.
func TestAQuotaThatStaysFull(t *testing.T) {
	wantNoPodsAtAll(t)
	quota(t, map[corev1.ResourceName]string{"count/secrets": "100", corev1.ResourcePods: "1"})
	first := testbed.WithoutSources(bed.Job(bed.Gate("quota-stays")))
	firstWait := start(t, bed.Config, first, runner.Options{})
	defer bed.Open("quota-stays")
	nodeOf(t, "quota-stays", first.ID)
	h := byHand(t, testbed.WithoutSources(bed.Job("true")))
	var err error
	if h.config, err = bed.WriteConfig(testbed.Namespace, "[wait]\nnode = \"8s\"\n"); err != nil {
		t.Fatal(err)
	}
	out, code := h.do("prepare")
	h.do("cleanup")
	if code != 2 || !strings.Contains(out, "ERROR: no room for the job in namespace ci after 8 s: quota team: 1 of 1 pods used") {
		t.Errorf("prepare ended with %d:\n%s", code, out)
	}
	bed.Open("quota-stays")
	wantPassed(t, firstWait())
}

// What never fits, whoever goes, fails once.
func TestAQuotaThatIsTooSmall(t *testing.T) {
	wantNoPodsAtAll(t)
	quota(t, map[corev1.ResourceName]string{corev1.ResourceRequestsMemory: "64Mi"})
	config := podConfig(t, "memory_request = \"80Mi\"\nhelper_memory_request = \"16Mi\"", "")
	out := runJobWith(t, config, testbed.WithoutSources(bed.Job("true")), runner.Options{})
	if out.Status != runner.Failed || out.FailureReason != "script_failure" || out.Attempts != 1 {
		t.Errorf("ended with %s, %s after %d attempts; want one build failure", out.Status, out.FailureReason, out.Attempts)
	}
	wantLog(t, out, "ERROR: the job never fits into namespace ci: 96Mi requests.memory are asked for, and quota team has 64Mi")
}

// A limit range is named with the container that it is about.
func TestALimitRange(t *testing.T) {
	bound := &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Name: "team"}, Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
		Type: corev1.LimitTypeContainer, Max: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("256Mi")},
	}}}}
	client := admin(t).LimitRanges(testbed.Namespace)
	if _, err := client.Create(limited(t, time.Minute), bound, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Delete(context.Background(), bound.Name, metav1.DeleteOptions{}) })
	big := corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")}}
	untilRefused(t, corev1.Container{Name: "c", Image: "x", Resources: big}, "maximum memory usage per Container")
	config := podConfig(t, "memory_limit = \"300Mi\"\nhelper_memory_limit = \"64Mi\"", "")
	out := runJobWith(t, config, testbed.WithoutSources(bed.Job("true")), runner.Options{})
	if out.Status != runner.Failed || out.FailureReason != "script_failure" || out.Attempts != 1 {
		t.Errorf("ended with %s, %s after %d attempts; want one build failure", out.Status, out.FailureReason, out.Attempts)
	}
	wantLog(t, out, "ERROR: a LimitRange of namespace ci refuses the job's Pod for container build: ", "maximum memory usage per Container is 256Mi, but limit is 300Mi")
}

// A webhook that is down is named while it is asked again, and the job goes on when
// it is back: here, when nobody asks it any more.
func TestAWebhookThatIsDown(t *testing.T) {
	url, fail, none, scope := "https://127.0.0.1:1/pods", admissionv1.Fail, admissionv1.SideEffectClassNone, admissionv1.NamespacedScope
	hook := &admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "down"}, Webhooks: []admissionv1.ValidatingWebhook{{
		Name: "pods.down.example.com", ClientConfig: admissionv1.WebhookClientConfig{URL: &url}, FailurePolicy: &fail, SideEffects: &none,
		AdmissionReviewVersions: []string{"v1"},
		NamespaceSelector:       &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": testbed.Namespace}},
		Rules: []admissionv1.RuleWithOperations{{Operations: []admissionv1.OperationType{admissionv1.Create}, Rule: admissionv1.Rule{
			APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}, Scope: &scope,
		}}},
	}}}
	client := clientOf(t, typedadmission.NewForConfig).ValidatingWebhookConfigurations()
	if _, err := client.Create(limited(t, time.Minute), hook, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	remove := func() { _ = client.Delete(context.Background(), hook.Name, metav1.DeleteOptions{}) }
	t.Cleanup(remove)
	untilRefused(t, corev1.Container{Name: "c", Image: "x"}, "failed calling webhook")
	look, wait := told("Waiting for admission webhook pods.down.example.com of the cluster: failed to call webhook")
	jobWait := start(t, bed.Config, testbed.WithoutSources(bed.Job("true")), runner.Options{OnLine: look})
	wait(t)
	remove()
	out := jobWait()
	wantPassed(t, out)
	if out.Attempts > 1 {
		t.Errorf("%d attempts", out.Attempts)
	}
}

// wantNoPodsAtAll waits until the namespace of jobs is empty.
func wantNoPodsAtAll(t *testing.T) {
	t.Helper()
	if err := testbed.Until(context.Background(), "the Pods to go", time.Minute, func(ctx context.Context) (bool, error) {
		list, err := admin(t).Pods(testbed.Namespace).List(ctx, metav1.ListOptions{})
		return err == nil && len(list.Items) == 0, err
	}); err != nil {
		t.Fatal(err)
	}
}

// untilRefused waits until the apiserver has heard of what was made, and refuses a
// Pod by it.
func untilRefused(t *testing.T, c corev1.Container, words string) {
	t.Helper()
	probe := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: "probe-"}, Spec: corev1.PodSpec{Containers: []corev1.Container{c}}}
	if err := testbed.Until(context.Background(), "a Pod to be refused", time.Minute, func(ctx context.Context) (bool, error) {
		_, err := admin(t).Pods(testbed.Namespace).Create(ctx, probe, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err != nil && strings.Contains(err.Error(), words), nil
	}); err != nil {
		t.Fatal(err)
	}
}
