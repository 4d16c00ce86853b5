package stream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/socialweb-computer/tenant-executor/kube/crash"
	"github.com/socialweb-computer/tenant-executor/kube/stream/agent"
)

// link is one connection to the agent.
type link struct {
	course *course
	frames *agent.Reader

	// start and from open the connection; stopping is whether the stage is to
	// be ended, with that grace.
	start    agent.Request
	from     int64
	stopping bool
	grace    time.Duration

	sending sync.Mutex
	to      io.Writer
	// opened is closed once the request and the script are sent: what is sent
	// before or among them is not understood.
	opened chan struct{}
	busy   sync.WaitGroup

	// spoke is whether the agent has sent anything, begun whether it has said
	// on this connection where the output goes on.
	spoke, begun bool
	// held is set while the reader of the output holds up the connection:
	// nothing is taken off it meanwhile.
	held atomic.Bool
}

// silenceError says that the other side gave no sign of life.
type silenceError struct{ after time.Duration }

func (e *silenceError) Error() string {
	return fmt.Sprintf("no sign of life for %d s", int(e.after.Seconds()))
}

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
	l.busy.Go(crash.Guard(ctx, func() { l.watch(ctx, cancel, alive) }))
	l.busy.Go(crash.Guard(ctx, func() { l.open(ctx) }))
	l.busy.Go(crash.Guard(ctx, func() { l.awaitStop(ctx, cancel) }))

	type end struct {
		status agent.Status
		err    error
	}
	over := make(chan end, 1)
	l.busy.Go(crash.Guard(ctx, func() {
		status, err := l.receive(ctx, alive)
		over <- end{status, err}
	}))
	select {
	case e := <-over:
		return e.status, e.err
	case <-ctx.Done():
		return agent.Status{}, context.Cause(ctx)
	}
}

// open sends the request and the script, then signs of life.
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
	close(l.opened)
	if l.stopping && l.sendStop(l.grace) != nil {
		return
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.follower.Clock.After(c.follower.Bounds.Silence / 3):
			if l.send(agent.Frame{Kind: agent.KindAlive}) != nil {
				return
			}
		}
	}
}

// stopPatience is how long a connection that its reader holds up may take to
// deliver a stop.
const stopPatience = 3 * time.Second

// awaitStop passes a stop on. A connection from which nothing is taken may be
// stuck in the other direction too: a server of SPDY answers pings and takes
// the input in the same goroutines (moby/spdystream, Connection.Serve). Then
// the next connection delivers the stop.
func (l *link) awaitStop(ctx context.Context, cancel context.CancelCauseFunc) {
	c := l.course
	var late <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case grace := <-c.stop:
			c.stopping, c.grace = true, grace
			l.busy.Go(crash.Guard(ctx, func() {
				select {
				case <-ctx.Done(): // the next connection delivers it
				case <-l.opened:
					_ = l.sendStop(grace) // if it fails, the connection has ended
				}
			}))
		case <-late:
			if l.held.Load() {
				cancel(errHeld)
				return
			}
		}
		late = c.follower.Clock.After(stopPatience)
	}
}

// errHeld ends a connection that may not have delivered a stop.
var errHeld = errors.New("the connection is held up by the reader of the output")

func (l *link) sendStop(grace time.Duration) error {
	return l.send(agent.Frame{Kind: agent.KindStop, Offset: uint64(grace / time.Millisecond)})
}

// watch ends the connection when nothing has come for too long. A connection
// that waits for the reader of the output stays: a stop still gets through.
func (l *link) watch(ctx context.Context, cancel context.CancelCauseFunc, alive <-chan struct{}) {
	silence := l.course.follower.Bounds.Silence
	for {
		select {
		case <-ctx.Done():
			return
		case <-alive:
		case <-l.course.follower.Clock.After(silence):
			if l.held.Load() {
				continue
			}
			cancel(&silenceError{after: silence})
			return
		}
	}
}

// receive takes the agent's frames until the end of the stage.
func (l *link) receive(ctx context.Context, alive chan<- struct{}) (agent.Status, error) {
	c := l.course
	acked := c.taken
	var first time.Time // when the first frame came
	var noise noise
	for {
		frame, err := l.frames.Next()
		if err != nil {
			return agent.Status{}, &LostError{Err: err}
		}
		if !l.spoke {
			l.spoke, first = true, c.follower.Clock.Now()
		}
		taken, begun := c.taken, c.begun
		sign(alive)
		switch frame.Kind {
		case agent.KindAlive:
		case agent.KindBegun:
			if from := int64(frame.Offset); l.begun && from != c.taken {
				return agent.Status{}, &LostError{Err: errGap}
			}
			l.begun = true
			if err := c.begin(frame); err != nil {
				return agent.Status{}, err
			}
		case agent.KindData, agent.KindErrors:
			before := c.taken
			l.held.Store(true)
			err := c.print(ctx, frame)
			sign(alive)
			l.held.Store(false)
			if err != nil {
				return agent.Status{}, err
			}
			if !c.stage.Look && before-acked >= ackEvery {
				acked = before // this frame may not be written yet
				// If it does not get through, what comes next says why: perhaps
				// the end, which the agent has sent before it went.
				_ = l.send(agent.Frame{Kind: agent.KindAck, Offset: uint64(acked)})
			}
		case agent.KindEnd:
			return c.end(int64(frame.Offset), frame.Payload)
		case agent.KindSoFar:
			if int64(frame.Offset) != c.taken {
				return agent.Status{}, &LostError{Err: errGap}
			}
			return agent.Status{}, ErrGoesOn
		case agent.KindUnstarted:
			return c.unstarted(frame.Payload)
		case agent.KindMissing:
			return agent.Status{}, &VanishedError{}
		case agent.KindRefused:
			return agent.Status{}, &RefusedError{Text: string(frame.Payload)}
		default:
			return agent.Status{}, &LostError{Err: agent.ErrCorrupt}
		}
		progress, now := c.taken != taken || c.begun != begun, c.follower.Clock.Now()
		if err := noise.hear(progress, now); err != nil {
			return agent.Status{}, err
		}
		c.heard(progress, now.Sub(first))
	}
}

// An agent shows a sign of life a few times in Silence, however long a stage is
// quiet. More frames than these, with nothing new in them, are no agent's: they
// would keep the driver busy for as long as the job may run.
const (
	mostNoise      = 1000
	noiseInASecond = 10
)

// noise counts frames that bring nothing new, since one that did.
type noise struct {
	frames int
	since  time.Time
}

func (n *noise) hear(progress bool, now time.Time) error {
	if progress || n.frames == 0 {
		*n = noise{since: now}
	}
	n.frames++
	if n.frames > mostNoise+noiseInASecond*int(now.Sub(n.since)/time.Second) {
		return &LostError{Err: errNoise}
	}
	return nil
}

// errNoise ends a connection over which nothing comes, again and again.
var errNoise = errors.New("the agent says the same again and again")

// sign leaves a sign of life, unless one is there already.
func sign(alive chan<- struct{}) {
	select {
	case alive <- struct{}{}:
	default:
	}
}

// errGap says that the agent does not have the output from where it is wanted.
var errGap = errors.New("output is missing")

func (c *course) begin(frame agent.Frame) error {
	from := int64(frame.Offset)
	if c.stage.Apart && c.stage.Script == nil && len(frame.Payload) == 0 {
		return ErrNotApart
	}
	if from < c.taken {
		return &LostError{Err: errGap} // it has been seen
	}
	if from != c.taken {
		if !c.stage.Look && (c.begun || c.stage.Script != nil) {
			return &RefusedError{Text: fmt.Sprintf("the output from byte %d to %d is gone", c.taken, from)}
		}
		if c.follower.Freed != nil {
			c.follower.Freed(from - c.taken)
		}
		c.taken = from // attaching by hand takes what there is
	}
	c.begun = true
	return nil
}

// print writes what is new of a frame. A frame that came before is passed
// over; one that leaves a gap ends the connection, and the next one asks again.
func (c *course) print(ctx context.Context, frame agent.Frame) error {
	offset, payload, stream := int64(frame.Offset), frame.Payload, agent.Stdout
	if frame.Kind == agent.KindErrors {
		stream = agent.Stderr
	}
	if !c.begun || offset > c.taken {
		return &LostError{Err: errGap}
	}
	known := c.taken - offset
	if known >= int64(len(payload)) {
		return nil
	}
	if err := c.printer.hand(ctx, c.stage.writer(stream), payload[known:]); err != nil {
		return err
	}
	c.taken = offset + int64(len(payload))
	return nil
}

// unstarted accepts that the stage has not begun, for a reason.
func (c *course) unstarted(payload []byte) (agent.Status, error) {
	status, err := agent.ParseStatus(payload)
	if err != nil || c.begun || c.stage.Script == nil || status.Trouble == agent.TroubleNone {
		return agent.Status{}, &LostError{Err: agent.ErrCorrupt}
	}
	return status, nil
}

// end accepts the end of the stage only when all output is there.
func (c *course) end(total int64, payload []byte) (agent.Status, error) {
	if !c.begun || total != c.taken {
		return agent.Status{}, &LostError{Err: errGap}
	}
	status, err := agent.ParseStatus(payload)
	if err != nil {
		return agent.Status{}, &LostError{Err: err}
	}
	return status, nil
}
