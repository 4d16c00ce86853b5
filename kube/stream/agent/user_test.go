package agent_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/socialweb-computer/tenant-executor/kube/stream/agent"
)

// program builds the agent, where every user can run it.
func program(t *testing.T) string {
	t.Helper()
	path := filepath.Join(public(t), "podagent")
	if out, err := exec.Command("go", "build", "-o", path, "../../../cmd/podagent").CombinedOutput(); err != nil {
		t.Fatalf("building the agent: %v\n%s", err, out)
	}
	return path
}

// public is a folder that every user may enter.
func public(t *testing.T) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "agent")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	if err := os.Chmod(folder, 0o777); err != nil {
		t.Fatal(err)
	}
	return folder
}

// runAs runs a script over the program's own front, as a user and with a umask.
func runAs(t *testing.T, path, root, stage, script string, uid uint32, umask string) (string, agent.Status) {
	t.Helper()
	command := exec.Command("sh", "-c", `umask "$1"; exec "$2" front "$3"`, "sh", umask, path, root)
	command.Dir = "/"
	command.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid, NoSetGroups: true}}
	to, err1 := command.StdinPipe()
	from, err2 := command.StdoutPipe()
	var stderr bytes.Buffer
	command.Stderr = &stderr
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = to.Close(), command.Wait() }()
	r := request(stage, []byte(script))
	for _, f := range []agent.Frame{
		{Kind: agent.KindStart, Payload: r.Bytes()},
		{Kind: agent.KindScript, Payload: []byte(script)},
	} {
		if f.Kind == agent.KindScript && script == "" {
			continue
		}
		if err := f.Write(to); err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	frames := agent.NewReader(from)
	for {
		f, err := frames.Next()
		switch {
		case err != nil:
			t.Fatalf("the front ended: %v, stderr %q", err, stderr.String())
		case f.Kind == agent.KindData:
			out.Write(f.Payload)
		case f.Kind == agent.KindRefused:
			t.Fatalf("refused: %s", f.Payload)
		case f.Kind == agent.KindEnd:
			status, err := agent.ParseStatus(f.Payload)
			if err != nil {
				t.Fatal(err)
			}
			return out.String(), status
		}
	}
}

// Stages of different users share a container's folder: each works, whatever
// its umask, and cannot read the other's.
func TestUsersOfOneContainer(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can become other users")
	}
	path, root := program(t), filepath.Join(public(t), "build")
	for _, user := range []struct {
		stage, umask string
		uid          uint32
	}{{"root", "077", 0}, {"first", "077", 4001}, {"second", "000", 4002}} {
		got, status := runAs(t, path, root, user.stage, "id -u; umask; exit 3", user.uid, user.umask)
		want := map[string]string{"root": "0\n0077\n", "first": "4001\n0077\n", "second": "4002\n0000\n"}[user.stage]
		if got != want || status.Exit != 3 {
			t.Errorf("%s: %q and %+v, want %q", user.stage, got, status, want)
		}
	}
	got, _ := runAs(t, path, root, "spy", "cat "+root+"/stages/first/* 2>/dev/null; ls "+root+"/stages/first 2>/dev/null; mv "+root+"/stages/first "+root+"/stages/x 2>/dev/null; echo done", 4002, "022")
	if got != "done\n" {
		t.Errorf("another user sees %q", got)
	}
	listed, err := exec.Command(path, agent.VerbList, root).Output()
	if err != nil {
		t.Fatal(err)
	}
	entries, err := agent.ParseList(string(listed))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Stage)
		if !e.Ended {
			t.Errorf("stage %s has not ended", e.Stage)
		}
	}
	if diff := cmp.Diff([]string{"root", "first", "second", "spy"}, names); diff != "" {
		t.Error(diff)
	}
}

// Scripts and output that are no text.
func TestOddScripts(t *testing.T) {
	root := t.TempDir()
	for name, test := range map[string]struct{ script, want string }{
		"empty":     {"", ""},
		"no-text":   {"echo a\nexit 0\n\x80\xff\x00\x00\r", "a\n"},
		"huge-line": {"echo " + strings.Repeat("x", 1<<20), strings.Repeat("x", 1<<20) + "\n"},
		"pieces":    {"head -c 13000000 /dev/zero | tr '\\0' y", strings.Repeat("y", 13000000)},
	} {
		if got, status := run(t, root, name, test.script); got != test.want || status != (agent.Status{}) {
			t.Errorf("%s: %d bytes and %+v, want %d", name, len(got), status, len(test.want))
		}
	}
}

// Where a connection wants to go on, everything before is printed and may be
// freed.
func TestResumingAcknowledges(t *testing.T) {
	const size = 3 * 4 << 20
	root := t.TempDir()
	script := []byte("head -c 12582912 /dev/zero; read x <" + fifo(t) + "\nhead -c 12582912 /dev/zero")
	c := connect(t, root)
	c.open(request("resumed", script), script, 0)
	c.begun()
	for got := 0; got < size; {
		got += len(c.next().Payload)
	}
	c.cut()
	c = connect(t, root)
	c.open(request("resumed", nil), nil, size)
	if from := c.begun(); from != size {
		t.Errorf("the output goes on at %d", from)
	}
	release(t, string(script))
	if out, status := c.end(size); len(out) != size || status.Exit != 0 {
		t.Errorf("%d bytes more and %+v", len(out), status)
	}
	if left := sizeOf(t, filepath.Join(root, "stages", "resumed")); left > size+1<<20 {
		t.Errorf("%d bytes are kept, although the first %d were printed", left, size)
	}
}

// A stop that comes right behind the script ends the stage, whether its
// supervisor was ready for it or not.
func TestStopRightAway(t *testing.T) {
	for range 20 {
		c := connect(t, t.TempDir())
		script := []byte("sleep 1000")
		c.send(agent.Frame{Kind: agent.KindStart, Payload: request("early", script).Bytes()})
		c.send(agent.Frame{Kind: agent.KindScript, Payload: script})
		go func() { _ = agent.Frame{Kind: agent.KindStop, Offset: 0}.Write(c.to) }()
		c.begun()
		if _, status := c.end(0); !status.Stopped {
			t.Errorf("status %+v, want stopped", status)
		}
		c.cut()
	}
}
