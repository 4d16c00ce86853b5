package stream_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/socialweb-computer/tenant-executor/kube/stream/agent"
)

// stopPatience is how long a connection that is held up has for a stop.
const stopPatience = 3 * time.Second

// blocked is a reader that takes nothing until it is released.
type blocked struct {
	entered chan struct{}
	release chan struct{}
	taken   []byte
}

func (b *blocked) Write(p []byte) (int, error) {
	select {
	case b.entered <- struct{}{}:
	default:
	}
	<-b.release
	b.taken = append(b.taken, p...)
	return len(p), nil
}

// While the reader of the output stands still the connection is not given up
// for its silence, and a stop gets through, over a new connection if need be.
func TestFollowerWithAReaderThatStandsStill(t *testing.T) {
	t.Parallel()
	out := &blocked{entered: make(chan struct{}, 1), release: make(chan struct{})}
	stop := make(chan time.Duration)
	c := newCourse(t,
		func(p *peer) {
			p.begin()
			p.send(agent.KindData, 0, "0123")
			p.send(agent.KindData, 4, "4567")
			p.exec.WaitGone()
		},
		func(p *peer) {
			if p.offset != 4 {
				t.Errorf("the second connection wants byte %d", p.offset)
			}
			p.begin()
			p.awaitFrame(agent.KindStop)
			close(out.release)
			p.send(agent.KindData, 4, "4567")
			p.send(agent.KindEnd, 8, string(agent.Status{Signal: 15, Stopped: true}.Bytes()))
		})
	go func() {
		<-out.entered
		stop <- time.Second
		for {
			select {
			case d := <-c.clock.set:
				if d == stopPatience {
					c.clock.fire(d)
				}
			case <-out.release:
				return
			}
		}
	}()
	status, err := c.follower().Run(t.Context(), c.stage(out), stop)
	if err != nil || !status.Stopped || string(out.taken) != "01234567" {
		t.Errorf("ended with %+v, %v and output %q", status, err, out.taken)
	}
}

// Run ends with its context, whatever the reader of the output does.
func TestFollowerEndsWithItsContext(t *testing.T) {
	t.Parallel()
	out := &blocked{entered: make(chan struct{}, 1), release: make(chan struct{})}
	defer close(out.release)
	c := newCourse(t, func(p *peer) {
		p.begin()
		p.send(agent.KindData, 0, "0123")
		p.exec.WaitGone()
	})
	reason := errors.New("the Pod is gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() {
		<-out.entered
		cancel(reason)
	}()
	if status, err := c.follower().Run(ctx, c.stage(out), nil); !errors.Is(err, reason) {
		t.Errorf("ended with %+v, %v", status, err)
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

// Output that cannot be written is no reason to connect again.
func TestFollowerCannotWrite(t *testing.T) {
	t.Parallel()
	c := newCourse(t, func(p *peer) {
		p.begin()
		p.send(agent.KindData, 0, "0123")
		p.end(4, 0)
	})
	reason := errors.New("no space left on device")
	if status, err := c.follower().Run(t.Context(), c.stage(failing{reason}), nil); !errors.Is(err, reason) {
		t.Errorf("ended with %+v, %v", status, err)
	}
}
