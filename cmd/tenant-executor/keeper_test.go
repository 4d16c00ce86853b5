package main_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// keeper is the command of a job Pod's containers, started on this host with a
// PATH of its own.
func (h *harness) keeper(path string) *exec.Cmd {
	h.t.Helper()
	p := h.play()
	h.theJob()
	var args []string
	for _, arg := range h.server.Pods()[0].Spec.Containers[0].Command {
		// As the kubelet does (third_party/forked/golang/expansion in Kubernetes).
		args = append(args, strings.ReplaceAll(arg, "$$", "$"))
	}
	// The shell is found in the container's PATH, not in ours.
	command := exec.Command(filepath.Join(path, args[0]), args[1:]...)
	command.Env = []string{"PATH=" + path, p.mark()}
	if err := command.Start(); err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { endAll(h.t, p.mark()) })
	return command
}

// rests says whether a process is one that a keeper waits for: it sleeps for
// long, or has stopped.
func rests(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && (bytes.Contains(text, []byte(" (sleep) ")) || bytes.Contains(text, []byte(") T ")))
}

// A container's first process waits without work, and ends at once and well on
// TERM, also in an image that has a shell and nothing else.
func TestKeeperEndsOnTERM(t *testing.T) {
	t.Parallel()
	for name, path := range map[string]string{"ordinary image": "/usr/bin", "nothing but a shell": onlyShell(t)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			keeper := newHarness(t).keeper(path)
			mark := keeper.Env[1]
			until(t, "the keeper waits", func() bool { return slices.ContainsFunc(marked(t, mark), rests) })
			if all := marked(t, mark); len(all) > 4 {
				t.Errorf("the keeper makes processes: %v", all)
			}
			if err := keeper.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			if err := keeper.Wait(); err != nil {
				t.Errorf("the keeper ended with %v", err)
			}
		})
	}
}

// onlyShell is a folder with a shell and nothing else.
func onlyShell(t *testing.T) string {
	t.Helper()
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	if err := os.Symlink(shell, filepath.Join(folder, "sh")); err != nil {
		t.Fatal(err)
	}
	return folder
}
