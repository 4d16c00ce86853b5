package main_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/socialweb-computer/tenant-executor/executor/settings"
)

// migratable is a config.toml with what can become of a key.
const migratable = `concurrent = 20

[[runners]]
  name = "big \u001b[31m runner"
  url = "https://gitlab.example.com"
  token = "glrt-t3_runner-ab` + canaryRunnerToken + `"
  executor = "kubernetes"
  cache_dir = "/caches"
  [runners.kubernetes]
    host = "https://127.0.0.1:36443"
    ca_file = "/etc/x/ca.crt"
    cert_file = "/etc/x/client.crt"
    key_file = "/etc/x/client.key"
    bearer_token = "` + canaryRunnerToken + `"
    bearer_token_overwrite_allowed = false
    helper_image = "helper:v19.4.0"
    namespace = ""
    cpu_limit = "2"
    cpu_limit_overwrite_max_allowed = "4"
    memory_limit = 2
    poll_timeout = 600
    [runners.kubernetes.pod_labels]
      team = "platform"
      "job.runner.gitlab.com/pod" = "x"
    [runners.kubernetes.autoscaler]
      max_pause_pods = 3
      [[runners.kubernetes.autoscaler.policy]]
        periods = ["* * 8-18 * * mon-fri *"]
        idle_count = 2
`

func TestMigrate(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	from := h.write("config.toml", migratable)
	got := h.stage("migrate", "--config-file", from)
	// It takes neither memory_limit nor the policy's periods.
	h.expect(got, 1, golden(t, "migrate", h.plain(got.stdout)), "")
	asJSON := h.stage("migrate", "--config-file", from, "--output", "json")
	var all []struct {
		Runner, DriverConfig string
		Keys                 []struct{ Key, State, Note string }
	}
	if err := json.Unmarshal([]byte(asJSON.stdout), &all); err != nil || len(all) != 1 || len(all[0].Keys) < 10 {
		t.Errorf("%v in %s", err, asJSON.stdout)
	}
	for _, text := range []string{got.stdout, asJSON.stdout} {
		if strings.Contains(text, canaryRunnerToken) || strings.Contains(text, "\x1b") {
			t.Errorf("a token, or a terminal's control code, is shown:\n%q", text)
		}
	}
	if n := len(h.server.Requests()); n != 0 {
		t.Errorf("%d requests were made", n)
	}
}

// A file is written where it is asked for, and never over another unasked.
func TestMigrateWrites(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	from := h.write("config.toml", strings.Replace(strings.Replace(migratable, "memory_limit = 2\n", "", 1), "* * 8-18 * * mon-fri *", "* 8-18 * * mon-fri", 1))
	to := filepath.Join(h.folder, "made.toml")
	args := []string{"migrate", "--config-file", from, "--write", to}
	if got := h.stage(args...); got.code != 0 || got.stderr != "" {
		t.Fatalf("ended with %d: %s", got.code, got.stderr)
	}
	first, err := os.ReadFile(to)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := settings.Parse(to, first); err != nil {
		t.Errorf("%v in\n%s", err, first)
	}
	if info, err := os.Stat(to); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	h.write("made.toml", "mine")
	h.expect(h.stage(args...), systemCode, "", "tenant-executor: FOLDER/made.toml is there already, and nothing was written; add --overwrite to replace it\n")
	if text, err := os.ReadFile(to); err != nil || string(text) != "mine" {
		t.Errorf("the file holds %q, %v", text, err)
	}
	if got := h.stage(append(args, "--overwrite")...); got.code != 0 {
		t.Errorf("ended with %d: %s", got.code, got.stderr)
	}
	if text, err := os.ReadFile(to); err != nil || string(text) != string(first) {
		t.Errorf("the file holds %q, %v", text, err)
	}
	if left, err := filepath.Glob(filepath.Join(h.folder, ".new-*")); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestMigrateRefuses(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	from := h.write("config.toml", migratable)
	two := h.write("two.toml", migratable+strings.ReplaceAll(strings.Replace(migratable, "concurrent = 20", "", 1), "runner-ab", "runner-cd"))
	none := h.write("none.toml", "[[runners]]\nname = \"x\"\nexecutor = \"docker\"\n")
	out := filepath.Join(h.folder, "out.toml")
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"--config-file", "/nowhere"}, "open /nowhere: no such file"},
		{[]string{"--config-file", none}, "no runner in it has settings of the kubernetes executor"},
		{[]string{"--config-file", from, "--runner", "stranger"}, `"stranger"`},
		{[]string{"--config-file", two, "--write", out}, "has several runners"},
		{[]string{"--config-file", from, "--output", "yaml"}, `--output is "yaml": use text or json`},
		{[]string{"--config-file", from, "--overwrite"}, "--overwrite goes with --write"},
		{[]string{"--config-file", "config.toml", "--inherit"}, "write the whole path"},
		{[]string{"--config-file", from, "--write", "/nowhere/x.toml"}, "was not written"},
	} {
		got := h.stage(append([]string{"migrate"}, test.args...)...)
		if got.code != systemCode || got.stdout != "" || !strings.Contains(got.stderr, test.want) {
			t.Errorf("%q ended with %d: %s%s; want an error with %q", test.args, got.code, got.stdout, got.stderr, test.want)
		}
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("a file was written all the same")
	}
}
