package main_test

import (
	"bytes"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/socialweb-computer/tenant-executor/kube/faultserver"
)

// script is what the runner would write: secrets in clear text.
const script = "#!/usr/bin/env bash\nexport CI_JOB_TOKEN=" + canaryToken + "\necho " + canaryScript + "\n"

func exits(code int) func(*faultserver.Exec) { return func(e *faultserver.Exec) { e.Exit(code) } }

func TestRunGivesTheScriptsExitCode(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	p := h.play(nil)
	h.theJob()
	for _, code := range []int{0, 1, 42, 77, 88, 137, 255} {
		p.script = exits(code)
		h.write("build_exit_code", "99\n") // of an earlier stage
		got := h.run("build_script", script)
		wantCode, wantFile := buildCode, strconv.Itoa(code)+"\n"
		if code == 0 {
			wantCode, wantFile = 0, ""
		}
		h.expect(got, wantCode, "", "")
		if file := h.exitCodeFile(); file != wantFile {
			t.Errorf("exit code %d: the runner was handed %q", code, file)
		}
	}
	for _, one := range p.starts() {
		if diff := cmp.Diff(stageStart{"build", script}, one, cmp.AllowUnexported(stageStart{})); diff != "" {
			t.Error(diff)
		}
	}
}

// Each stage belongs in one container; one that nobody knows is the job's own.
func TestRunChoosesTheContainer(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	p := h.play(nil)
	h.theJob()
	want := map[string]string{
		"prepare_script": "helper", "get_sources": "helper", "clear_worktree": "helper", "restore_cache": "helper",
		"download_artifacts": "helper", "archive_cache": "helper", "archive_cache_on_failure": "helper",
		"upload_artifacts_on_success": "helper", "upload_artifacts_on_failure": "helper", "cleanup_file_variables": "helper",
		"build_script": "build", "step_script": "build", "step_release": "build", "after_script": "build", "something_new": "build",
	}
	for stage, container := range want {
		h.expect(h.run(stage, script), 0, "", "")
		all := p.starts()
		if got := all[len(all)-1].container; got != container {
			t.Errorf("%s ran in %s, want %s", stage, got, container)
		}
	}
}

// Output passes byte for byte, whatever is in it and however much.
func TestRunPassesOutputOn(t *testing.T) {
	t.Parallel()
	var text bytes.Buffer
	for i := range 256 {
		text.WriteByte(byte(i))
	}
	text.WriteString("\rprogress 10%\rprogress 20%\x1b[0Ksection_start:1:x\r\x1b[0K")
	text.Write(bytes.Repeat([]byte{'x'}, 200<<10)) // a long line without an end
	text.Write(bytes.Repeat([]byte("line\n"), 1<<20))
	h := newHarness(t)
	h.play(func(e *faultserver.Exec) {
		_, _ = io.Copy(e.Stdout, struct{ io.Reader }{bytes.NewReader(text.Bytes())})
		e.Exit(1)
	})
	h.theJob()
	got := h.run("build_script", script)
	if got.code != buildCode || got.stderr != "" {
		t.Errorf("exit code %d, stderr %q", got.code, got.stderr)
	}
	if got.stdout != text.String() {
		t.Errorf("%d bytes came out, %d went in", len(got.stdout), text.Len())
	}
}

// A script that fits in no argument list.
func TestRunSendsALargeScript(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	p := h.play(nil)
	h.theJob()
	large := script + strings.Repeat("# "+strings.Repeat("x", 61)+"\n", 100_000)
	h.expect(h.run("build_script", large), 0, "", "")
	if all := p.starts(); len(all) != 1 || all[0].script != large {
		t.Errorf("%d scripts arrived, or not whole", len(all))
	}
}

// Without config's hint the Pod is found by its labels.
func TestRunFindsThePod(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	p := h.play(nil)
	h.expect(h.run("build_script", script), systemCode, lines(
		"ERROR: job 4711 has no Pod in namespace ci",
		"Retry the job. If it happens again, the operator has to find who removes the Pods."), "")
	h.theJob()
	h.expect(h.run("build_script", script), 0, "", "")
	h.env["TENANT_EXECUTOR_POD"] = h.server.Pods()[0].Name
	before := len(h.server.Requests())
	h.expect(h.run("build_script", script), 0, "", "")
	if n := len(h.server.Requests()) - before; n != 1 {
		t.Errorf("with the hint a short stage takes %d requests, want 1", n)
	}
	if n := len(p.starts()); n != 2 {
		t.Errorf("%d scripts ran", n)
	}
}

// What refuses the command before it starts is tried again, and the script
// then runs once.
func TestRunTriesAgainBeforeTheStart(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		change func(*faultserver.Server)
	}{
		{"connections refused", func(s *faultserver.Server) { s.RefuseConnections(2) }},
		{"reset after the request", func(s *faultserver.Server) { s.Fail(2, "create", "pods/exec", faultserver.Reset()) }},
		{"bad gateway", func(s *faultserver.Server) {
			s.Fail(2, "create", "pods/exec", faultserver.Answer(http.StatusBadGateway, "x"))
		}},
		{"error dialing backend", func(s *faultserver.Server) {
			s.Fail(2, "create", "pods/exec", faultserver.AnswerStatus(http.StatusInternalServerError, metav1.StatusReasonInternalError, "error dialing backend: EOF"))
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t)
			p := h.play(exits(42))
			h.theJob()
			h.env["TENANT_EXECUTOR_POD"] = h.server.Pods()[0].Name
			test.change(h.server)
			h.expect(h.run("build_script", script), buildCode, "", "")
			if n := len(p.starts()); n != 1 {
				t.Errorf("the script ran %d times", n)
			}
			if code := h.exitCodeFile(); code != "42\n" {
				t.Errorf("the runner was handed %q", code)
			}
		})
	}
}

func TestRunThatCannotStart(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		// change sets the trouble up.
		change func(*harness, *programs)
		code   int
		want   []string
	}{
		{"Pod deleted before", func(h *harness, _ *programs) { h.server.Apply(faultserver.Removed()) }, systemCode, []string{
			`ERROR: the job's Pod ci/POD: the command did not start: pods "POD" not found`,
			"Retry the job. If it happens again, the operator has to find who removes the Pods."}},
		{"no right to exec", func(h *harness, _ *programs) {
			h.server.Fail(-1, "create", "pods/exec", faultserver.AnswerStatus(http.StatusForbidden, metav1.StatusReasonForbidden, `pods "x" is forbidden: User "driver" cannot create resource "pods/exec"`))
		}, systemCode, []string{
			`ERROR: the tenant cluster at https://SERVER: the command did not start: pods "x" is forbidden: User "driver" cannot create resource "pods/exec"`,
			"The operator has to check the certificate files and the role in examples/rbac.yaml."}},
		{"no shell in the image", func(_ *harness, p *programs) {
			p.before = func(e *faultserver.Exec) bool {
				e.Error(`exec: "sh": executable file not found in $PATH`)
				return false
			}
		}, buildCode, []string{
			`ERROR: the job's Pod ci/POD: error executing command in container: exec: "sh": executable file not found in $PATH`,
			"The image needs a shell (sh) and sleep, for the architecture of the node."}},
		{"no space for the script", func(_ *harness, p *programs) {
			p.before = func(e *faultserver.Exec) bool {
				_, _ = io.WriteString(e.Stderr, "cat: write error: No space left on device\n")
				e.Exit(1)
				return false
			}
		}, buildCode, []string{
			"ERROR: the job's Pod ci/POD: the script could not be started (exit code 1): cat: write error: No space left on device",
			"The image needs a shell (sh) and sleep, for the architecture of the node."}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t)
			p := h.play(nil)
			h.theJob()
			h.env["TENANT_EXECUTOR_POD"] = h.server.Pods()[0].Name
			test.change(h, p)
			h.expect(h.run("build_script", script), test.code, lines(test.want...), "")
			if n := len(p.starts()); n != 0 {
				t.Errorf("the script ran %d times", n)
			}
			if code := h.exitCodeFile(); code != "" {
				t.Errorf("the runner was handed %q", code)
			}
		})
	}
}

func TestRunWithoutAScript(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.write("build_exit_code", "99\n")
	h.expect(h.stage("run", "/nowhere/script", "build_script"), systemCode, lines(
		"ERROR: the script of stage build_script: open /nowhere/script: no such file or directory",
		"Run the stage from GitLab Runner, or by hand with --job FILE (see --help)."), "")
	if code := h.exitCodeFile(); code != "" {
		t.Errorf("the exit code %q of an earlier stage is still there", code)
	}
}
