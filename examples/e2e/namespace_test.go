//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedrbac "k8s.io/client-go/kubernetes/typed/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/socialweb-computer/tenant-executor/examples/localrunner/runner"
	"github.com/socialweb-computer/tenant-executor/examples/testbed"
)

// allowNamespaces applies examples/rbac-namespace-per-job.yaml for a test.
func allowNamespaces(t *testing.T) {
	t.Helper()
	root, err := testbed.Root()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, "examples", "rbac-namespace-per-job.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	client := clientOf(t, typedrbac.NewForConfig)
	for _, part := range strings.Split(string(text), "\n---\n") {
		if err := applyRBAC(limited(t, time.Minute), t, client, []byte(part)); err != nil {
			t.Fatal(err)
		}
	}
}

func applyRBAC(ctx context.Context, t *testing.T, client *typedrbac.RbacV1Client, part []byte) error {
	var kind metav1.TypeMeta
	if err := yaml.Unmarshal(part, &kind); err != nil {
		return err
	}
	switch kind.Kind {
	case "ClusterRole":
		var role rbacv1.ClusterRole
		if err := yaml.UnmarshalStrict(part, &role); err != nil {
			return err
		}
		t.Cleanup(func() { _ = client.ClusterRoles().Delete(limited(t, time.Minute), role.Name, metav1.DeleteOptions{}) })
		_, err := client.ClusterRoles().Create(ctx, &role, metav1.CreateOptions{})
		return err
	case "ClusterRoleBinding":
		var binding rbacv1.ClusterRoleBinding
		if err := yaml.UnmarshalStrict(part, &binding); err != nil {
			return err
		}
		t.Cleanup(func() {
			_ = client.ClusterRoleBindings().Delete(limited(t, time.Minute), binding.Name, metav1.DeleteOptions{})
		})
		_, err := client.ClusterRoleBindings().Create(ctx, &binding, metav1.CreateOptions{})
		return err
	}
	return fmt.Errorf("%s is neither a role nor a binding", kind.Kind)
}

// Each job has a namespace of its own, which goes with it; two such jobs do not
// share a node either.
func TestNamespacePerJob(t *testing.T) {
	allowNamespaces(t)
	config := podConfig(t, "namespace_per_job = true", "")
	gates := []string{safe(t.Name() + "-a"), safe(t.Name() + "-b")}
	first := testbed.WithoutSources(bed.Job("echo first", bed.Gate(gates[0])))
	second := testbed.WithoutSources(bed.Job("echo second", bed.Gate(gates[1])))
	waits := []func() testbed.Outcome{start(t, config, first, runner.Options{}), start(t, config, second, runner.Options{})}
	defer bed.Open(gates[0])
	defer bed.Open(gates[1])
	a, b := nodeOf(t, gates[0], first.ID), nodeOf(t, gates[1], second.ID)
	if a == b {
		t.Errorf("both jobs run on node %s at once", a)
	}
	var names []string
	for _, id := range []int64{first.ID, second.ID} {
		found, err := podOf(limited(t, time.Minute), admin(t), id)
		if err != nil || found == nil || !strings.HasPrefix(found.Namespace, fmt.Sprintf("ci-job-%d-", id)) {
			t.Fatalf("the Pod of job %d: %v, %v", id, found, err)
		}
		names = append(names, found.Namespace)
	}
	// What a job of a dead runner has left, the next job's prepare removes.
	found, err := podOf(limited(t, time.Minute), admin(t), first.ID)
	if err != nil || found == nil {
		t.Fatalf("the Pod: %v, %v", found, err)
	}
	labels := map[string]string{}
	for name, value := range found.Labels {
		if strings.HasPrefix(name, "tenant-executor.") {
			labels[name] = value
		}
	}
	labels["tenant-executor.socialweb.computer/job"] = "0123456789abcdef"
	stale := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ci-job-1", Labels: labels,
		Annotations: map[string]string{"tenant-executor.socialweb.computer/expires": "2001-01-01T00:00:00Z"}}}
	if _, err := admin(t).Namespaces().Create(limited(t, time.Minute), stale, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	bed.Open(gates[0])
	bed.Open(gates[1])
	for _, wait := range waits {
		wantPassed(t, wait())
	}
	wantPassed(t, runJobWith(t, config, testbed.WithoutSources(bed.Job("true")), runner.Options{}))
	for _, name := range append(names, stale.Name) {
		if err := testbed.Until(context.Background(), "namespace "+name+" to go", time.Minute, func(ctx context.Context) (bool, error) {
			_, err := admin(t).Namespaces().Get(ctx, name, metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				return true, nil
			}
			return false, err
		}); err != nil {
			t.Error(err)
		}
	}
}

// What the Pod needs and somebody else makes is waited for where settings say
// so; without an end of the wait the job fails with its name.
func TestServiceAccountThatComesLater(t *testing.T) {
	config := podConfig(t, "service_account = \"comes-later\"\nautomount_service_account_token = true\nresource_availability_check_max_attempts = 6", "")
	waiting := make(chan struct{})
	said := false
	j := testbed.WithoutSources(bed.Job("test -s /var/run/secrets/kubernetes.io/serviceaccount/token && echo token-is-there"))
	wait := start(t, config, j, runner.Options{OnLine: func(line string) {
		if !said && strings.Contains(line, "Waiting for service account comes-later in namespace ci") {
			said = true
			close(waiting)
		}
	}})
	select {
	case <-waiting:
	case <-limited(t, time.Minute).Done():
		t.Error("the job does not say that it waits")
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "comes-later", Namespace: testbed.Namespace}}
	if _, err := admin(t).ServiceAccounts(testbed.Namespace).Create(limited(t, time.Minute), account, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = admin(t).ServiceAccounts(testbed.Namespace).Delete(limited(t, time.Minute), account.Name, metav1.DeleteOptions{})
	})
	out := wait()
	wantPassed(t, out)
	wantLog(t, out, "token-is-there")

	config = podConfig(t, "image_pull_secrets = [\"never-comes\"]\nresource_availability_check_max_attempts = 1", "")
	out = runJobWith(t, config, testbed.WithoutSources(bed.Job("true")), runner.Options{})
	wantSystemFailure(t, out, "Secret never-comes: not there in namespace ci after 2 looks")
}
