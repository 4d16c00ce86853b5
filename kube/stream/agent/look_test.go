package agent_test

import (
	"errors"
	"io"
	"testing"

	"github.com/socialweb-computer/tenant-executor/kube/stream/agent"
)

// looking is the request of somebody who only looks.
func looking(stage string, now bool) agent.Request {
	r := request(stage, nil)
	r.Look, r.Now = true, now
	return r
}

// Whoever only looks gets the output and frees nothing of it: the driver's own
// session gets all of it.
func TestLookingFreesNothing(t *testing.T) {
	root := t.TempDir()
	script := []byte("echo ready\nread x <" + fifo(t) + "\nseq 1 2000000\nexit 7")
	driver := connect(t, root)
	driver.open(request("look", script), script, 0)
	driver.begun()
	driver.readUntil("ready\n")

	now := connect(t, root)
	now.open(looking("look", true), nil, 0)
	now.begun()
	if got := now.readUntil("ready\n"); got != "ready\n" {
		t.Errorf("the output so far is %q", got)
	}
	if f := now.next(); f.Kind != agent.KindSoFar || f.Offset != 6 {
		t.Errorf("got frame %c at %d, want the present end at 6", f.Kind, f.Offset)
	}

	looker := connect(t, root)
	looker.open(looking("look", false), nil, 6)
	looker.begun()
	release(t, string(script))
	looker.send(agent.Frame{Kind: agent.KindAck, Offset: 14 << 20})
	seen, status := looker.end(6)
	if len(seen) < 12<<20 || status.Exit != 7 {
		t.Errorf("%d bytes, status %+v", len(seen), status)
	}
	driver.cut()
	again := connect(t, root)
	again.open(request("look", nil), nil, 6)
	if from := again.begun(); from != 6 {
		t.Fatalf("the driver's output goes on at %d: what somebody looked at is freed", from)
	}
	if whole, _ := again.end(6); whole != seen {
		t.Errorf("the driver gets %d bytes, want %d", len(whole), len(seen))
	}
}

// Whoever looks more slowly than the driver prints is told by the end of the
// session; the next one goes on with what there is.
func TestLookingTooSlowly(t *testing.T) {
	root := t.TempDir()
	script := []byte("read x <" + fifo(t) + "\nseq 1 2000000")
	driver, looker := connect(t, root), connect(t, root)
	printing := request("slow", script)
	printing.Limit = 4 << 20 // the script cannot run far ahead of the driver
	driver.open(printing, script, 0)
	driver.begun()
	looker.open(looking("slow", false), nil, 0)
	looker.begun()
	release(t, string(script))
	for printed := 0; ; {
		f := driver.next()
		if f.Kind == agent.KindEnd {
			break
		}
		printed += len(f.Payload)
		driver.send(agent.Frame{Kind: agent.KindAck, Offset: uint64(printed)})
	}
	var seen int64
	for {
		f, err := looker.frames.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if f.Kind != agent.KindData && f.Kind != agent.KindAlive {
			t.Fatalf("got frame %c %q", f.Kind, f.Payload)
		}
		seen += int64(len(f.Payload))
	}
	next := connect(t, root)
	next.open(looking("slow", false), nil, seen)
	from := next.begun()
	if from <= seen {
		t.Fatalf("the output goes on at %d after %d", from, seen)
	}
	if _, status := next.end(from); status.Exit != 0 {
		t.Errorf("status %+v", status)
	}
}
