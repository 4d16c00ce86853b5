package main

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// TestMain lets the test program be pause itself when it is told to.
func TestMain(m *testing.M) {
	if os.Getenv("BE_PAUSE") != "" {
		main()
	}
	os.Exit(m.Run())
}

func TestEndsOnSignal(t *testing.T) {
	for _, sent := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		t.Run(sent.String(), func(t *testing.T) {
			// The shell's child becomes pause's; when it ends, pause must
			// still be there to be ended.
			cmd := exec.Command("sh", "-c", `(exec 3>&-; sleep 0) & exec "$0"`, os.Args[0])
			cmd.Env = append(os.Environ(), "BE_PAUSE=1")
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			waitForReap(t, cmd.Process.Pid)
			if err := cmd.Process.Signal(sent); err != nil {
				t.Fatal(err)
			}
			if err := cmd.Wait(); err != nil {
				t.Errorf("ended with %v, want 0", err)
			}
		})
	}
}

// waitForReap waits until the program is pause and has no children left, living
// or dead.
func waitForReap(t *testing.T, pid int) {
	t.Helper()
	children := fmt.Sprintf("/proc/%d/task/%d/children", pid, pid)
	status := fmt.Sprintf("/proc/%d/status", pid)
	for {
		text, err := os.ReadFile(status)
		if err != nil {
			t.Fatal(err)
		}
		// SIGTERM (15) is bit 14 of the caught signals: Notify has happened.
		_, mask, _ := strings.Cut(string(text), "SigCgt:")
		caught, err := strconv.ParseUint(strings.Fields(mask)[0], 16, 64)
		if err != nil {
			t.Fatal(err)
		}
		left, err := os.ReadFile(children)
		if err != nil {
			t.Fatal(err)
		}
		if caught&(1<<14) != 0 && !strings.HasPrefix(string(text), "Name:\tsh") && len(left) == 0 {
			return
		}
		runtime.Gosched()
	}
}
