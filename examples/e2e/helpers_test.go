//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typed "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/socialweb-computer/tenant-executor/examples/localrunner/job"
	"github.com/socialweb-computer/tenant-executor/examples/localrunner/runner"
	"github.com/socialweb-computer/tenant-executor/examples/testbed"
)

// jobLimit is far more than any job here needs.
const jobLimit = 3 * time.Minute

// limited is a context that ends before the test's own limit does.
func limited(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

// run runs a job and shows its log if the test fails.
func runJob(t *testing.T, j *job.Job, o runner.Options) testbed.Outcome {
	t.Helper()
	return runJobWith(t, bed.Config, j, o)
}

func runJobWith(t *testing.T, config string, j *job.Job, o runner.Options) testbed.Outcome {
	t.Helper()
	out, err := bed.RunWith(limited(t, jobLimit), config, j, o)
	if err != nil {
		t.Errorf("running job %d: %v", j.ID, err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("log of job %d:\n%s", j.ID, out.Log)
		}
	})
	return out
}

// start runs a job beside the test; wait gives its outcome.
func start(t *testing.T, config string, j *job.Job, o runner.Options) (wait func() testbed.Outcome) {
	t.Helper()
	done := make(chan testbed.Outcome, 1)
	go func() { done <- runJobWith(t, config, j, o) }()
	return func() testbed.Outcome { return <-done }
}

func wantPassed(t *testing.T, out testbed.Outcome) {
	t.Helper()
	if out.Status != runner.Success {
		t.Errorf("the job ended with %s, %s: %s; want success", out.Status, out.FailureReason, out.Message)
	}
}

// wantSystemFailure also means: never success, and no exit code of a script.
func wantSystemFailure(t *testing.T, out testbed.Outcome, says ...string) {
	t.Helper()
	if out.Status != runner.Failed || out.FailureReason != "runner_system_failure" {
		t.Errorf("the job ended with %s, %s: %s; want a system failure", out.Status, out.FailureReason, out.Message)
	}
	wantLog(t, out, says...)
}

func wantLog(t *testing.T, out testbed.Outcome, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(out.Log, part) {
			t.Errorf("the log lacks %q", part)
		}
	}
}

func admin(t *testing.T) *typed.CoreV1Client {
	t.Helper()
	return clientOf(t, typed.NewForConfig)
}

// adminConfig is how the cluster's administrator reaches it.
func adminConfig(t *testing.T) *rest.Config {
	t.Helper()
	config, err := bed.AdminConfig(limited(t, time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// clientOf is a client of the cluster's administrator.
func clientOf[C any](t *testing.T, made func(*rest.Config) (C, error)) C {
	t.Helper()
	client, err := made(adminConfig(t))
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// podOf is the Pod of a job, nil if it has none.
func podOf(ctx context.Context, client *typed.CoreV1Client, id int64) (*corev1.Pod, error) {
	list, err := client.Pods("").List(ctx, metav1.ListOptions{LabelSelector: fmt.Sprintf("tenant-executor.socialweb.computer/job-id=%d", id)})
	if err != nil || len(list.Items) == 0 {
		return nil, err
	}
	return &list.Items[len(list.Items)-1], nil
}

// wantNoPods waits until no Pod of the jobs is there: cleanup does not wait for
// the end of what it deletes.
func wantNoPods(t *testing.T, ids ...int64) {
	t.Helper()
	client := admin(t)
	for _, id := range ids {
		err := testbed.Until(context.Background(), fmt.Sprintf("the Pods of job %d to go", id), 30*time.Second, func(ctx context.Context) (bool, error) {
			pod, err := podOf(ctx, client, id)
			return err == nil && pod == nil, err
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// wantApiserver waits until the apiserver answers again.
func wantApiserver(t *testing.T) {
	t.Helper()
	client := admin(t)
	if err := testbed.Until(context.Background(), "the apiserver", time.Minute, func(ctx context.Context) (bool, error) {
		_, err := client.Nodes().List(ctx, metav1.ListOptions{})
		return err == nil, err
	}); err != nil {
		t.Fatal(err)
	}
}

func localtenant(t *testing.T, args ...string) {
	t.Helper()
	if _, err := bed.Do(limited(t, 2*time.Minute), args...); err != nil {
		t.Fatal(err)
	}
}

// plain is a log without colours and section marks.
func plain(log string) string {
	return regexp.MustCompile("\x1b\\[[0-9;]*[mK]|section_(start|end):[0-9]+:[a-z_]+\r").ReplaceAllString(log, "")
}
