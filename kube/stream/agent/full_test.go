package agent_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/socialweb-computer/tenant-executor/kube/stream/agent"
)

// smallVolume is a file system of 2 MiB.
func smallVolume(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tenant-executor-test", dir, "tmpfs", 0, "size=2m"); err != nil {
		if errors.Is(err, syscall.EPERM) {
			t.Skipf("a small file system is needed, and this user may not mount one: %v", err)
		}
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// A stage that has filled the disk can be stopped like any other, with its grace,
// and a second request still cuts that short.
func TestStopOnAFullDisk(t *testing.T) {
	t.Parallel()
	root := smallVolume(t)
	script := []byte("trap 'sleep 600' TERM\nhead -c 10000000 /dev/zero >" + root + "/filler 2>/dev/null\nsleep 600")
	c := connect(t, root)
	c.open(request("full", script), script, 0)
	c.begun()
	waitFor(t, "a full disk", func() bool {
		var stat syscall.Statfs_t
		return syscall.Statfs(root, &stat) == nil && stat.Bfree == 0
	})
	c.send(agent.Frame{Kind: agent.KindStop, Offset: 3600 * 1000})
	waitFor(t, "the stop", func() bool {
		b, err := os.ReadFile(filepath.Join(root, "stages", "full", "stop"))
		return err == nil && strings.Trim(string(b), "\x00") != ""
	})
	c.send(agent.Frame{Kind: agent.KindStop})
	if _, status := c.end(0); !status.Stopped {
		t.Errorf("status %+v, want stopped", status)
	}
}

// A stop that cannot be written down ends the stage all the same.
func TestStopThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	script := []byte("echo ready; sleep 600")
	c := connect(t, root)
	c.open(request("stop", script), script, 0)
	c.begun()
	c.readUntil("ready\n")
	path := filepath.Join(root, "stages", "stop", "stop")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	c.send(agent.Frame{Kind: agent.KindStop, Offset: 3600 * 1000})
	if _, status := c.end(6); !status.Stopped {
		t.Errorf("status %+v, want stopped", status)
	}
}

// However little room is left, a stage begins whole or says that it did not.
func TestStageOnAFullDisk(t *testing.T) {
	t.Parallel()
	root := smallVolume(t)
	if err := os.Mkdir(filepath.Join(root, "stages"), 0o700); err != nil {
		t.Fatal(err)
	}
	marker := filepath.Join(t.TempDir(), "ran")
	script := "echo run >>" + marker + "\nexit 7 # " + strings.Repeat("x", 10000)
	filler := filepath.Join(root, "filler")
	fill, err := os.Create(filler)
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = fill.Write(make([]byte, 4096))
	}
	size, err := fill.Seek(0, 2)
	if err != nil {
		t.Fatal(err)
	}
	begun := false
	for left := int64(0); !begun; left += 4096 {
		if err := fill.Truncate(size - left); err != nil {
			t.Fatal(err)
		}
		c := connect(t, root)
		c.open(request("room", []byte(script)), []byte(script), 0)
		switch f := c.next(); f.Kind {
		case agent.KindUnstarted:
			status, err := agent.ParseStatus(f.Payload)
			if err != nil || status.Trouble != agent.TroubleNoRoom || !strings.Contains(status.Detail, "no space left") {
				t.Errorf("status %+v, %v", status, err)
			}
			if _, err := os.Stat(marker); err == nil {
				t.Fatal("the script ran")
			}
			if left > 1<<20 {
				t.Fatal("the stage never begins")
			}
		case agent.KindBegun:
			begun = true
			if _, status := c.end(0); status.Exit != 7 {
				t.Errorf("with room for %d bytes: status %+v", left, status)
			}
		default:
			t.Fatalf("got frame %c %q", f.Kind, f.Payload)
		}
		c.cut()
		<-c.ended
	}
	if left, _ := filepath.Glob(filepath.Join(root, "stages", ".new-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
