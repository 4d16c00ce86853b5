package main_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// canaryRunnerToken is the secret part of runners' tokens.
const canaryRunnerToken = "canary-runner-token-2846"

// inherits has the driver inherit from a config.toml with two runners, of which
// the first is the harness's own.
func (h *harness) inherits(global, section string) {
	h.t.Helper()
	path := h.write("config.toml", global+`
[[runners]]
  name = "own"
  token = "glrt-runner-ab`+canaryRunnerToken+`"
  executor = "custom"
  [runners.custom]
    run_exec = "/x"
  [runners.kubernetes]
`+section+`
[[runners]]
  name = "other"
  token = "glrt-othertoke`+canaryRunnerToken+`"
  executor = "kubernetes"
  [runners.kubernetes]
    namespace = "others"
`)
	h.settings["inherit.config_file"] = path
	h.t.Cleanup(func() {
		for _, r := range h.server.Requests() {
			if strings.Contains(r.Query+r.Body, canaryRunnerToken) {
				h.t.Error("the cluster was told the runner's token")
			}
		}
	})
}

func TestInherit(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.answerSetup()
	delete(h.settings, "kubernetes.namespace")
	h.settings["kubernetes.cpu_limit"] = "2"
	h.inherits("concurrent = 10", `
    namespace = "inherited"
    image = "debian:12"
    cpu_limit = "1"
    memory_limit = "1Gi"
    poll_timeout = 600
    bearer_token_overwrite_allowed = false
    [runners.kubernetes.node_selector]
      pool = "ci"
`)
	delete(h.job, "image")
	got := h.stage("prepare")
	if got.code != 0 || got.stderr != "" || strings.Contains(got.stdout, "poll_timeout") {
		t.Fatalf("prepare ended with %d: %s%s", got.code, got.stdout, got.stderr)
	}
	pods := h.server.Pods()
	if len(pods) != 1 || pods[0].Namespace != "inherited" {
		t.Fatalf("the Pods are %+v", pods)
	}
	spec := pods[0].Spec
	limits := spec.Containers[0].Resources.Limits
	if spec.Containers[0].Image != "debian:12" || limits.Cpu().String() != "2" || limits.Memory().String() != "1Gi" || spec.NodeSelector["pool"] != "ci" {
		t.Errorf("the Pod's spec is %+v", spec)
	}
	if got := h.stage("cleanup"); got.code != 0 || got.stderr != "" {
		t.Errorf("cleanup ended with %d: %s", got.code, got.stderr)
	}
	if pods := h.server.Pods(); len(pods) != 0 {
		t.Errorf("cleanup has left %d Pods", len(pods))
	}
}

func TestInheritRefuses(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		change func(*harness)
		want   string
	}{
		{"no such file", func(h *harness) { h.settings["inherit.config_file"] = "/nowhere/config.toml" }, "open /nowhere/config.toml: no such file"},
		{"a relative path", func(h *harness) { h.settings["inherit.config_file"] = "driver.toml" }, `inherit.config_file is "driver.toml": write the whole path`},
		{"no TOML", func(h *harness) {
			h.settings["inherit.config_file"] = h.write("config.toml", "token = "+canaryRunnerToken)
		}, "line 1"},
		{"another runner's file", func(h *harness) { h.env["CUSTOM_ENV_CI_RUNNER_SHORT_TOKEN"] = "stranger1" },
			`has no runner with the short token "stranger1"; it has own (runner-ab), other (othertoke)`},
		{"a value of another type", func(h *harness) { h.inherits("", "memory_limit = 2") }, "runner own (runner-ab) in FOLDER/config.toml: memory_limit: cannot decode TOML integer as a string"},
		{"a value that cannot be", func(h *harness) { h.inherits("", "cpu_limit = \"lots\"") }, `kubernetes.cpu_limit is "lots"`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t)
			h.inherits("", "")
			test.change(h)
			got := h.stage("config")
			if got.code != systemCode || got.stdout != "" || !strings.Contains(h.plain(got.stderr), test.want) || strings.Contains(got.stderr, canaryRunnerToken) {
				t.Errorf("config ended with %d: %s%s; want an error with %q", got.code, got.stdout, got.stderr, test.want)
			}
		})
	}
}

// A pipeline that names another runner would get that one's settings, and its
// Pods the other's labels: it is refused, however many runners there are.
func TestJobCannotChooseItsRunner(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, executor, forged string
	}{
		{"two that the driver serves", "custom", "runner-ab"},
		{"one", "shell", "runner-ab"},
		{"none of that name", "shell", "stranger1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t)
			h.answerSetup()
			h.inherits("", "")
			text, err := os.ReadFile(h.settings["inherit.config_file"])
			if err != nil {
				t.Fatal(err)
			}
			h.write("config.toml", strings.Replace(string(text), `"kubernetes"`, `"`+test.executor+`"`, 1))
			h.job["variables"] = append(h.job["variables"].([]any), map[string]any{"key": "CI_RUNNER_SHORT_TOKEN", "value": test.forged})
			h.env["CUSTOM_ENV_CI_RUNNER_SHORT_TOKEN"] = test.forged
			for _, stage := range []string{"config", "prepare"} {
				if got := h.stage(stage); got.code != buildCode || !strings.Contains(got.stdout+got.stderr, "CI_RUNNER_SHORT_TOKEN") {
					t.Errorf("%s ended with %d: %s%s", stage, got.code, got.stdout, got.stderr)
				}
			}
			if n := len(h.server.Pods()); n != 0 {
				t.Errorf("%d Pods were made", n)
			}
		})
	}
}

// What the operator has to know goes to the runner's log, once a day.
func TestWarningsOfTheRunnersFile(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.inherits("concurrent = 50", "bearer_token = \"x\"")
	want := []string{
		"concurrent = 50 in FOLDER/config.toml is more than tenant.ceiling = 10 in the driver's configuration",
		"of runner own (runner-ab) in FOLDER/config.toml these keys are not carried over: bearer_token (the driver shows a client certificate",
	}
	first := h.stage("cleanup")
	for _, text := range want {
		if first.code != 0 || !strings.Contains(h.plain(first.stderr), "WARNING: "+text) {
			t.Errorf("cleanup ended with %d, and its stderr lacks %q:\n%s", first.code, text, h.plain(first.stderr))
		}
	}
	if second := h.stage("cleanup"); second.code != 0 || second.stderr != "" {
		t.Errorf("the second cleanup ended with %d: %s", second.code, second.stderr)
	}
	h.inherits("concurrent = 1", "bearer_token = \"x\"")
	third := h.plain(h.stage("cleanup").stderr)
	if strings.Count(third, "WARNING") != 1 || !strings.Contains(third, "concurrent = 1 in FOLDER/config.toml lets one job run at once, although tenant.ceiling = 10") {
		t.Errorf("after a change: %s", third)
	}
}

// Another user's file is told as such.
func TestRunnersFileOfAnotherUser(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can run the driver as another user")
	}
	const nobody = 65534
	h := newHarness(t)
	h.inherits("", "")
	h.handOver()
	// The other user needs all but that file.
	folder, err := os.MkdirTemp("", "other-user")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	program, err := os.ReadFile(os.Getenv(builtPath))
	if err != nil {
		t.Fatal(err)
	}
	secret := filepath.Join(folder, "config.toml")
	driver := strings.Replace(h.config(), h.settings["inherit.config_file"], secret, 1)
	if err := os.Chmod(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{"program": program, "driver.toml": []byte(driver), "job.json": []byte(`{"id": 1}`), "config.toml": []byte("x")} {
		mode := os.FileMode(0o755)
		if name == "config.toml" {
			mode = 0o600
		}
		if err := os.WriteFile(filepath.Join(folder, name), text, mode); err != nil {
			t.Fatal(err)
		}
	}
	command := exec.Command(filepath.Join(folder, "program"), "config", "--config", filepath.Join(folder, "driver.toml"), "--job", filepath.Join(folder, "job.json"))
	command.Dir = folder
	command.Env = []string{"CUSTOM_ENV_CI_RUNNER_SHORT_TOKEN=runner-ab"}
	command.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	var stderr bytes.Buffer
	command.Stderr = &stderr
	if err := command.Run(); err == nil {
		t.Error("the driver can read the file")
	}
	for _, part := range []string{"permission denied", "it belongs to user 0, with mode 0600, and this is user 65534", "tenant-executor migrate"} {
		if !strings.Contains(stderr.String(), part) {
			t.Errorf("the error lacks %q: %s", part, stderr.String())
		}
	}
}
