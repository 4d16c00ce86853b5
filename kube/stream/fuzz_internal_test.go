package stream

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"testing"
	"time"

	"github.com/socialweb-computer/tenant-executor/kube/stream/agent"
)

// still is a clock that stands still: nothing in these tests waits.
type still struct{}

func (still) Now() time.Time                       { return time.Unix(1e9, 0) }
func (still) After(time.Duration) <-chan time.Time { return make(chan time.Time) }

// stagesOf are the ways in which a stage is followed.
func stagesOf(out io.Writer) map[string]Stage {
	return map[string]Stage{
		"run":         {Script: []byte("echo x"), Output: out},
		"run, apart":  {Script: []byte("echo x"), Apart: true, Output: out, Errors: out},
		"attach":      {Output: out},
		"logs":        {Output: out, Look: true, Now: true},
		"logs, later": {Output: out, Look: true, Offset: 7},
	}
}

// listen has a stage followed over one connection after another, each with what an
// agent is to have sent.
func listen(t *testing.T, stage Stage, connections ...[]byte) (*course, agent.Status, error) {
	t.Helper()
	f := &Follower{
		Bounds: Bounds{Spool: 1 << 24, Silence: time.Second, Outage: time.Second}, Clock: still{},
		Broken: func(context.Context, bool, error) error { return nil }, Restored: func(time.Duration) {}, Freed: func(n int64) {
			if n < 0 {
				t.Errorf("%d bytes are passed over", n)
			}
		},
	}
	c := &course{follower: f, stage: stage, taken: stage.Offset, lastSeen: f.Clock.Now(), sound: f.Clock.Now(), printer: &printer{}}
	var status agent.Status
	var err error
	for _, sent := range connections {
		ctx, cancel := context.WithCancelCause(t.Context())
		l := &link{course: c, frames: agent.NewReader(bytes.NewReader(sent)), to: io.Discard, opened: make(chan struct{}), start: c.request(), from: c.taken}
		status, err = l.serve(ctx, cancel)
		cancel(nil)
		l.busy.Wait()
		if lost := new(LostError); !errors.As(err, &lost) {
			break
		}
	}
	if late := c.printer.flush(t.Context()); late != nil {
		t.Error(late)
	}
	return c, status, err
}

// proven says whether some frame of what was sent is an end of a stage with so much
// output and this status.
func proven(total int64, status agent.Status, connections ...[]byte) bool {
	for _, sent := range connections {
		r := agent.NewReader(bytes.NewReader(sent))
		for {
			f, err := r.Next()
			if err != nil {
				break
			}
			if f.Kind != agent.KindEnd || int64(f.Offset) != total {
				continue
			}
			if s, err := agent.ParseStatus(f.Payload); err == nil && s == status {
				return true
			}
		}
	}
	return false
}

// checkListening has every kind of follower listen, and looks at the end.
func checkListening(t *testing.T, connections ...[]byte) {
	t.Helper()
	sent := 0
	for _, one := range connections {
		sent += len(one)
	}
	for name, stage := range stagesOf(nil) {
		var out bytes.Buffer
		stage.Output = &out
		if stage.Apart {
			stage.Errors = &out
		}
		c, status, err := listen(t, stage, connections...)
		if err == nil && !proven(c.taken, status, connections...) {
			t.Errorf("%s: ended with %+v after %d bytes, which nobody has said", name, status, c.taken)
		}
		if c.taken < stage.Offset || stage.Script != nil && c.taken != int64(out.Len()) {
			t.Errorf("%s: %d bytes were taken, %d printed", name, c.taken, out.Len())
		}
		if out.Len() > sent || cap(c.printer.buffer) > 2*agent.MaxPayload {
			t.Errorf("%s: %d bytes were sent, %d printed, room for %d was made", name, sent, out.Len(), cap(c.printer.buffer))
		}
	}
}

// Whatever comes in place of an agent's frames: no panic, no end that the agent has
// not said, no more output than came.
func FuzzFollowBytes(f *testing.F) {
	whole := agent.Frame{Kind: agent.KindBegun}.Append(nil)
	whole = agent.Frame{Kind: agent.KindData, Payload: []byte("abc")}.Append(whole)
	whole = agent.Frame{Kind: agent.KindEnd, Offset: 3, Payload: agent.Status{Exit: 3}.Bytes()}.Append(whole)
	f.Add(whole, []byte{})
	f.Add(whole[:30], whole)
	f.Fuzz(func(t *testing.T, first, second []byte) { checkListening(t, first, second) })
}

// Frames whose sums are right, of any kinds, in any order, with any places. Each byte
// of the recipe makes one.
func FuzzFollowFrames(f *testing.F) {
	f.Add([]byte{0, 3, 13}, int64(1), uint64(0))
	f.Add([]byte{0, 3, 4, 3, 13, 19}, int64(math.MinInt64), uint64(1<<63))
	f.Add([]byte{10, 3, 23}, int64(math.MaxInt64), uint64(math.MaxInt64))
	f.Add([]byte{0, 255, 3, 20, 13}, int64(-3), uint64(math.MaxUint64))
	f.Fuzz(func(t *testing.T, recipe []byte, jump int64, place uint64) {
		kinds := []agent.Kind{agent.KindBegun, agent.KindAlive, agent.KindMissing, agent.KindData, agent.KindErrors, agent.KindSoFar, agent.KindRefused, '?', agent.KindEnd, agent.KindStart}
		connections := [][]byte{nil}
		at := uint64(0)
		for _, b := range recipe {
			if b == 255 {
				connections = append(connections, nil)
				continue
			}
			frame := agent.Frame{Kind: kinds[int(b)%len(kinds)], Offset: at}
			switch frame.Kind {
			case agent.KindData, agent.KindErrors:
				frame.Payload = bytes.Repeat([]byte{b}, int(b)/2)
				at += uint64(len(frame.Payload))
			case agent.KindEnd:
				frame.Payload = agent.Status{Exit: int(b) / 10}.Bytes()
			case agent.KindRefused, agent.KindBegun:
				frame.Payload = binary.BigEndian.AppendUint64(nil, place)
			}
			switch int(b) / len(kinds) % 5 {
			case 1:
				frame.Offset = place
			case 2:
				frame.Offset += uint64(jump)
			}
			last := len(connections) - 1
			connections[last] = frame.Append(connections[last])
		}
		checkListening(t, connections...)
	})
}

// What a server sends over SPDY is bounded and in order once it has passed the guard.
func FuzzSPDYGuard(f *testing.F) {
	ping := "\x80\x03\x00\x06\x00\x00\x00\x04\x00\x00\x00\x01"
	f.Add([]byte(ping + ping))
	f.Add([]byte("\x80\x03\x00\x02\x00\x00\x00\x04\x00\x00\x00\x01\x00\x00\x00\x01\x01\x00\x00\x03abc"))
	f.Add(append([]byte("\x00\x00\x00\x03\x01\x01\x00\x01"), make([]byte, 65537)...))
	f.Fuzz(func(t *testing.T, sent []byte) {
		passed, _ := io.ReadAll(guardOver(sent))
		checkSPDY(t, sent, passed)
	})
}
