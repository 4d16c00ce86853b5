package stream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/socialweb-computer/tenant-executor/kube/stream/agent"
)

// link is one connection to the agent.
type link struct {
	course *course
	frames *agent.Reader

	// start and from open the connection.
	start agent.Request
	from  int64

	sending sync.Mutex
	to      io.Writer
	busy    sync.WaitGroup

	// spoke is whether the agent has sent anything.
	spoke bool
}

// silenceError says that the other side gave no sign of life.
type silenceError struct{ after time.Duration }

func (e *silenceError) Error() string { return fmt.Sprintf("no sign of life for %s", e.after) }

// Acknowledgements are sent after so many bytes.
const ackEvery = 256 << 10

func (l *link) send(f agent.Frame) error {
	l.sending.Lock()
	defer l.sending.Unlock()
	return f.Write(l.to)
}

// serve speaks with the agent until the stage's end or the connection's.
func (l *link) serve(ctx context.Context, cancel context.CancelCauseFunc) (agent.Status, error) {
	alive := make(chan struct{}, 1)
	l.busy.Go(func() { l.watch(ctx, cancel, alive) })
	l.busy.Go(func() { l.open(ctx) })

	type end struct {
		status agent.Status
		err    error
	}
	over := make(chan end, 1)
	l.busy.Go(func() {
		status, err := l.receive(alive)
		over <- end{status, err}
	})
	select {
	case e := <-over:
		return e.status, e.err
	case <-ctx.Done():
		return agent.Status{}, context.Cause(ctx)
	}
}

// open sends the request and the script, then passes on what the driver has to
// say: signs of life, and a stop.
func (l *link) open(ctx context.Context) {
	c := l.course
	if l.send(agent.Frame{Kind: agent.KindStart, Offset: uint64(l.from), Payload: l.start.Bytes()}) != nil {
		return // the receiver finds out why
	}
	if l.start.Sum != "" {
		for at := 0; at < len(c.stage.Script); at += agent.MaxPayload {
			part := c.stage.Script[at:min(at+agent.MaxPayload, len(c.stage.Script))]
			if l.send(agent.Frame{Kind: agent.KindScript, Offset: uint64(at), Payload: part}) != nil {
				return
			}
		}
	}
	if c.stopping && l.sendStop() != nil {
		return
	}
	for {
		select {
		case <-ctx.Done():
			return
		case grace := <-c.stop:
			c.stopping, c.grace = true, grace
			if l.sendStop() != nil {
				return
			}
		case <-c.follower.Clock.After(c.follower.Bounds.Silence / 3):
			if l.send(agent.Frame{Kind: agent.KindAlive}) != nil {
				return
			}
		}
	}
}

func (l *link) sendStop() error {
	return l.send(agent.Frame{Kind: agent.KindStop, Offset: uint64(l.course.grace / time.Millisecond)})
}

// watch ends the connection when nothing has come for too long.
func (l *link) watch(ctx context.Context, cancel context.CancelCauseFunc, alive <-chan struct{}) {
	silence := l.course.follower.Bounds.Silence
	for {
		select {
		case <-ctx.Done():
			return
		case <-alive:
		case <-l.course.follower.Clock.After(silence):
			cancel(&silenceError{after: silence})
			return
		}
	}
}

// receive takes the agent's frames until the end of the stage.
func (l *link) receive(alive chan<- struct{}) (agent.Status, error) {
	c := l.course
	acked := c.printed
	for {
		frame, err := l.frames.Next()
		if err != nil {
			return agent.Status{}, &LostError{Err: err}
		}
		l.spoke = true
		select {
		case alive <- struct{}{}:
		default:
		}
		switch frame.Kind {
		case agent.KindAlive:
		case agent.KindBegun:
			if err := c.begin(int64(frame.Offset)); err != nil {
				return agent.Status{}, err
			}
		case agent.KindData:
			if err := c.print(int64(frame.Offset), frame.Payload); err != nil {
				return agent.Status{}, err
			}
			if c.printed-acked >= ackEvery {
				acked = c.printed
				if err := l.send(agent.Frame{Kind: agent.KindAck, Offset: uint64(acked)}); err != nil {
					return agent.Status{}, &LostError{Err: err}
				}
			}
		case agent.KindEnd:
			return c.end(int64(frame.Offset), frame.Payload)
		case agent.KindMissing:
			return agent.Status{}, &VanishedError{}
		case agent.KindRefused:
			return agent.Status{}, &RefusedError{Text: string(frame.Payload)}
		default:
			return agent.Status{}, &LostError{Err: agent.ErrCorrupt}
		}
		c.restored()
	}
}

// errGap says that the agent does not have the output from where it is wanted.
var errGap = errors.New("output is missing")

func (c *course) begin(from int64) error {
	if from != c.printed {
		if c.begun || c.stage.Script != nil {
			return &RefusedError{Text: fmt.Sprintf("the output from byte %d to %d is gone", c.printed, from)}
		}
		c.printed = from // attaching by hand takes what there is
	}
	c.begun = true
	return nil
}

// print writes what is new of a frame. A frame that came before is passed
// over; one that leaves a gap ends the connection, and the next one asks again.
func (c *course) print(offset int64, payload []byte) error {
	if !c.begun || offset > c.printed {
		return &LostError{Err: errGap}
	}
	if known := c.printed - offset; known < int64(len(payload)) {
		n, err := c.stage.Output.Write(payload[known:])
		c.printed += int64(n)
		if err != nil {
			return &outputError{err}
		}
	}
	return nil
}

// end accepts the end of the stage only when all output is there.
func (c *course) end(total int64, payload []byte) (agent.Status, error) {
	if !c.begun || total != c.printed {
		return agent.Status{}, &LostError{Err: errGap}
	}
	status, err := agent.ParseStatus(payload)
	if err != nil {
		return agent.Status{}, &LostError{Err: err}
	}
	return status, nil
}
