package main_test

import (
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/socialweb-computer/tenant-executor/kube/faultserver"
)

// nobody is a pipe whose reader is gone, as a stage has it when its runner has
// ended.
func nobody(t *testing.T) *os.File {
	t.Helper()
	r, w := pipe(t)
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	return w
}

// unheard runs a stage whose output nobody reads.
func (h *harness) unheard(args ...string) (code int) {
	h.t.Helper()
	h.handOver()
	w := nobody(h.t)
	command := exec.CommandContext(h.t.Context(), os.Getenv(builtPath), args...)
	command.Dir, command.Stdout, command.Stderr = h.folder, w, w
	for name, value := range h.env {
		command.Env = append(command.Env, name+"="+value)
	}
	var exited *exec.ExitError
	if err := command.Run(); err != nil && !errors.As(err, &exited) {
		h.t.Fatal(err)
	}
	return command.ProcessState.ExitCode()
}

// A cleanup that has something to say deletes the Pod although nobody hears it:
// here of a certificate that ends soon, and of a Pod that is left behind.
func TestCleanupWithoutAReader(t *testing.T) {
	t.Parallel()
	h := leaver(t)
	h.trust(h.server.ClientUntil(t, time.Now().Add(48*time.Hour)))
	h.prepared()
	if code := h.unheard("cleanup"); code != 0 || len(h.server.Pods()) != 0 {
		t.Errorf("cleanup ended with %d and has left %d Pods", code, len(h.server.Pods()))
	}
	h.prepared()
	h.server.Down()
	h.hurry()
	if code := h.unheard("cleanup"); code != systemCode || len(h.undone()) != 1 {
		t.Errorf("cleanup ended with %d, and %d cleanups are remembered", code, len(h.undone()))
	}
}

// A prepare whose runner is gone leaves no Pod, wherever it is.
func TestPrepareWithoutAReader(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*harness){
		"that could go on": func(h *harness) { h.answerSetup() },
		"that waits":       func(h *harness) { h.server.OnCreate() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t)
			change(h)
			if code := h.unheard("prepare"); code != systemCode || len(h.server.Pods()) != 0 {
				t.Errorf("prepare ended with %d and has left %d Pods", code, len(h.server.Pods()))
			}
		})
	}
}

// A script whose runner is gone is ended, and the driver ends as if the runner
// had said so.
func TestRunWithoutAReader(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.settings["run.cancel_grace"] = "1s"
	h.play()
	h.theJob()
	if code := h.unheard("run", h.write("script", h.stubborn()), "build_script"); code != buildCode {
		t.Errorf("run ended with %d", code)
	}
	text, err := os.ReadFile(h.folder + "/pids")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Fields(string(text)) {
		if pid, err := strconv.Atoi(line); err != nil || alive(pid) {
			t.Errorf("process %s of the script lives", line)
		}
	}
}

// Config has nothing but its answer; without it the job cannot begin.
func TestConfigWithoutAReader(t *testing.T) {
	t.Parallel()
	if code := newHarness(t).unheard("config"); code != systemCode {
		t.Errorf("config ended with %d", code)
	}
}

// A command that a person pipes into another ends with that one.
func TestCommandWithoutAReader(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.server.OnCreate(faultserver.Scheduled(node))
	if code := h.unheard("ps"); code != -1 {
		t.Errorf("ps ended with %d, want the signal", code)
	}
}
