package agent_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/socialweb-computer/tenant-executor/kube/stream/agent"
)

// Stopping ends the whole tree: children, those that ignore TERM, those that
// made a session of their own, and those whose parent is gone.
func TestStopEndsTheWholeTree(t *testing.T) {
	dir := t.TempDir()
	script := []byte(`note() { echo $1 >>` + dir + `/pids; }
sleep 1000 & note $!
setsid sleep 1001 & note $!
(trap "" TERM; echo $BASHPID >>` + dir + `/pids; while :; do sleep 1; done) &
(setsid sh -c 'sleep 1002 & echo $! >>` + dir + `/pids') 
trap 'echo in the trap; exit 1' TERM
echo ready
wait`)
	c := connect(t, t.TempDir())
	c.open(request("tree", script), script, 0)
	c.begun()
	out := c.readUntil("ready\n")
	waitFor(t, "all processes", func() bool {
		b, _ := os.ReadFile(dir + "/pids")
		return bytes.Count(b, []byte("\n")) == 4
	})
	c.send(agent.Frame{Kind: agent.KindStop, Offset: 200})
	rest, status := c.end(int64(len(out)))
	if !status.Stopped {
		t.Errorf("status %+v, want stopped", status)
	}
	if !strings.Contains(rest, "in the trap\n") {
		t.Errorf("output after the stop: %q, want what the trap prints", rest)
	}
	b, err := os.ReadFile(dir + "/pids")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Fields(string(b)) {
		pid, err := strconv.Atoi(line)
		if err != nil {
			t.Fatalf("pid %q", line)
		}
		if stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err == nil && !bytes.Contains(stat, []byte(") Z ")) {
			t.Errorf("process %d lives: %s", pid, stat)
		}
	}
}

// The script waits at the limit of the spool, and goes on when the driver has
// printed; what is printed is freed.
func TestSpoolIsBounded(t *testing.T) {
	const limit = 8 << 20
	root := t.TempDir()
	script := []byte("head -c 40000000 /dev/zero; echo end")
	r := request("bounded", script)
	r.Limit = limit
	c := connect(t, root)
	c.open(r, script, 0)
	c.begun()
	folder := filepath.Join(root, "stages", "bounded")
	largest, total, acked := int64(0), int64(0), int64(0)
	for {
		f := c.next()
		if f.Kind == agent.KindEnd {
			break
		}
		total += int64(len(f.Payload))
		if total-acked >= limit/2 {
			largest = max(largest, sizeOf(t, folder))
			acked = total
			c.send(agent.Frame{Kind: agent.KindAck, Offset: uint64(acked)})
		}
	}
	if total != 40000004 {
		t.Errorf("%d bytes arrived, want 40000004", total)
	}
	if most := int64(limit + 12<<20); largest == 0 || largest > most {
		t.Errorf("the spool took up to %d bytes, want at most %d", largest, most)
	}
}

func sizeOf(t *testing.T, folder string) int64 {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	var size int64
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil {
			size += info.Size()
		} else if !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
	}
	return size
}

// A supervisor that is killed leaves a stage that is over, and is not run
// again.
func TestKilledSupervisor(t *testing.T) {
	root, counter := t.TempDir(), filepath.Join(t.TempDir(), "count")
	script := []byte("echo run >>" + counter + "\necho ready\nexec sleep 1000")
	c := connect(t, root)
	c.open(request("lost", script), script, 0)
	c.begun()
	c.readUntil("ready\n")
	b, err := os.ReadFile(filepath.Join(root, "stages", "lost", "pid"))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(string(b))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if _, status := c.end(6); status.Trouble != agent.TroubleLost {
		t.Errorf("status %+v, want that the supervisor is lost", status)
	}
	again := connect(t, root)
	again.open(request("lost", script), script, 0)
	again.begun()
	if _, status := again.end(0); status.Trouble != agent.TroubleLost {
		t.Errorf("status %+v on the second connection", status)
	}
	if b, _ := os.ReadFile(counter); string(b) != "run\n" {
		t.Errorf("the script ran %d times", strings.Count(string(b), "run"))
	}
}

func TestNoShell(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if _, status := run(t, t.TempDir(), "noshell", "exit 0"); status.Trouble != agent.TroubleNoShell {
		t.Errorf("status %+v, want that there is no shell", status)
	}
}

func TestSilentDriverIsNoticed(t *testing.T) {
	script := []byte("echo ready; sleep 1000")
	r := request("silent", script)
	r.Silence = 1
	c := connect(t, t.TempDir())
	c.open(r, script, 0)
	c.begun()
	c.readUntil("ready\n")
	go func() { _, _ = io.Copy(io.Discard, c.from) }()
	if err := <-c.done; err == nil {
		t.Error("the front ended as if all were well")
	}
}

func TestFilesAreTheJobsAlone(t *testing.T) {
	root := t.TempDir()
	if _, status := run(t, root, "modes", "umask 000; echo x"); status.Exit != 0 {
		t.Fatalf("status %+v", status)
	}
	folder := filepath.Join(root, "stages", "modes")
	entries, err := os.ReadDir(folder)
	if err != nil || len(entries) < 4 {
		t.Fatalf("%d files, error %v", len(entries), err)
	}
	for _, entry := range append(entries, mustStat(t, folder)) {
		info, err := entry.Info()
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %s", entry.Name(), info.Mode())
		}
		if entry.Name() == "script" {
			t.Error("the script is still there after the end")
		}
	}
}

func mustStat(t *testing.T, path string) os.DirEntry {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if entry.Name() == filepath.Base(path) {
			return entry
		}
	}
	t.Fatalf("%s is not there", path)
	return nil
}
