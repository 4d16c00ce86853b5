package stream_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/socialweb-computer/tenant-executor/kube/stream"
	"github.com/socialweb-computer/tenant-executor/kube/stream/agent"
)

// Looking acknowledges nothing, and hears what is gone, at the beginning and in
// between.
func TestLooking(t *testing.T) {
	t.Parallel()
	piece := strings.Repeat("x", agent.MaxPayload)
	const pieces = 20
	c := newCourse(t, func(p *peer) {
		if !p.request.Look || p.request.Now {
			t.Errorf("the request is %+v", p.request)
		}
		p.send(agent.KindBegun, 100, "")
		for i := range pieces {
			p.send(agent.KindData, 100+i*len(piece), piece)
		}
	}, func(p *peer) {
		at := int(p.offset) + 50
		p.send(agent.KindBegun, at, "")
		for range pieces {
			p.send(agent.KindData, at, piece)
			at += len(piece)
		}
		p.end(at, 3)
		for {
			f, err := p.frames.Next()
			if err != nil {
				return
			}
			if f.Kind == agent.KindAck {
				t.Error("somebody who only looks acknowledges output")
			}
		}
	})
	s := c.stage(&c.output)
	s.Script, s.Look = nil, true
	var freed []int64
	f := c.follower()
	f.Freed = func(bytes int64) { freed = append(freed, bytes) }
	if status, err := f.Run(t.Context(), s, nil); err != nil || status.Exit != 3 || c.output.Len() != 2*pieces*len(piece) {
		t.Errorf("ended with %+v, %v and %d bytes", status, err, c.output.Len())
	}
	if !slices.Equal(freed, []int64{100, 50}) {
		t.Errorf("freed %v", freed)
	}
}

// A look at a stage that goes on ends where its output does, and only there.
func TestLookNow(t *testing.T) {
	t.Parallel()
	c := newCourse(t, func(p *peer) {
		p.begin()
		p.send(agent.KindData, 0, "abc")
		p.send(agent.KindSoFar, 7, "")
	}, func(p *peer) {
		p.begin()
		p.send(agent.KindData, 3, "defg")
		p.send(agent.KindSoFar, 7, "")
	})
	s := c.stage(&c.output)
	s.Script, s.Look, s.Now = nil, true, true
	if _, err := c.follower().Run(t.Context(), s, nil); !errors.Is(err, stream.ErrGoesOn) || c.output.String() != "abcdefg" {
		t.Errorf("ended with %v and %q", err, c.output.String())
	}
}
