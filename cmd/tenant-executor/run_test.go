package main_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/socialweb-computer/tenant-executor/kube/faultserver"
)

// script is what the runner would write: secrets in clear text.
const script = "#!/usr/bin/env bash\nexport CI_JOB_TOKEN=" + canaryToken + "\n: " + canaryScript + "\n"

// Exit codes are exact, and a signal is told as shells tell it.
func TestRunGivesTheScriptsExitCode(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.play()
	h.theJob()
	tests := map[string]int{"kill -KILL $$": 137, "kill -TERM $$": 143, "kill -SEGV $$": 139, "kill -PIPE $$": 141, "nosuchcommand 2>/dev/null": 127}
	for _, code := range []int{0, 1, 2, 42, 77, 88, 126, 127, 128, 137, 143, 254, 255} {
		tests[fmt.Sprintf("exit %d", code)] = code
	}
	for end, code := range tests {
		h.write("build_exit_code", "99\n") // of an earlier stage
		got := h.run("build_script", script+end)
		wantCode, wantFile := buildCode, strconv.Itoa(code)+"\n"
		if code == 0 {
			wantCode, wantFile = 0, ""
		}
		h.expect(got, wantCode, "", "")
		if file := h.exitCodeFile(); file != wantFile {
			t.Errorf("%s: the runner was handed %q", end, file)
		}
	}
}

// Each stage belongs in one container; one that nobody knows is the job's own.
func TestRunChoosesTheContainer(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.play()
	h.theJob()
	want := map[string]string{
		"prepare_script": "helper", "get_sources": "helper", "clear_worktree": "helper", "restore_cache": "helper",
		"download_artifacts": "helper", "archive_cache": "helper", "archive_cache_on_failure": "helper",
		"upload_artifacts_on_success": "helper", "upload_artifacts_on_failure": "helper", "cleanup_file_variables": "helper",
		"build_script": "build", "step_script": "build", "step_release": "build", "after_script": "build", "something_new": "build",
	}
	for stage, container := range want {
		h.expect(h.run(stage, script+"echo $CONTAINER"), 0, container+"\n", "")
	}
}

// What the helper makes can be written by whichever user the job's image has;
// there, and there alone, gitlab-runner is to be found.
func TestRunReadiesTheHelper(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	p := h.play()
	h.theJob()
	const ask = "umask; echo ${PATH##*:}"
	h.expect(h.run("get_sources", ask), 0, "0000\n"+podFolder+"/bin\n", "")
	target, err := os.Readlink(filepath.Join(p.volume(h.server.Pods()[0].Name), "bin", "gitlab-runner"))
	if err != nil || filepath.Base(target) != "gitlab-runner-helper" {
		t.Errorf("gitlab-runner is %q, %v", target, err)
	}
	if got := h.run("build_script", ask); strings.Contains(got.stdout, podFolder) {
		t.Errorf("the build container has the helper's folder on its PATH: %s", got.stdout)
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
	h.play()
	h.theJob()
	got := h.run("build_script", "cat '"+h.write("text", text.String())+"'; exit 1")
	if got.code != buildCode || got.stderr != "" {
		t.Errorf("exit code %d, stderr %q", got.code, got.stderr)
	}
	if got.stdout != text.String() {
		t.Errorf("%d bytes came out, %d went in", len(got.stdout), text.Len())
	}
}

// A script that fits in no argument list arrives whole, one that is empty too,
// and one that is no text.
func TestRunSendsTheScriptAsItIs(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.play()
	h.theJob()
	h.expect(h.run("build_script", ""), 0, "", "")
	for name, text := range map[string]string{
		"large": script + "sha256sum <\"$0\"\n" + strings.Repeat("# "+strings.Repeat("x", 61)+"\n", 100_000),
		"odd":   script + "sha256sum <\"$0\"\nexit 0\n\x80\xff\x00\r\n",
	} {
		got := h.run("build_script", text)
		if want := fmt.Sprintf("%x  -\n", sha256.Sum256([]byte(text))); got.code != 0 || got.stdout != want {
			t.Errorf("%s: exit code %d, %q; want the checksum %q", name, got.code, got.stdout, want)
		}
	}
}

// Without config's hint the Pod is found by its labels.
func TestRunFindsThePod(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	p := h.play()
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
	if n := p.connections(); n != 2 {
		t.Errorf("the agent was called %d times", n)
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
		{"no right for a moment", func(s *faultserver.Server) {
			s.Fail(3, "create", "pods/exec", faultserver.AnswerStatus(http.StatusForbidden, metav1.StatusReasonForbidden, noRight))
		}},
		{"Pod unknown to the kubelet", func(s *faultserver.Server) {
			s.Fail(3, "create", "pods/exec", faultserver.Answer(http.StatusNotFound, "pod does not exist"))
		}},
		{"connection reset while the streams open", func(s *faultserver.Server) { s.BreakAtStream(3) }},
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
			h.play()
			h.theJob()
			h.env["TENANT_EXECUTOR_POD"] = h.server.Pods()[0].Name
			test.change(h.server)
			h.expect(h.run("build_script", h.counted()+"exit 42"), buildCode, "", "")
			h.expectStarts(1)
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
			"ERROR: the job's Pod ci/POD does not exist any more",
			"Retry the job. If it happens again, the operator has to find who removes the Pods."}},
		{"no right to exec", func(h *harness, _ *programs) {
			h.server.Fail(-1, "create", "pods/exec", faultserver.AnswerStatus(http.StatusForbidden, metav1.StatusReasonForbidden, noRight))
		}, systemCode, []string{
			"ERROR: the tenant cluster at https://SERVER: the command did not start: " + noRight,
			"The operator has to check the certificate files and the role in examples/rbac.yaml."}},
		{"no shell in the image", func(_ *harness, p *programs) { p.path = p.base }, buildCode, []string{
			"ERROR: the script could not be started in container build: the image has neither bash nor sh on its PATH",
			"The image needs a shell (sh) and sleep, for the architecture of the node. With FF_KUBERNETES_HONOR_ENTRYPOINT its entrypoint has to run what it is given as arguments."}},
		{"nothing of the driver in the Pod", func(h *harness, p *programs) {
			if err := os.RemoveAll(p.volume(h.server.Pods()[0].Name)); err != nil {
				h.t.Fatal(err)
			}
		}, buildCode, []string{
			"ERROR: the job's Pod ci/POD: error executing command in container: exec failed: fork/exec VOLUME/podagent: no such file or directory",
			"Something in the job has emptied the folder /tenant-executor, through which the driver runs each script. Leave the folder alone; scripts have to keep to their builds folder and to $TMPDIR."}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t)
			p := h.play()
			h.theJob()
			pod := h.server.Pods()[0].Name
			h.env["TENANT_EXECUTOR_POD"] = pod
			test.change(h, p)
			got := h.run("build_script", h.counted())
			got.stdout = strings.ReplaceAll(got.stdout, p.volume(pod), "VOLUME")
			h.expect(got, test.code, lines(test.want...), "")
			h.expectStarts(0)
			h.expectNoScript(test.code)
		})
	}
}

// noRight is how an apiserver refuses what the caller's role does not grant.
const noRight = `pods "x" is forbidden: User "driver" cannot create resource "pods/exec"`

// counted is a script's beginning that notes its start.
func (h *harness) counted() string {
	return script + "echo start >>'" + filepath.Join(h.folder, "starts") + "'\n"
}

// expectStarts looks how often a counted script has started.
func (h *harness) expectStarts(want int) {
	h.t.Helper()
	text, err := os.ReadFile(filepath.Join(h.folder, "starts"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		h.t.Fatal(err)
	}
	if got := bytes.Count(text, []byte("\n")); got != want {
		h.t.Errorf("the script was started %d times, want %d", got, want)
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
