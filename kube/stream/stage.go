package stream

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/socialweb-computer/tenant-executor/kube/bounded"
	"github.com/socialweb-computer/tenant-executor/kube/cluster"
	"github.com/socialweb-computer/tenant-executor/kube/crash"
	"github.com/socialweb-computer/tenant-executor/kube/stream/agent"
)

// Stage is one run of one script in one container, by the agent there.
type Stage struct {
	Namespace, Pod, Container string
	// Agent is the agent's program in the container, Folder where it keeps the
	// stages of this container.
	Agent, Folder string
	// Name tells this run from every other in the container.
	Name string
	// Script is sent once. Without one the stage has to run already, or to
	// have run.
	Script []byte
	// Umask, Path and Apart are those of agent.Request. A stage without a Script
	// has to have been started with Apart, or Run ends with ErrNotApart.
	Umask int
	Path  string
	Apart bool
	// Output gets the script's output. A Write that has not returned when Run
	// has to end is left behind.
	Output io.Writer
	// Errors gets what was written to stderr, of a stage that keeps the streams
	// apart; nil gives it to Output.
	Errors io.Writer
	// Offset is the first byte of the output that is wanted.
	Offset int64
	// Look only looks: what is printed here is not freed in the Pod, where the
	// driver of the stage still wants it. Now ends with ErrGoesOn at the present
	// end of the output. Both are for stages without a Script.
	Look, Now bool
}

// ErrGoesOn is how Run ends, of a Stage with Now, where the stage goes on.
var ErrGoesOn = errors.New("the stage goes on")

// ErrNotApart is how Run ends, of a Stage with Apart and without a Script, where
// the stage does not keep the streams of its output apart.
var ErrNotApart = errors.New("the stage does not keep stdout and stderr apart")

// Bounds are the limits of following a stage.
type Bounds struct {
	// Spool is how many bytes of output may wait in the Pod.
	Spool int64
	// Silence is how long a connection may be without any sign of life.
	Silence time.Duration
	// Outage is how long it is tried to reach the stage again.
	Outage time.Duration
}

// Clock tells the time and makes timers.
type Clock interface {
	Now() time.Time
	After(d time.Duration) <-chan time.Time
}

// Follower runs stages to their proven end, over as many connections as that
// takes.
type Follower struct {
	Runner *Runner
	Bounds Bounds
	Clock  Clock
	// Broken hears of an outage once it has lasted noticeAfter, Restored of
	// its end. Begun is whether the stage is known to have begun. An error of
	// Broken ends Run: there is nothing to be reached any more.
	Broken   func(ctx context.Context, begun bool, err error) error
	Restored func(after time.Duration)
	// Freed hears how many bytes of the output are passed over, since they are
	// not there any more, of a Stage without a Script; nil for nobody.
	Freed func(bytes int64)
	// Again hears of every connection that was lost and found again, however
	// soon; nil for nobody. After is since the stage was last heard of.
	Again func(after time.Duration)
}

// noticeAfter is how long an outage lasts before it is worth a line.
const noticeAfter = 5 * time.Second

// Pauses between two tries to connect. The last is for an agent that answers
// and brings nothing: each try is a command in the Pod.
const (
	firstPause   = 20 * time.Millisecond
	longestPause = 2 * time.Second
	vainPause    = 5 * time.Second
)

// OutageError says that the stage could not be reached again in time, or that
// connections to it have brought nothing for so long.
type OutageError struct {
	// Begun is whether the agent has said that the stage had begun.
	Begun bool
	// Arrived is how many bytes of output had arrived.
	Arrived int64
	After   time.Duration
	Err     error
}

// Error says what is known of the stage.
func (e *OutageError) Error() string {
	return fmt.Sprintf("the stage could not be reached for %s; %s: %v", e.After.Round(time.Second), e.Known(), e.Err)
}

// Known is what is known of the stage.
func (e *OutageError) Known() string {
	if !e.Begun {
		return "it is not known whether the script has begun"
	}
	return fmt.Sprintf("when last heard of, the script was running and had written %d bytes", e.Arrived)
}

// Unwrap is the error of the last try.
func (e *OutageError) Unwrap() error { return e.Err }

// FinalError says that the stage cannot be followed, and that another
// connection would not help.
type FinalError struct {
	// Begun is whether the agent has said that the stage had begun.
	Begun bool
	Err   error
}

// Error is what came in between.
func (e *FinalError) Error() string { return e.Err.Error() }

// Unwrap is what came in between.
func (e *FinalError) Unwrap() error { return e.Err }

// VanishedError says that the stage's files are gone: the container was
// started anew, or its volume was emptied.
type VanishedError struct{}

// Error says so.
func (*VanishedError) Error() string { return "the stage is not known in the container any more" }

// RefusedError is the agent's word that it cannot do what it was asked.
type RefusedError struct{ Text string }

// Error is the agent's word.
func (e *RefusedError) Error() string { return "the agent in the Pod: " + e.Text }

// Run runs the stage to its end. Stop, when something arrives on it, has the
// stage's processes ended with that grace; Run still waits for the end. The
// Status is there only if the agent has sent it.
func (f *Follower) Run(ctx context.Context, stage Stage, stop <-chan time.Duration) (agent.Status, error) {
	now := f.Clock.Now()
	c := &course{follower: f, stage: stage, taken: stage.Offset, stop: stop, lastSeen: now, sound: now, printer: &printer{}}
	status, err := c.run(ctx)
	// What has arrived comes before whatever is said of the end.
	if late := c.printer.flush(ctx); err == nil {
		err = late
	}
	return status, err
}

// run connects again and again, until the end of the stage is known.
func (c *course) run(ctx context.Context) (agent.Status, error) {
	f := c.follower
	pause := firstPause
	warmup := f.Runner.cluster.AuthWarmup(f.Clock.Now)
	for {
		before := c.sound
		status, err := c.connect(ctx)
		if err == nil {
			c.heard(true, 0)
			return status, nil
		}
		if errors.Is(err, ErrGoesOn) {
			return agent.Status{}, ErrGoesOn
		}
		if ctx.Err() != nil {
			return agent.Status{}, context.Cause(ctx)
		}
		if warming := warmup.MayPass(ctx, err); !warming && final(err) {
			return agent.Status{}, &FinalError{Begun: c.begun, Err: err}
		}
		// The cluster may have moved: to another port, to other certificates.
		f.Runner.cluster.Refind(ctx, err)
		if c.sound != before {
			pause = firstPause
		}
		if out := f.Clock.Now().Sub(c.sound); out > f.Bounds.Outage {
			return agent.Status{}, &OutageError{Begun: c.begun, Arrived: c.taken, After: out, Err: err}
		}
		if err := c.broken(ctx, err); err != nil {
			return agent.Status{}, err
		}
		select {
		case <-ctx.Done():
			return agent.Status{}, context.Cause(ctx)
		case <-f.Clock.After(pause):
		}
		pause = min(2*pause, c.longestPause())
	}
}

// final reports whether another connection cannot help.
func final(err error) bool {
	var vanished *VanishedError
	var refused *RefusedError
	var runtime *RuntimeError
	var output *outputError
	var notStarted *NotStartedError
	switch {
	case errors.As(err, &vanished), errors.As(err, &refused), errors.As(err, &output), errors.Is(err, ErrNotApart):
		return true
	case errors.As(err, &runtime):
		// While a container runtime restarts, it answers all sorts of things.
		// Only "no such program" is an answer about the command.
		return strings.Contains(runtime.Message, "no such file") || strings.Contains(runtime.Message, "not found") && !strings.Contains(runtime.Message, "container")
	case errors.As(err, &notStarted):
		// Whoever listens at the port may be another cluster, until the driver
		// is told where its own has gone.
		return !MayReachLater(err) && !cluster.Foreign(err)
	}
	return false
}

// writer is where output of a stream goes.
func (s Stage) writer(stream agent.Stream) io.Writer {
	if stream == agent.Stderr && s.Errors != nil {
		return s.Errors
	}
	return s.Output
}

// outputError says that the output could not be written where it was to go.
type outputError struct{ err error }

func (e *outputError) Error() string { return "writing the output: " + e.err.Error() }
func (e *outputError) Unwrap() error { return e.err }

// endedError says that the agent's command has ended, and the stage has not.
type endedError struct {
	code  int
	words string
}

func (e *endedError) Error() string {
	text := fmt.Sprintf("the agent ended with exit code %d", e.code)
	if e.words != "" {
		text += ": " + e.words
	}
	return text
}

// course is one stage over all of its connections.
type course struct {
	follower *Follower
	stage    Stage
	stop     <-chan time.Duration

	begun bool
	// taken is how many bytes of output have been handed to the printer.
	taken   int64
	printer *printer

	grace    time.Duration
	stopping bool

	// lastSeen is when the last frame came, sound until when the stage was well
	// followed. A connection that brings nothing and soon breaks is no proof of
	// that: ended is how many have broken since there was one.
	lastSeen, sound time.Time
	ended           int
	// lost is whether a connection has broken and no other has been heard of
	// yet; said, whether that was told.
	lost, said bool
}

// broken notes that a connection has ended, and tells of an outage.
func (c *course) broken(ctx context.Context, err error) error {
	c.lost = true
	// While nobody reads there is nobody to tell.
	if !c.said && c.follower.Clock.Now().Sub(c.sound) >= noticeAfter && c.printer.idle() {
		if err := c.follower.Broken(ctx, c.begun, err); err != nil {
			return err
		}
		c.said = true
	}
	return nil
}

// longestPause is how long a pause before the next connection may get.
func (c *course) longestPause() time.Duration {
	if c.ended > 1 {
		return vainPause
	}
	return longestPause
}

// heard notes that a frame has come, over a connection that has stood for so
// long. Progress is whether it has brought anything.
func (c *course) heard(progress bool, stood time.Duration) {
	now := c.follower.Clock.Now()
	if c.lost && c.follower.Again != nil {
		c.follower.Again(now.Sub(c.lastSeen))
	}
	c.lost, c.lastSeen = false, now
	if progress || stood >= c.follower.Bounds.Silence {
		c.ended = 0
	}
	if c.said && c.ended <= 1 && c.printer.idle() {
		c.said = false
		c.follower.Restored(now.Sub(c.sound))
	}
	if c.ended == 0 {
		c.sound = now
	}
}

// request opens a connection. Once the stage has begun the script is never
// sent again.
func (c *course) request() agent.Request {
	r := agent.Request{
		Stage:   c.stage.Name,
		Limit:   c.follower.Bounds.Spool,
		Silence: max(int(c.follower.Bounds.Silence/time.Second), 1),
		Umask:   c.stage.Umask,
		Path:    c.stage.Path,
		Apart:   c.stage.Apart,
		Look:    c.stage.Look,
		Owner:   c.stage.Script != nil,
		Now:     c.stage.Now,
	}
	if !c.begun && c.stage.Script != nil {
		sum := sha256.Sum256(c.stage.Script)
		r.Size, r.Sum = int64(len(c.stage.Script)), string(sum[:])
	}
	return r
}

// connect follows the stage over one connection.
func (c *course) connect(ctx context.Context) (agent.Status, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	in, toAgent := io.Pipe()
	fromAgent, out := io.Pipe()
	var stderr bounded.Buffer // the agent has a line to say there at the most
	ended := make(chan error, 1)
	crash.Go(ctx, func() {
		code, err := c.follower.Runner.Run(ctx, Command{
			Namespace: c.stage.Namespace, Pod: c.stage.Pod, Container: c.stage.Container,
			Args:  []string{c.stage.Agent, agent.VerbFront, c.stage.Folder},
			Stdin: in, Stdout: out, Stderr: &stderr,
		})
		if err == nil {
			err = &endedError{code: code, words: strings.TrimSpace(stderr.String())}
		}
		ended <- err
		_ = out.CloseWithError(err)
		_ = in.CloseWithError(err)
	})
	l := &link{course: c, frames: agent.NewReader(fromAgent), to: toAgent, opened: make(chan struct{}), start: c.request(), from: c.taken, stopping: c.stopping, grace: c.grace}
	status, err := l.serve(ctx, cancel)
	// Nothing of this connection may be at work while the next one is.
	cancel(err)
	_ = fromAgent.CloseWithError(io.ErrClosedPipe)
	_ = toAgent.CloseWithError(io.ErrClosedPipe)
	l.busy.Wait()
	reason := <-ended
	if l.spoke {
		c.ended++
	}
	var lost *LostError
	if errors.As(err, &lost) && !l.spoke {
		// Nothing came from the agent: the cluster knows more.
		err = reason
	}
	return status, err
}
