package main_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/socialweb-computer/tenant-executor/kube/faultserver"
)

// The agent's supervisor is killed: the stage is over, its script is ended and
// never run again, and nobody takes it for the script's own end.
func TestKilledSupervisor(t *testing.T) {
	t.Parallel()
	for name, then := range map[string]func(*line){
		"connection stays":  func(*line) {},
		"connection breaks": func(l *line) { l.breaks(faultserver.RST) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t)
			p := h.play()
			h.theJob()
			opened := make(chan *line, 100)
			p.onLine(func(_ int, l *line) { opened <- l })
			stage := h.startRun("build_script", h.waiting("/nowhere/gate"))
			stage.stdout.waitFor(t, "step 1\n")
			shell := p.number("build_script", "shell")
			if err := syscall.Kill(p.number("build_script", "pid"), syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			then(<-opened)
			h.expect(stage.wait(), systemCode, lines("step 1",
				"ERROR: the stage in container build: the stage's supervisor is gone",
				"Retry the job. A script that kills every process it can (kill -9 -1) does this to itself."), "")
			if alive(shell) {
				t.Error("the script goes on unseen")
			}
			if code := h.exitCodeFile(); code != "" {
				t.Errorf("the runner was handed %q", code)
			}
			h.expectStarts(1)
			// The process of a plain exec that is killed is told like a script that
			// ends with 137, or not at all.
			var its *line
			plain := h.startPlainExec(p, "echo step 1; exec sleep 1003", func(l *line) { its = l })
			plain.stdout.waitFor(t, "step 1\n")
			if err := syscall.Kill(<-plain.shell, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			if then(its); name == "connection stays" {
				plain.expect("step 1\n", 137)
			} else {
				plain.expectLost("step 1\n.", 42)
			}
		})
	}
}

// The disk runs full while the script writes: what could be kept is shown, and
// the stage ends as what it is.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	t.Run("one pipe", func(t *testing.T) {
		t.Parallel()
		fullDisk(t, "false", "yes 0123456789abcdef")
	})
	t.Run("a pipe for each stream", func(t *testing.T) {
		t.Parallel()
		fullDisk(t, "true", "yes 0123456789abcdef >&2 & yes 0123456789abcdef")
	})
}

func fullDisk(t *testing.T, separate, script string) {
	t.Helper()
	h := newHarness(t)
	h.settings["run.separate_stderr"] = separate
	p := h.play()
	h.env["TENANT_EXECUTOR_POD"] = h.podName("0a1b2c")
	volume := p.volume(h.env["TENANT_EXECUTOR_POD"])
	if err := os.Mkdir(volume, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tenant-executor-test", volume, "tmpfs", 0, "size=24m"); err != nil {
		if errors.Is(err, syscall.EPERM) {
			t.Skipf("a small file system is needed, and this user may not mount one: %v", err)
		}
		t.Fatal(err)
	}
	t.Cleanup(func() {
		endAll(t, p.mark())
		if err := syscall.Unmount(volume, 0); err != nil {
			t.Error(err)
		}
	})
	h.theJob()
	// Nothing is freed while nobody reads.
	full := make(chan struct{})
	p.onLine(func(_ int, l *line) {
		to := l.out
		l.out = writerFunc(func(b []byte) (int, error) {
			<-full
			return to.Write(b)
		})
	})
	stage := h.startRun("build_script", h.counted()+script)
	until(t, "the disk is full and the stage has ended", func() bool {
		found, err := filepath.Glob(filepath.Join(volume, "build", "stages", "build_script-*", "status"))
		return err == nil && len(found) == 1
	})
	close(full)
	got := stage.wait()
	output, said, _ := strings.Cut(got.stdout, "\x1b")
	output = strings.TrimSuffix(output, "\n") // which is put before a line of the driver's
	// Of two streams whole pieces alternate, not lines.
	want := strings.Repeat("0123456789abcdef\n", len(output)/17+1)
	if len(output) < 1<<20 || separate == "false" && !strings.HasPrefix(want, output) {
		t.Errorf("%d bytes of output, or not the script's", len(output))
	}
	if got.code != systemCode || !strings.Contains(said, "could not be kept") || !strings.Contains(said, "no space left on device") {
		t.Errorf("exit code %d: %s", got.code, said)
	}
	if n := p.connections(); n != 1 {
		t.Errorf("%d connections, want 1", n)
	}
	h.expectStarts(1)
	// A plain exec keeps nothing, and so does not mind: the script waits for its
	// reader instead, and what it prints is gone with the connection.
	h.plainExec(p, "seq 1 3000000; exit 42", nil).expect(numbers(3000000), 42)
}
