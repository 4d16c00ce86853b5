package agent_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/socialweb-computer/tenant-executor/kube/stream/agent"
)

// leave starts a stage as a driver does that then dies, and gives the script's
// process.
func leave(t *testing.T, root, stage string) (*connection, string) {
	t.Helper()
	script := []byte("echo $$; trap '' TERM; while :; do sleep 0.1; done")
	r := request(stage, script)
	r.Owner = true
	c := connect(t, root)
	c.open(r, script, 0)
	c.begun()
	return c, strings.TrimSpace(c.readUntil("\n"))
}

// beside is a script that says whether a process runs beside it.
func beside(pid string) string {
	return `case "$(cat /proc/` + pid + `/stat 2>/dev/null)" in ""|*") Z "*) ;; *) echo beside;; esac; exit 7`
}

// A stage whose driver is gone is ended, with its whole tree, before the next one
// begins: the second try of the same, or what the runner does in between.
func TestStageThatWasLeftIsEndedFirst(t *testing.T) {
	t.Parallel()
	for name, kill := range map[string]bool{"goes on": false, "without its supervisor": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			first, pid := leave(t, root, "get_sources-aaaaaa")
			first.cut()
			<-first.ended
			folder := filepath.Join(root, "stages", "get_sources-aaaaaa")
			if kill {
				text, err := os.ReadFile(filepath.Join(folder, "pid"))
				if err != nil {
					t.Fatal(err)
				}
				supervisor, err := strconv.Atoi(string(text))
				if err != nil {
					t.Fatal(err)
				}
				if err := syscall.Kill(supervisor, syscall.SIGKILL); err != nil {
					t.Fatal(err)
				}
			}
			out, status := run(t, root, "get_sources-bbbbbb", beside(pid))
			if out != "" || status.Exit != 7 {
				t.Errorf("output %q, status %+v", out, status)
			}
			if _, err := os.Stat(filepath.Join(folder, "script")); err == nil {
				t.Error("the script of the first is still there")
			}
			again := connect(t, root)
			again.open(request("get_sources-aaaaaa", nil), nil, int64(len(pid)+1))
			again.begun()
			if _, status := again.end(int64(len(pid) + 1)); !status.Stopped && status.Trouble != agent.TroubleLost {
				t.Errorf("the first ended with %+v", status)
			}
		})
	}
}

// A stage whose driver is there goes on, beside one that a person starts by hand.
func TestStageWithADriverIsLeftAlone(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	_, pid := leave(t, root, "build_script-aaaaaa")
	out, status := run(t, root, "mine-bbbbbb", beside(pid))
	if out != "beside\n" || status.Exit != 7 {
		t.Errorf("output %q, status %+v", out, status)
	}
}

// A driver that only lost its connection finds its stage again.
func TestStageWhoseDriverIsBackIsLeftAlone(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	first, pid := leave(t, root, "build_script-aaaaaa")
	first.cut()
	<-first.ended
	script := []byte(beside(pid))
	second := connect(t, root)
	second.open(request("mine-bbbbbb", script), script, 0)
	r := request("build_script-aaaaaa", nil)
	r.Owner = true
	back := connect(t, root)
	back.open(r, nil, int64(len(pid)+1))
	back.begun()
	second.begun()
	if out, status := second.end(0); out != "beside\n" || status.Exit != 7 {
		t.Errorf("output %q, status %+v", out, status)
	}
}

// What is left of a script that a connection did not bring whole goes with the
// next one.
func TestHalfMadeStagesAreRemoved(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	parent := filepath.Join(root, "stages")
	gone, here := filepath.Join(parent, ".new-4194304-x"), filepath.Join(parent, ".new-"+strconv.Itoa(os.Getpid())+"-x")
	for _, folder := range []string{gone, here} {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, "script"), []byte("secret"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, status := run(t, root, "next", "exit 7"); status.Exit != 7 {
		t.Fatalf("status %+v", status)
	}
	if _, err := os.Stat(gone); err == nil {
		t.Error("what a killed process was making is still there")
	}
	if _, err := os.Stat(here); err != nil {
		t.Error("what a process that lives is making is gone")
	}
}
