package stream_test

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/socialweb-computer/tenant-executor/kube/faultserver"
	"github.com/socialweb-computer/tenant-executor/kube/stream"
	"github.com/socialweb-computer/tenant-executor/kube/stream/agent"
)

// Bounds of the followers in these tests. The clock tells the times apart by
// their length.
const (
	silence = 30 * time.Second
	outage  = time.Minute
)

// peer is a test's part as the agent, on one connection.
type peer struct {
	t       *testing.T
	exec    *faultserver.Exec
	frames  *agent.Reader
	request agent.Request
	// offset is where the driver wants the output from.
	offset int64
	script []byte
}

// accept reads what opens a connection.
func accept(t *testing.T, e *faultserver.Exec) *peer {
	p := &peer{t: t, exec: e, frames: agent.NewReader(e.Stdin)}
	first, err := p.frames.Next()
	if err != nil || first.Kind != agent.KindStart {
		t.Errorf("the connection opens with %c, %v", first.Kind, err)
		return p
	}
	p.offset = int64(first.Offset)
	if p.request, err = agent.ParseRequest(first.Payload); err != nil {
		t.Error(err)
	}
	for int64(len(p.script)) < p.request.Size {
		f, err := p.frames.Next()
		if err != nil || f.Kind != agent.KindScript || int(f.Offset) != len(p.script) {
			t.Errorf("the script goes on with %c at %d, %v", f.Kind, f.Offset, err)
			return p
		}
		p.script = append(p.script, f.Payload...)
	}
	return p
}

// send sends a frame. The driver may have hung up before; then that is what the
// test wants to see.
func (p *peer) send(kind agent.Kind, offset int, payload string) {
	_ = agent.Frame{Kind: kind, Offset: uint64(offset), Payload: []byte(payload)}.Write(p.exec.Stdout)
}

// begin says that the stage runs, from the byte that is wanted.
func (p *peer) begin() { p.send(agent.KindBegun, int(p.offset), "") }

// end says that it ended with a code.
func (p *peer) end(total, code int) {
	p.send(agent.KindEnd, total, string(agent.Status{Exit: code}.Bytes()))
}

// awaitFrame reads on until a frame of the kind comes.
func (p *peer) awaitFrame(kind agent.Kind) agent.Frame {
	for {
		f, err := p.frames.Next()
		if err != nil {
			p.t.Errorf("waiting for %c: %v", kind, err)
			return agent.Frame{}
		}
		if f.Kind == kind {
			return f
		}
	}
}

// course is a followed stage in a test.
type course struct {
	*bench
	t     *testing.T
	clock *clock
	// opened are the connections so far. The lock guards what follows.
	mu     sync.Mutex
	opened []*peer
	said   []string
	// outage is the bound, if it is not that of all.
	outage time.Duration
	// gone is what Broken says.
	gone   error
	output bytes.Buffer
}

// newCourse follows a stage whose nth connection the nth of the functions
// serves. When one returns, its connection breaks.
func newCourse(t *testing.T, connections ...func(*peer)) *course {
	t.Helper()
	c := &course{bench: newBench(t), t: t, clock: newClock()}
	c.server.OnExec(func(e *faultserver.Exec) {
		p := accept(t, e)
		c.mu.Lock()
		n := len(c.opened)
		c.opened = append(c.opened, p)
		c.mu.Unlock()
		if n >= len(connections) {
			t.Errorf("there is a connection too many")
			return
		}
		connections[n](p)
		e.Break(faultserver.FIN)
	})
	return c
}

func (c *course) follower() *stream.Follower {
	note := func(what string) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.said = append(c.said, what)
	}
	return &stream.Follower{
		Runner: c.runner, Clock: c.clock,
		Bounds:   stream.Bounds{Spool: 64 << 20, Silence: silence, Outage: cmp.Or(c.outage, outage)},
		Broken:   func(context.Context, bool, error) error { note("broken"); return c.gone },
		Restored: func(time.Duration) { note("restored") },
	}
}

// stage is a stage with a script.
func (c *course) stage(out io.Writer) stream.Stage {
	return stream.Stage{
		Namespace: namespace, Pod: podName, Container: "build",
		Agent: "/a/podagent", Folder: "/a/build", Name: "script-1", Script: []byte("echo x"), Umask: -1, Output: out,
	}
}

func (c *course) follow(ctx context.Context) (agent.Status, error) {
	return c.follower().Run(ctx, c.stage(&c.output), nil)
}

// clock is a clock on which pauses pass at once, and longer times when the
// test says so.
type clock struct {
	mu     sync.Mutex
	now    time.Time
	timers map[time.Duration][]chan time.Time
	set    chan time.Duration
}

func newClock() *clock {
	return &clock{now: time.Unix(1e9, 0), timers: map[time.Duration][]chan time.Time{}, set: make(chan time.Duration, 1000)}
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// pauses reports whether d is a pause between two tries.
func pauses(d time.Duration) bool {
	return d != silence && d != silence/3 && d != stopPatience
}

func (c *clock) After(d time.Duration) <-chan time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	timer := make(chan time.Time, 1)
	if pauses(d) {
		c.now = c.now.Add(d)
		timer <- c.now
		return timer
	}
	c.timers[d] = append(c.timers[d], timer)
	c.set <- d
	return timer
}

// fire has every timer of that length fire.
func (c *clock) fire(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, timer := range c.timers[d] {
		timer <- c.now
	}
	delete(c.timers, d)
}

// pass lets time pass without any timer.
func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// awaitTimers waits until n timers of that length were set.
func (c *clock) awaitTimers(d time.Duration, n int) {
	for n > 0 {
		if <-c.set == d {
			n--
		}
	}
}
