//go:build e2e

package e2e

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/socialweb-computer/tenant-executor/examples/localrunner/job"
	"github.com/socialweb-computer/tenant-executor/examples/testbed"
)

// hand is a person who runs single stages in a shell.
type hand struct {
	t               *testing.T
	config, jobFile string
	// env is what is set beside PATH.
	env []string
}

func byHand(t *testing.T, j *job.Job) hand {
	t.Helper()
	data, err := json.Marshal(j)
	if err != nil {
		t.Fatal(err)
	}
	h := hand{t: t, config: bed.Config, jobFile: filepath.Join(t.TempDir(), "job.json")}
	if err := os.WriteFile(h.jobFile, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return h
}

func (h hand) command(args ...string) *exec.Cmd {
	cmd := exec.CommandContext(limited(h.t, jobLimit), bed.Driver, append(args, "--config", h.config, "--job", h.jobFile)...)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH")}, h.env...)
	return cmd
}

// do runs a stage and gives its output and exit code.
func (h hand) do(args ...string) (string, int) {
	h.t.Helper()
	cmd := h.command(args...)
	out, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState == nil {
		h.t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// wants runs a stage and looks at its exit code and its output.
func (h hand) wants(stage string, code int, says string) {
	h.t.Helper()
	if out, got := h.do(stage); got != code || !strings.Contains(out, says) {
		h.t.Errorf("%s ended with %d, want %d and %q:\n%s", stage, got, code, says, out)
	}
}

func (h hand) script(text string) string {
	h.t.Helper()
	path := filepath.Join(h.t.TempDir(), "script")
	if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
		h.t.Fatal(err)
	}
	return path
}

// lockedOutput collects what a process writes while the test looks at it.
type lockedOutput struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedOutput) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedOutput) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// killPrepare starts prepare, kills it after a while, and cleans up.
func killPrepare(t *testing.T, j *job.Job, after time.Duration) {
	t.Helper()
	h := byHand(t, j)
	cmd := h.command("prepare")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	select {
	case <-done:
	case <-time.After(after):
		if err := cmd.Process.Kill(); err != nil {
			t.Logf("prepare had ended: %v", err)
		}
		<-done
	}
	if out, code := h.do("cleanup"); code != 0 || out != "" {
		t.Errorf("cleanup after a kill at %s: exit code %d, output %q", after, code, out)
	}
}

func TestStagesByHand(t *testing.T) {
	h := byHand(t, testbed.WithoutSources(bed.Job("true")))
	out, code := h.do("config")
	var answer struct {
		BuildsDir string `json:"builds_dir"`
	}
	if err := json.Unmarshal([]byte(out), &answer); code != 0 || err != nil || answer.BuildsDir != "/builds" {
		t.Fatalf("config: exit code %d, %v, output %q", code, err, out)
	}
	if out, code := h.do("run", h.script("true"), "build_script"); code != 2 || !strings.Contains(out, "has no Pod") {
		t.Errorf("run without a Pod: exit code %d, output %q", code, out)
	}
	defer h.do("cleanup")
	if out, code := h.do("prepare"); code != 0 {
		t.Fatalf("prepare: exit code %d, output %q", code, out)
	}

	t.Run("output", func(t *testing.T) {
		// 20 MB, long lines and every byte above 0x7f among them.
		script := h.script(`set -e
seq 1 2400000
head -c 200000 /dev/zero | tr '\0' z
i=128; while [ $i -lt 256 ]; do printf "\\$(printf %o $i)"; i=$((i+1)); done
exit 7`)
		want := sha256.New()
		for i := 1; i <= 2400000; i++ {
			fmt.Fprintln(want, i)
		}
		_, _ = io.WriteString(want, strings.Repeat("z", 200000))
		for i := 128; i < 256; i++ {
			_, _ = want.Write([]byte{byte(i)})
		}
		cmd := h.command("run", script, "build_script")
		got := sha256.New()
		var errors bytes.Buffer
		cmd.Stdout, cmd.Stderr = got, &errors
		if err := cmd.Run(); cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != 1 {
			t.Errorf("run: %v %s", err, errors.String())
		}
		if !bytes.Equal(got.Sum(nil), want.Sum(nil)) {
			t.Error("the output is not what the script wrote")
		}
	})
	t.Run("containers", func(t *testing.T) {
		if out, code := h.do("run", h.script("cat /etc/os-release; command -v gitlab-runner"), "get_sources"); code != 0 || !strings.Contains(out, "Debian") {
			t.Errorf("a helper stage: exit code %d, output %q", code, out)
		}
		if out, code := h.do("run", h.script("cat /etc/os-release; command -v git"), "build_script"); code != 1 || strings.Contains(out, "Debian") {
			t.Errorf("a build stage: exit code %d, output %q", code, out)
		}
	})
	t.Run("cleanup twice", func(t *testing.T) {
		for range 2 {
			if out, code := h.do("cleanup"); code != 0 || out != "" {
				t.Errorf("cleanup: exit code %d, output %q", code, out)
			}
		}
	})
}
