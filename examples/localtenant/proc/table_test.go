package proc

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// fakeProcess puts a process into a /proc of the test.
func fakeProcess(t *testing.T, procfs string, pid int, state, cgroup, command string) {
	t.Helper()
	dir := filepath.Join(procfs, fmt.Sprint(pid))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	stat := fmt.Sprintf("%d (a ) b) %s 1 %s 4711 0\n", pid, state, strings.TrimSpace(strings.Repeat("0 ", 17)))
	for name, text := range map[string]string{
		"stat": stat, "cgroup": cgroup, "cmdline": strings.ReplaceAll(command, " ", "\x00") + "\x00",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestFind(t *testing.T) {
	procfs := t.TempDir()
	fakeProcess(t, procfs, 10, "S", "3:cpuset:/\n0::/ours/control\n", "etcd --name=x")
	fakeProcess(t, procfs, 11, "S", "0::/theirs\n", "sshd")
	fakeProcess(t, procfs, 12, "Z", "0::/ours/control\n", "dead")
	fakeProcess(t, procfs, 13, "R", "1:name=systemd:/\n2:memory:/ours/n/a:b\n0::/\n", "sleep 1")
	if err := os.MkdirAll(filepath.Join(procfs, "14"), 0o755); err != nil {
		t.Fatal(err) // it has just ended: its files are gone
	}
	if err := os.MkdirAll(filepath.Join(procfs, "sys"), 0o755); err != nil {
		t.Fatal(err)
	}
	found, err := Find(procfs, func(group string) bool { return strings.HasPrefix(group, "/ours/") })
	if err != nil {
		t.Fatal(err)
	}
	want := []Entry{{PID: 10, Command: "etcd --name=x", start: "4711"}, {PID: 13, Command: "sleep 1", start: "4711"}}
	if diff := cmp.Diff(want, found, cmp.AllowUnexported(Entry{})); diff != "" {
		t.Errorf("processes (-want +got):\n%s", diff)
	}
}

func TestKillSparesAnotherProcessOfTheSameID(t *testing.T) {
	procfs := t.TempDir()
	// Were it killed, the test would end here.
	fakeProcess(t, procfs, os.Getpid(), "S", "0::/ours\n", "me")
	if err := Kill(procfs, Entry{PID: os.Getpid(), start: "4710"}); err != nil {
		t.Error(err)
	}
	if err := Kill(procfs, Entry{PID: 1 << 30, start: "4710"}); err != nil {
		t.Errorf("a process that is gone: %v", err)
	}
}

func TestParseMounts(t *testing.T) {
	mounts, err := parseMounts("36 35 98:0 /mnt1 /a\\040b rw,noatime master:1 shared:2 - ext3 /dev/root rw,errors=continue\n" +
		"37 35 0:5 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n")
	if err != nil {
		t.Fatal(err)
	}
	want := []Mount{{"/a b", "ext3", "rw,errors=continue"}, {"/sys/fs/cgroup/cpuset", "cgroup", "rw,cpuset"}}
	if diff := cmp.Diff(want, mounts); diff != "" {
		t.Errorf("mounts (-want +got):\n%s", diff)
	}
	if _, err := parseMounts("nonsense\n"); err == nil {
		t.Error("nonsense was read")
	}
}

func TestTail(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	if got := Tail(path, 5); got != "" {
		t.Errorf("a file that is not there gave %q", got)
	}
	if err := os.WriteFile(path, []byte("0123456789"), 0o644); err != nil {
		t.Fatal(err)
	}
	for max, want := range map[int64]string{3: "789", 10: "0123456789", 99: "0123456789"} {
		if got := Tail(path, max); got != want {
			t.Errorf("Tail(%d) = %q, want %q", max, got, want)
		}
	}
}
