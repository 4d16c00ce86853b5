package main_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"testing"
)

// pipe is a pipe for a stage's stdout that nobody reads yet.
func pipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = r.Close(), w.Close() })
	return r, w
}

// A reader of the log that stands still does not hold the script, and when it
// goes on it gets everything in order.
func TestReaderThatStandsStill(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.settings["run.silence"] = "3s"
	h.play()
	h.theJob()
	r, w := pipe(t)
	done := h.folder + "/done"
	stage := h.startWith(w, "run", h.write("script", h.counted()+"seq 1 1000000; sleep 4; touch '"+done+"'; exit 42"), "build_script")
	_ = w.Close()
	until(t, "the script has ended", func() bool { _, err := os.Stat(done); return err == nil })
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	if string(text) != numbers(1000000) {
		t.Errorf("%d bytes of output are not the script's %d", len(text), len(numbers(1000000)))
	}
	if got := stage.wait(); got.code != buildCode || h.exitCodeFile() != "42\n" {
		t.Errorf("exit code %d, and the runner was handed %q", got.code, h.exitCodeFile())
	}
	h.expectStarts(1)
}

// A script is ended although nobody reads its output any more, and the driver
// ends too.
func TestCancelWithoutAReader(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.settings["run.cancel_grace"] = "1s"
	h.settings["run.silence"] = "3s"
	h.play()
	h.theJob()
	_, w := pipe(t)
	loud := strings.Replace(h.stubborn(), "echo step 1\n", "seq 1 1000000; touch '"+h.folder+"/written'\n", 1)
	stage := h.startWith(w, "run", h.write("script", loud), "build_script")
	until(t, "the script has written", func() bool { _, err := os.Stat(h.folder + "/written"); return err == nil })
	stage.terminate()
	until(t, "the script's processes have ended", func() bool {
		text, err := os.ReadFile(h.folder + "/pids")
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range strings.Fields(string(text)) {
			if pid, err := strconv.Atoi(line); err != nil || alive(pid) {
				return false
			}
		}
		return true
	})
	if got := stage.wait(); got.code != buildCode {
		t.Errorf("exit code %d, stderr %s", got.code, got.stderr)
	}
}

// Neither the driver's memory nor the agent's grows with the log.
func TestMemoryDoesNotGrowWithTheLog(t *testing.T) {
	t.Parallel()
	withoutRaceDetector(t)
	const size = 200 << 20
	h := newHarness(t)
	h.settings["run.spool_limit"] = "64Mi"
	p := h.play()
	h.theJob()
	r, w := pipe(t)
	gate := h.folder + "/gate"
	stage := h.startWith(w, "run", h.write("script", fmt.Sprintf("head -c %d /dev/zero; echo; %s", size, h.waiting(gate))), "build_script")
	_ = w.Close()
	reader := bufio.NewReader(r)
	buffer, total := make([]byte, 1<<20), 0
	for !bytes.Contains(buffer, []byte("step 1\n")) {
		n, err := reader.Read(buffer[:cap(buffer)])
		if err != nil {
			t.Fatalf("after %d bytes: %v", total, err)
		}
		buffer = buffer[:n]
		total += n
	}
	if want := size + len("\nstep 1\n"); total != want {
		t.Errorf("%d bytes of output, want %d", total, want)
	}
	expectMemory(t, "the driver", stage.command.Process.Pid, 100<<10)
	expectMemory(t, "the supervisor", p.number("build_script", "pid"), 40<<10)
	for _, pid := range marked(t, p.mark()) {
		if name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid)); err == nil && strings.HasPrefix(string(name), "podagent") {
			expectMemory(t, "an agent", pid, 40<<10)
		}
	}
	h.write("gate", "")
	if got := stage.wait(); got.code != 0 {
		t.Errorf("exit code %d", got.code)
	}
}

// expectMemory looks at the most memory that a process has had, in KiB.
func expectMemory(t *testing.T, who string, pid, most int) {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "VmHWM:")
	got, err := strconv.Atoi(strings.Fields(rest)[0])
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s took %d KiB", who, got)
	if got > most {
		t.Errorf("%s took %d KiB, more than %d", who, got, most)
	}
}
