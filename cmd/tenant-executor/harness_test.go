package main_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/socialweb-computer/tenant-executor/kube/faultserver"
)

// Exit codes of the contract, as no runner sets them: a driver that has them
// built in fails.
const (
	buildCode  = 77
	systemCode = 88
)

// What must never be seen by anybody but the job's own script.
const (
	canaryToken    = "canary-job-token-7391"
	canaryVariable = "canary-variable-5527"
	canaryScript   = "canary-script-text-9164"
)

// Names of things in all tests.
const (
	namespace = "ci"
	node      = "n1"
)

// harness is one job on one runner: the server, the runner's temporary folder
// and its environment.
type harness struct {
	t      *testing.T
	server *faultserver.Server
	folder string
	// response is the name of the file with the job.
	response string
	settings map[string]string
	// lists are settings that are lists.
	lists map[string][]string
	job   map[string]any
	env   map[string]string
}

// newHarness is a job with an image, on a cluster whose one node takes Pods at
// once.
func newHarness(t *testing.T) *harness {
	t.Helper()
	server := faultserver.Start(t)
	server.SetNode(node, true)
	server.OnCreate(faultserver.Scheduled(node), faultserver.Running())
	files := server.Credentials(t)
	h := &harness{t: t, server: server, folder: t.TempDir(), response: "response.json"}
	h.settings = map[string]string{
		"cluster.url":             server.URL(),
		"cluster.ca_file":         files.CAFile,
		"cluster.cert_file":       files.CertFile,
		"cluster.key_file":        files.KeyFile,
		"kubernetes.namespace":    namespace,
		"kubernetes.helper_image": "helper:v19.4.0",
		"run.poll":                "1s",
		"state.dir":               filepath.Join(h.folder, "state"),
		"run.node_lost":           "1s",
		"run.cancel_grace":        "3s",
		// A busy machine must not look like a silent connection.
		"run.silence": "5m",
	}
	h.job = map[string]any{
		"id": 4711, "token": canaryToken,
		"job_info": map[string]any{"name": "unit", "project_id": 7, "project_name": "demo", "project_full_path": "group/demo"},
		"git_info": map[string]any{
			"repo_url": "https://gitlab-ci-token:" + canaryToken + "@gitlab.example.com/group/demo.git", "ref": "main", "sha": "3f477c1c",
		},
		"runner_info": map[string]any{"timeout": 3600},
		"variables": []any{
			map[string]any{"key": "CI_JOB_TOKEN", "value": canaryToken, "masked": true},
			map[string]any{"key": "PASSWORD", "value": canaryVariable, "masked": true},
		},
		"steps":       []any{map[string]any{"name": "script", "script": []string{"echo " + canaryScript}}},
		"image":       map[string]any{"name": "debian:12"},
		"credentials": []any{map[string]any{"type": "registry", "url": "registry.example.com", "username": "u", "password": canaryToken}},
	}
	h.env = map[string]string{
		"PATH": os.Getenv("PATH"),
		// The race detector would sleep for a second at the end of each stage.
		"GORACE":                              "atexit_sleep_ms=0",
		"TMPDIR":                              h.folder,
		"HOME":                                h.folder,
		"TENANT_EXECUTOR_CONFIG":              filepath.Join(h.folder, "driver.toml"),
		"BUILD_FAILURE_EXIT_CODE":             fmt.Sprint(buildCode),
		"SYSTEM_FAILURE_EXIT_CODE":            fmt.Sprint(systemCode),
		"BUILD_EXIT_CODE_FILE":                filepath.Join(h.folder, "build_exit_code"),
		"JOB_RESPONSE_FILE":                   filepath.Join(h.folder, "response.json"),
		"CUSTOM_ENV_CI_JOB_ID":                "1", // a pipeline can set it
		"CUSTOM_ENV_CI_JOB_IMAGE":             "debian:12",
		"CUSTOM_ENV_CI_RUNNER_SHORT_TOKEN":    "runner-ab",
		"CUSTOM_ENV_CI_CONCURRENT_PROJECT_ID": "0",
		"CUSTOM_ENV_CI_JOB_TOKEN":             canaryToken,
		"CUSTOM_ENV_PASSWORD":                 canaryVariable,
		// What a host may have set must neither lead astray nor be printed.
		"KUBECONFIG":  "/nowhere/kubeconfig",
		"HTTPS_PROXY": "http://127.0.0.1:1",
		"HTTP_PROXY":  "http://127.0.0.1:1",
		"NO_PROXY":    "",
	}
	t.Cleanup(h.checkSecrets)
	return h
}

// config is the configuration file with the settings.
func (h *harness) config() string {
	var b strings.Builder
	last := ""
	written := map[string]string{}
	for path, value := range h.settings {
		written[path] = fmt.Sprintf("%q", value)
		if value == "true" || value == "false" || path == "tenant.ceiling" || path == "tenant.pods_per_node" {
			written[path] = value
		}
	}
	for path, list := range h.lists {
		written[path] = strings.ReplaceAll(fmt.Sprintf("%q", list), `" "`, `", "`)
	}
	for _, path := range slices.Sorted(maps.Keys(written)) {
		table, name, _ := strings.Cut(path, ".")
		if table != last {
			fmt.Fprintf(&b, "[%s]\n", table)
			last = table
		}
		fmt.Fprintf(&b, "%s = %s\n", name, written[path])
	}
	return b.String()
}

// write writes a file into the runner's temporary folder.
func (h *harness) write(name, text string) string {
	h.t.Helper()
	path := filepath.Join(h.folder, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		h.t.Fatal(err)
	}
	return path
}

// handOver writes what the runner hands over before it calls a stage.
func (h *harness) handOver() {
	h.t.Helper()
	h.write("driver.toml", h.config())
	job, err := json.Marshal(h.job)
	if err != nil {
		h.t.Fatal(err)
	}
	h.write(h.response, string(job))
}

// running is a stage that runs.
type running struct {
	h              *harness
	command        *exec.Cmd
	stdout, stderr *output
	ended          chan error
}

// stageLimit is when a stage that should have ended is killed. It only decides
// how long a broken driver takes to fail its test.
const stageLimit = 3 * time.Minute

// result is a stage that has ended.
type result struct {
	code           int
	stdout, stderr string
}

// start starts a stage as the runner does (executors/custom/command): no
// shell, the temporary folder as working folder, nothing on stdin, pipes for
// the output, a process group of its own.
func (h *harness) start(args ...string) *running {
	h.t.Helper()
	stdout := newOutput()
	r := h.startWith(stdout, args...)
	r.stdout = stdout
	return r
}

// startWith is start with another place for stdout; checkOutput cannot look at
// it then.
func (h *harness) startWith(stdout io.Writer, args ...string) *running {
	h.t.Helper()
	h.handOver()
	r := &running{h: h, command: exec.Command(os.Getenv(builtPath), args...), stdout: newOutput(), stderr: newOutput(), ended: make(chan error, 1)}
	r.command.Dir = h.folder
	r.command.Stdout, r.command.Stderr = stdout, r.stderr
	r.command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	for name, value := range h.env {
		r.command.Env = append(r.command.Env, name+"="+value)
	}
	if err := r.command.Start(); err != nil {
		h.t.Fatal(err)
	}
	kill := func() { _ = syscall.Kill(-r.command.Process.Pid, syscall.SIGKILL) }
	late := time.AfterFunc(stageLimit, kill)
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.ended <- r.command.Wait()
		late.Stop()
		if out, kept := stdout.(*output); kept {
			out.end()
		}
	}()
	h.t.Cleanup(func() {
		select {
		case <-done:
		default:
			kill()
			<-done
		}
	})
	return r
}

// terminate sends TERM to the process group, as the runner does.
func (r *running) terminate() {
	r.h.t.Helper()
	if err := syscall.Kill(-r.command.Process.Pid, syscall.SIGTERM); err != nil {
		r.h.t.Fatalf("sending TERM: %v", err)
	}
}

func (r *running) wait() result {
	r.h.t.Helper()
	err := <-r.ended
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		r.h.t.Fatal(err)
	}
	got := result{code: r.command.ProcessState.ExitCode(), stdout: r.stdout.String(), stderr: r.stderr.String()}
	r.h.checkOutput(got)
	return got
}

// stage runs a stage to its end.
func (h *harness) stage(args ...string) result {
	h.t.Helper()
	return h.start(args...).wait()
}

// run runs a script as a stage.
func (h *harness) run(stage, script string) result {
	h.t.Helper()
	return h.startRun(stage, script).wait()
}

func (h *harness) startRun(stage, script string) *running {
	h.t.Helper()
	return h.start("run", h.write("script", script), stage)
}

// noScript is what the driver leaves for the runner where the job has failed and no
// script has ended: GitLab hears of no exit code then.
const noScript = "0\n"

// expectNoScript looks at the exit code that the runner is handed by a stage in which
// no script ended: "no code" with a build failure, nothing with a system failure.
func (h *harness) expectNoScript(driver int) {
	h.t.Helper()
	want := ""
	if driver == buildCode {
		want = noScript
	}
	if got := h.exitCodeFile(); got != want {
		h.t.Errorf("the runner was handed %q, want %q: no script has ended", got, want)
	}
}

// exitCodeFile is what the driver has left for the runner, "" if nothing.
func (h *harness) exitCodeFile() string {
	h.t.Helper()
	text, err := os.ReadFile(h.env["BUILD_EXIT_CODE_FILE"])
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		h.t.Fatal(err)
	}
	return string(text)
}

// chatter is what libraries and the Go runtime write and a job log must not
// show.
func chatter() *regexp.Regexp {
	return regexp.MustCompile(`(?m)^[EWIF]\d{4} |goroutine \d+|panic:|DATA RACE|\.go:\d+`)
}

// chatterSize is how much of an output is searched for chatter, at its beginning
// and at its end: the search is slow, and some outputs are large.
const chatterSize = 256 << 10

// checkOutput looks at what nobody may see in a job log.
func (h *harness) checkOutput(r result) {
	h.t.Helper()
	text := r.stdout + r.stderr
	for _, part := range []string{text[:min(len(text), chatterSize)], text[max(len(text)-chatterSize, 0):]} {
		if found := chatter().FindString(part); found != "" {
			h.t.Errorf("the output has %q in it:\n%s", found, part)
		}
	}
	for _, secret := range []string{canaryToken, canaryVariable, canaryScript} {
		if strings.Contains(text, secret) {
			h.t.Errorf("the output shows a secret:\n%s", text)
		}
	}
}

// checkSecrets looks at what the cluster was told, in addresses, objects and
// commands. Scripts hold secrets and go in on stdin alone.
func (h *harness) checkSecrets() {
	h.t.Helper()
	var told strings.Builder
	for _, r := range h.server.Requests() {
		fmt.Fprintln(&told, r.Query, r.Body)
	}
	for _, e := range h.server.Execs() {
		fmt.Fprintln(&told, e.Args)
	}
	pods, err := json.Marshal(h.server.Pods())
	if err != nil {
		h.t.Fatal(err)
	}
	told.Write(pods)
	for _, secret := range []string{canaryToken, canaryVariable, canaryScript} {
		if strings.Contains(told.String(), secret) {
			h.t.Errorf("the cluster was told a secret:\n%s", told.String())
		}
	}
}

// plain is a text without colours, and with a word for each part that differs
// from run to run.
func (h *harness) plain(text string) string {
	text = regexp.MustCompile(`\x1b\[[0-9;]*m`).ReplaceAllString(text, "")
	text = strings.ReplaceAll(text, strings.TrimPrefix(h.server.URL(), "https://"), "SERVER")
	text = strings.ReplaceAll(text, h.folder, "FOLDER")
	text = regexp.MustCompile(`job-4711-[0-9a-f]{8}-[0-9a-f]{6}`).ReplaceAllString(text, "POD")
	text = regexp.MustCompile(`(ready for|for) \d+ s\b`).ReplaceAllString(text, "$1 N s")
	text = regexp.MustCompile(`\b(node|start|exec) (\d+m)?\d+s\b`).ReplaceAllString(text, "$1 N")
	return regexp.MustCompile(`127\.0\.0\.1:\d+->`).ReplaceAllString(text, "LOCAL->")
}

// expect compares a stage's exit code and its whole output.
func (h *harness) expect(got result, code int, stdout, stderr string) {
	h.t.Helper()
	if got.code != code {
		h.t.Errorf("exit code %d, want %d", got.code, code)
	}
	if diff := cmp.Diff(stdout, h.plain(got.stdout)); diff != "" {
		h.t.Errorf("stdout (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(stderr, h.plain(got.stderr)); diff != "" {
		h.t.Errorf("stderr (-want +got):\n%s", diff)
	}
}
