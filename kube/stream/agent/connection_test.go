package agent_test

import (
	"bytes"
	"crypto/sha256"
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

// connection is one front with the driver's end of its pipes.
type connection struct {
	t      *testing.T
	to     *io.PipeWriter
	frames *agent.Reader
	from   *io.PipeReader
	done   chan error
	ended  chan struct{}
}

func connect(t *testing.T, root string) *connection {
	t.Helper()
	return connectBy(t, root, agent.Spawn)
}

// connectBy connects to a front that starts supervisors its own way.
func connectBy(t *testing.T, root string, spawn func(folder string, lock *os.File) error) *connection {
	t.Helper()
	in, to := io.Pipe()
	from, out := io.Pipe()
	c := &connection{t: t, to: to, from: from, frames: agent.NewReader(from), done: make(chan error, 1), ended: make(chan struct{})}
	go func() {
		err := (&agent.Front{Root: root, In: in, Out: out, Spawn: spawn}).Run()
		_ = out.Close()
		_ = in.Close()
		c.done <- err
		close(c.ended)
	}()
	t.Cleanup(func() {
		c.cut()
		<-c.ended
		endStages(t, root)
	})
	return c
}

// endStages kills what a test's stages have left: their scripts and their
// supervisors.
func endStages(t *testing.T, root string) {
	t.Helper()
	for _, name := range []string{"shell", "pid"} {
		found, err := filepath.Glob(filepath.Join(root, "stages", "*", name))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range found {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if pid, err := strconv.Atoi(string(text)); err == nil && pid > 1 {
				// Each leads a session, and with it a group.
				waitFor(t, "the end of "+path, func() bool { return syscall.Kill(-pid, syscall.SIGKILL) != nil || dead(pid) })
			}
		}
	}
}

// dead says whether a process is no more than a zombie.
func dead(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || bytes.Contains(stat, []byte(") Z "))
}

// cut ends the connection as a lost network does: both ways at once.
func (c *connection) cut() {
	_ = c.to.Close()
	_ = c.from.Close()
}

func (c *connection) send(f agent.Frame) {
	c.t.Helper()
	if err := f.Write(c.to); err != nil {
		c.t.Fatalf("sending %c: %v", f.Kind, err)
	}
}

func request(stage string, script []byte) agent.Request {
	r := agent.Request{Stage: stage, Limit: 64 << 20, Silence: 30, Umask: -1}
	if script != nil {
		sum := sha256.Sum256(script)
		r.Size, r.Sum = int64(len(script)), string(sum[:])
	}
	return r
}

// open sends a request, and the script where there is one.
func (c *connection) open(r agent.Request, script []byte, offset int64) {
	c.t.Helper()
	c.send(agent.Frame{Kind: agent.KindStart, Offset: uint64(offset), Payload: r.Bytes()})
	go func() {
		for at := 0; at < len(script); at += agent.MaxPayload {
			part := script[at:min(at+agent.MaxPayload, len(script))]
			if (agent.Frame{Kind: agent.KindScript, Offset: uint64(at), Payload: part}).Write(c.to) != nil {
				return
			}
		}
	}()
}

func (c *connection) next() agent.Frame {
	c.t.Helper()
	for {
		f, err := c.frames.Next()
		if err != nil {
			c.t.Fatalf("reading a frame: %v", err)
		}
		if f.Kind != agent.KindAlive {
			return f
		}
	}
}

func (c *connection) begun() int64 {
	c.t.Helper()
	f := c.next()
	if f.Kind != agent.KindBegun {
		c.t.Fatalf("got frame %c %q, want that the stage has begun", f.Kind, f.Payload)
	}
	return int64(f.Offset)
}

// readUntil collects output until it holds text.
func (c *connection) readUntil(text string) string {
	c.t.Helper()
	var out strings.Builder
	for !strings.Contains(out.String(), text) {
		f := c.next()
		if f.Kind != agent.KindData {
			c.t.Fatalf("got frame %c %q before %q; output so far %q", f.Kind, f.Payload, text, out.String())
		}
		out.Write(f.Payload)
	}
	return out.String()
}

// end collects the rest of the output, which it acknowledges now and then, and the
// status.
func (c *connection) end(from int64) (string, agent.Status) {
	c.t.Helper()
	var out bytes.Buffer
	for {
		f := c.next()
		switch f.Kind {
		case agent.KindData:
			if int64(f.Offset) != from+int64(out.Len()) {
				c.t.Fatalf("output at %d, want %d", f.Offset, from+int64(out.Len()))
			}
			out.Write(f.Payload)
			if whole := from + int64(out.Len()); whole>>20 > (whole-int64(len(f.Payload)))>>20 {
				c.send(agent.Frame{Kind: agent.KindAck, Offset: uint64(whole)})
			}
		case agent.KindEnd:
			if int64(f.Offset) != from+int64(out.Len()) {
				c.t.Fatalf("the end is at %d, but the output at %d", f.Offset, from+int64(out.Len()))
			}
			status, err := agent.ParseStatus(f.Payload)
			if err != nil {
				c.t.Fatal(err)
			}
			return out.String(), status
		default:
			c.t.Fatalf("got frame %c %q", f.Kind, f.Payload)
		}
	}
}

// run runs a script over one connection.
func run(t *testing.T, root, stage, script string) (string, agent.Status) {
	t.Helper()
	return connect(t, root).run(stage, script)
}

func (c *connection) run(stage, script string) (string, agent.Status) {
	c.t.Helper()
	c.open(request(stage, []byte(script)), []byte(script), 0)
	c.begun()
	return c.end(0)
}
