package main_test

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gitlab.com/gitlab-org/gitlab-runner/executors/custom/api"
)

func TestConfigAnswersWithJSONAlone(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	got := h.stage("config")
	if got.code != 0 || got.stderr != "" {
		t.Fatalf("exit code %d, stderr %q", got.code, got.stderr)
	}
	decoder := json.NewDecoder(strings.NewReader(got.stdout))
	decoder.DisallowUnknownFields()
	var answer api.ConfigExecOutput
	if err := decoder.Decode(&answer); err != nil {
		t.Fatalf("%v in %s", err, got.stdout)
	}
	if rest, _ := io.ReadAll(decoder.Buffered()); len(bytes.TrimSpace(rest)) > 0 {
		t.Errorf("after the JSON comes %q", rest)
	}
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	if *answer.Hostname != host || *answer.BuildsDir != "/builds" || *answer.CacheDir != "/cache" || *answer.Shell != "bash" ||
		*answer.BuildsDirIsShared || *answer.Driver.Name != "tenant-executor" || *answer.Driver.Version == "" {
		t.Errorf("got %s", got.stdout)
	}
	if name := (*answer.JobEnv)["TENANT_EXECUTOR_POD"]; !regexp.MustCompile(`^job-4711-[0-9a-f]{8}-[0-9a-f]{6}$`).MatchString(name) {
		t.Errorf("the Pod's name is %q", name)
	}
	if n := len(h.server.Requests()); n != 0 {
		t.Errorf("config made %d requests", n)
	}
}

// Two attempts have two Pods.
func TestConfigNamesEachAttempt(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	if first, second := h.stage("config"), h.stage("config"); first.stdout == second.stdout {
		t.Errorf("both attempts got %s", first.stdout)
	}
}

func TestConfigWithoutAJob(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		change  func(*harness)
		message string
	}{
		{"no file named", func(h *harness) { delete(h.env, "JOB_RESPONSE_FILE") },
			"ERROR: JOB_RESPONSE_FILE is not set and no --job FILE is given"},
		{"no such file", func(h *harness) { h.env["JOB_RESPONSE_FILE"] = "/nowhere/response.json" },
			"ERROR: the job: open /nowhere/response.json: no such file or directory"},
		{"no id", func(h *harness) { delete(h.job, "id") },
			"ERROR: the job in FOLDER/response.json: reading the job response: "},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t)
			test.change(h)
			got := h.stage("config")
			if got.code != systemCode || got.stdout != "" || !strings.HasPrefix(h.plain(got.stderr), test.message) {
				t.Errorf("exit code %d, stdout %q, stderr %q", got.code, got.stdout, h.plain(got.stderr))
			}
			if !strings.HasSuffix(got.stderr, "\nRun the stage from GitLab Runner, or by hand with --job FILE (see --help).\n") {
				t.Errorf("no remedy in %q", got.stderr)
			}
		})
	}
}

// A wrong file is refused with all that is wrong in it, before anything else
// happens.
func TestConfigurationErrors(t *testing.T) {
	t.Parallel()
	const remedy = "The operator has to correct the configuration file."
	tests := []struct {
		name   string
		change func(*harness)
	}{
		{"unknown keys", func(h *harness) {
			h.settings["kubernetes.helper_imgae"] = "x"
			h.settings["wait.zzzzzzzzzz"] = "1m"
		}},
		{"bad values", func(h *harness) {
			h.settings["cluster.url"] = "http://10.0.0.1:6443"
			h.settings["kubernetes.namespace"] = "No Space"
			h.settings["kubernetes.cpu_request"] = "1,5"
			h.settings["kubernetes.pull_policy"] = "sometimes"
			h.settings["wait.node"] = "0s"
			h.settings["job.shell"] = "pwsh"
		}},
		{"nothing set", func(h *harness) { h.settings = map[string]string{} }},
		{"no such file", func(h *harness) { h.env["TENANT_EXECUTOR_CONFIG"] = "/nowhere/driver.toml" }},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t)
			test.change(h)
			got := h.stage("config")
			h.expect(got, systemCode, "", golden(t, "settings "+test.name, h.plain(got.stderr)))
			if !strings.HasSuffix(got.stderr, "\n"+remedy+"\n") {
				t.Error("the remedy is missing")
			}
			if got := h.stage("prepare"); got.code != systemCode {
				t.Errorf("prepare ended with %d", got.code)
			}
			if n := len(h.server.Requests()); n != 0 {
				t.Errorf("%d requests were made", n)
			}
		})
	}
}

// golden is a text that people read, kept in a file. With -update the file is
// written anew from got.
func golden(t *testing.T, name, got string) string {
	t.Helper()
	path := filepath.Join("testdata", strings.ReplaceAll(name, " ", "-")+".txt")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestExitCodesOfTheEnvironment(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		build, system string
		want          int
	}{
		{"3", "4", 4},
		{"3", "0", 2},
		{"9", "9", 9},
		{"", "", 2},
	} {
		h := newHarness(t)
		h.env["BUILD_FAILURE_EXIT_CODE"], h.env["SYSTEM_FAILURE_EXIT_CODE"] = test.build, test.system
		delete(h.env, "JOB_RESPONSE_FILE")
		if got := h.stage("config"); got.code != test.want {
			t.Errorf("codes %q and %q: ended with %d, want %d\n%s", test.build, test.system, got.code, test.want, got.stderr)
		}
	}
}

// By hand, outside the runner, the codes are the runner's own.
func TestUsageErrors(t *testing.T) {
	t.Parallel()
	tests := map[string][]string{
		"tenant-executor: tenant-executor prepare takes no arguments; it got \"now\". The runner's config.toml has them in prepare_args\n": {"prepare", "now"},
		"tenant-executor: run takes a script file and a stage name, such as: run script.sh build_script; it got [\"x\"]\n":                 {"run", "x"},
		"tenant-executor: tenant-executor cleanup has no flag --fast; tenant-executor cleanup --help lists them\n":                         {"cleanup", "--fast"},
	}
	for want, args := range tests {
		h := newHarness(t)
		got := h.stage(args...)
		h.expect(got, systemCode, "", want)
	}
}

func TestVersion(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	got := h.stage("version")
	if diff := cmp.Diff("", got.stderr); diff != "" || got.code != 0 || !strings.HasPrefix(got.stdout, "tenant-executor ") {
		t.Errorf("got %+v", got)
	}
}
