//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/socialweb-computer/tenant-executor/examples/localrunner/job"
	"github.com/socialweb-computer/tenant-executor/examples/localrunner/runner"
	"github.com/socialweb-computer/tenant-executor/examples/testbed"
)

// What a runner of the kubernetes executor needs to go on with the driver.

// variable adds a variable to a job.
func variable(j *job.Job, name, value string) *job.Job {
	j.Variables = append(j.Variables, job.Variable{Key: name, Value: value, Raw: true})
	return j
}

// A job runs in the namespace of its choice, with the resources of its choice,
// and nothing of it stays there.
func TestJobOverwritesItsPod(t *testing.T) {
	secondNamespace(t)
	config, err := bed.WriteConfig(testbed.Namespace, "")
	if err != nil {
		t.Fatal(err)
	}
	replaceInFile(t, config, "pull_policy =", `namespace_overwrite_allowed = "^ci-"
memory_limit_overwrite_max_allowed = "256Mi"
pod_labels_overwrite_allowed = "^team="
pull_policy =`)
	gate := safe(t.Name())
	j := testbed.WithoutSources(bed.Job(bed.Gate(gate)))
	variable(j, "KUBERNETES_NAMESPACE_OVERWRITE", "ci-two")
	variable(j, "KUBERNETES_MEMORY_LIMIT", "128Mi")
	variable(j, "KUBERNETES_POD_LABELS_1", "team=mine and yours")
	variable(j, "KUBERNETES_CPU_LIMIT", "64")
	wait := start(t, config, j, runner.Options{})
	defer bed.Open(gate)
	if err := bed.Arrived(limited(t, jobLimit), gate); err != nil {
		t.Fatal(err)
	}
	pod, err := podOf(limited(t, time.Minute), admin(t), j.ID)
	if err != nil || pod == nil {
		t.Fatalf("the Pod: %v, %v", pod, err)
	}
	if limit := pod.Spec.Containers[0].Resources.Limits; pod.Namespace != "ci-two" || limit.Memory().String() != "128Mi" || !limit.Cpu().IsZero() || pod.Labels["team"] != "mine_and_yours" {
		t.Errorf("namespace %s, limits %v, labels %v", pod.Namespace, limit, pod.Labels)
	}
	bed.Open(gate)
	out := wait()
	wantPassed(t, out)
	wantLog(t, out, `"Namespace" overwritten with "ci-two"`, `"MemoryLimit" overwritten with "128Mi"`, "Without effect: KUBERNETES_CPU_LIMIT")
	wantNoPods(t, j.ID)
}

// What a job may not have fails it once.
func TestJobAsksForTooMuch(t *testing.T) {
	config, err := bed.WriteConfig(testbed.Namespace, "")
	if err != nil {
		t.Fatal(err)
	}
	replaceInFile(t, config, "pull_policy =", "namespace_overwrite_allowed = \".\"\nmemory_limit_overwrite_max_allowed = \"1Gi\"\npull_policy =")
	for _, test := range []struct{ variable, value, says string }{
		{"KUBERNETES_MEMORY_LIMIT", "2Gi", `ERROR: variable KUBERNETES_MEMORY_LIMIT is "2Gi": the most that the operator allows is 1Gi`},
		{"KUBERNETES_NAMESPACE_OVERWRITE", "nosuch", "ERROR: namespace nosuch, which the job asks for: "},
	} {
		out := runJobWith(t, config, variable(testbed.WithoutSources(bed.Job("true")), test.variable, test.value), runner.Options{})
		if out.Status != runner.Failed || out.FailureReason != "script_failure" || out.Attempts != 1 {
			t.Errorf("%s: ended with %s, %s after %d attempts; want one build failure", test.variable, out.Status, out.FailureReason, out.Attempts)
		}
		wantLog(t, out, test.says)
	}
}

// runnersOwn is a config.toml of GitLab Runner for the cluster.
func runnersOwn(t *testing.T) string {
	t.Helper()
	status, err := bed.Status(limited(t, time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "config.toml")
	text := fmt.Sprintf(`concurrent = %d
[[runners]]
  name = "testbed"
  url = "https://gitlab.example.com"
  token = "glrt-t3_testbedtoken"
  executor = "custom"
  [runners.kubernetes]
    host = %q
    ca_file = %q
    cert_file = %q
    key_file = %q
    namespace = %q
    helper_image = %q
    pull_policy = "if-not-present"
    poll_timeout = 600
    bearer_token_overwrite_allowed = false
    [runners.kubernetes.pod_labels]
      project = "$CI_PROJECT_PATH"
    [runners.kubernetes.affinity]
`, bed.Ceiling, status.URL, filepath.Join(status.AccessDir, "ca.crt"), filepath.Join(status.AccessDir, "client.crt"), filepath.Join(status.AccessDir, "client.key"),
		testbed.Namespace, bed.Image("helper"))
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// remaining is what of the driver's configuration the runner's has not.
func remaining(t *testing.T) string {
	t.Helper()
	return fmt.Sprintf("[tenant]\nceiling = %d\n[state]\ndir = %q\n[run]\ncancel_grace = \"1s\"\npoll = \"1s\"\n", bed.Ceiling, t.TempDir())
}

// The settings of the kubernetes executor serve the driver, where they are and
// as migrate writes them down.
func TestSettingsOfTheKubernetesExecutor(t *testing.T) {
	own := runnersOwn(t)
	for _, test := range []struct {
		name string
		args []string
	}{
		{"inherited", []string{"--inherit"}},
		{"written down", nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			config := filepath.Join(t.TempDir(), "driver.toml")
			command := exec.Command(bed.Driver, append([]string{"migrate", "--config-file", own, "--write", config}, test.args...)...)
			if output, err := command.CombinedOutput(); err != nil || bytes.Contains(output, []byte("Still to be set")) || bytes.Contains(output, []byte("testbedtoken")) {
				t.Fatalf("migrate: %v\n%s", err, output)
			}
			file, err := os.OpenFile(config, os.O_APPEND|os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := file.WriteString("\n" + remaining(t)); err != nil {
				t.Fatal(err)
			}
			if err := file.Close(); err != nil {
				t.Fatal(err)
			}
			gate := safe(t.Name())
			j := testbed.WithoutSources(bed.Job(bed.Gate(gate), "echo ran"))
			wait := start(t, config, j, runner.Options{})
			defer bed.Open(gate)
			if err := bed.Arrived(limited(t, jobLimit), gate); err != nil {
				t.Fatal(err)
			}
			pod, err := podOf(limited(t, time.Minute), admin(t), j.ID)
			if err != nil || pod == nil || pod.Labels["project"] != "root_demo" {
				t.Errorf("the Pod: %+v, %v", pod, err)
			}
			bed.Open(gate)
			out := wait()
			wantPassed(t, out)
			wantLog(t, out, "ran\n")
			wantNoPods(t, j.ID)
		})
	}
}

// Variables, names and refs of the worst kind reach the script as they are, and
// the cluster takes the Pod.
func TestWorstNamesAndVariables(t *testing.T) {
	values := []string{
		"two\nlines", "a newline at the end\n", "carriage\r\nreturns\r\n", "p$$w(d)$(HOME)", "$HOME ${HOME}", "$", "`id`", "it's \"quoted\"", `back\slash`,
		"-rf", "--config=/etc/passwd", "a=b=c", "日本語 🚀", strings.Repeat("x", 100<<10),
	}
	var script []string
	j := testbed.WithoutSources(bed.Job())
	for i, value := range values {
		name := fmt.Sprintf("WORST_%d", i)
		variable(j, name, value)
		script = append(script, fmt.Sprintf(`printf '%%s' "$%s" | sha256sum`, name))
	}
	j.Steps[0].Script = script
	j.Info.Name = "build: [a, b] 1/3 日本語 " + strings.Repeat("ü", 200)
	j.Git.Ref = "feature/Ünïcödé-🚀/" + strings.Repeat("x", 200)
	j.Info.ProjectFullPath = strings.Repeat("a/", 127) + "b"
	out := runJob(t, j, runner.Options{})
	wantPassed(t, out)
	for i, value := range values {
		sum := sha256.Sum256([]byte(value))
		if !strings.Contains(out.Log, hex.EncodeToString(sum[:])) {
			t.Errorf("value %d, %.40q, does not arrive", i, value)
		}
	}
	wantNoPods(t, j.ID)
}

// Leftovers in a namespace that a job has chosen are found where the driver may
// look into all namespaces, and in those it knows where it may not.
func TestReapInANamespaceOfAJobsChoice(t *testing.T) {
	secondNamespace(t)
	j := testbed.WithoutSources(bed.Job("true"))
	client := admin(t)
	config, err := bed.WriteConfig(testbed.Namespace, "")
	if err != nil {
		t.Fatal(err)
	}
	replaceInFile(t, config, "pull_policy =", "namespace_overwrite_allowed = \"^ci-\"\npull_policy =")
	// A job whose cleanup never came: prepare by hand, as for a dead runner.
	file := filepath.Join(t.TempDir(), "job.json")
	if err := os.WriteFile(file, []byte(fmt.Sprintf(`{"id": %d, "image": {"name": %q}, "runner_info": {"timeout": 600}}`, j.ID, bed.Image("busybox"))), 0o600); err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(limited(t, jobLimit), bed.Driver, "prepare", "--config", config, "--job", file, "--runner", "leftover1")
	command.Env = append(os.Environ(), "CUSTOM_ENV_KUBERNETES_NAMESPACE_OVERWRITE=ci-two")
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("prepare: %v\n%s", err, output)
	}
	pod, err := podOf(limited(t, time.Minute), client, j.ID)
	if err != nil || pod == nil || pod.Namespace != "ci-two" {
		t.Fatalf("the Pod: %+v, %v", pod, err)
	}
	pod.Annotations["tenant-executor.socialweb.computer/expires"] = "2020-01-01T00:00:00Z"
	if _, err := client.Pods(pod.Namespace).Update(context.Background(), pod, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	reap := func(config string) string {
		output, err := exec.CommandContext(limited(t, time.Minute), bed.Driver, "reap", "--config", config, "--runner", "leftover1").CombinedOutput()
		if err != nil {
			t.Errorf("reap: %v\n%s", err, output)
		}
		return string(output)
	}
	// The example's role is bound in single namespaces, so the driver has to
	// remember which of them jobs have chosen.
	if output := reap(config); !strings.Contains(output, pod.Name) || !strings.Contains(output, "expired") || !strings.Contains(output, "may not list") {
		t.Errorf("reap does not find Pod %s, or does not say where it looked:\n%s", pod.Name, output)
	}
	wantNoPods(t, j.ID)
}
