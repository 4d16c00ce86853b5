package pods

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Clock tells the time and makes timers; tests hand in their own.
type Clock interface {
	Now() time.Time
	// After sends once d has passed.
	After(d time.Duration) <-chan time.Time
}

// Budgets is how long a Pod may stay in each phase.
type Budgets struct {
	Node, Start time.Duration
	// Pull is how long a container's image may fail to be pulled for reasons
	// that may pass; nil leaves that to Start.
	Pull func(container string) time.Duration
}

func (b Budgets) of(phase Phase) time.Duration {
	if phase == Unscheduled {
		return b.Node
	}
	return b.Start
}

// Timing is how long a Pod stayed in each phase until it ran.
type Timing struct{ Node, Start time.Duration }

// Observer hears how the wait goes.
type Observer interface {
	// Waiting is called when the phase or its reason changes, and every so often
	// while nothing does: what the Pod waits for may change without it, such as
	// its place in a queue. InPhase is the time in the phase so far.
	Waiting(ctx context.Context, state State, inPhase time.Duration)
	// Started is called once for each container that runs or has run, whether or
	// not it counts as started for Kubernetes.
	Started(container string)
	// Blind is called when the Pod cannot be read at present.
	Blind(err error)
}

// heartbeat is how often an Observer hears of a wait without change.
const heartbeat = 10 * time.Second

// PhaseTimeoutError says that the Pod used up the budget of a phase.
type PhaseTimeoutError struct {
	State State
	After time.Duration
}

// Error says in which phase, and what the cluster last said.
func (e *PhaseTimeoutError) Error() string {
	text := fmt.Sprintf("the Pod was still %s after %s", e.State.Phase, e.After.Round(time.Second))
	if e.State.Detail != "" {
		text += ": " + e.State.Detail
	}
	return text
}

// FailedError says that the Pod will not run.
type FailedError struct{ State State }

// Error is what the cluster says about it.
func (e *FailedError) Error() string {
	if e.State.Detail == "" {
		return "the Pod ended before it ran"
	}
	return "the Pod ended before it ran: " + e.State.Detail
}

// ContainerError says that a container of the Pod cannot start, and why.
type ContainerError struct {
	Problem Problem
	// Node is where the container is.
	Node string
	// After is how long a problem that may pass has lasted; 0 for others.
	After time.Duration
}

// Error names the container, its image and the kubelet's words.
func (e *ContainerError) Error() string {
	p := e.Problem
	return fmt.Sprintf("container %s with image %s: %s", p.Container, p.Image, p.Words())
}

// GoneError says that the Pod was deleted while it was waited for.
type GoneError struct{ Ref Ref }

// Error names the Pod.
func (e *GoneError) Error() string { return fmt.Sprintf("Pod %s was deleted", e.Ref) }

// Await waits until the Pod runs, by the roles of its containers. Its error is a
// *PhaseTimeoutError, *FailedError, *ContainerError or *GoneError, or that of
// ctx.
func (c *Client) Await(ctx context.Context, pod *corev1.Pod, budgets Budgets, clock Clock, observer Observer, roles Roles) (*corev1.Pod, Timing, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w := newWaiting(RefTo(pod), budgets, clock, observer, roles)
	return w.run(ctx, c.Follow(ctx, pod, clock))
}

// waiting is one wait: where the Pod is, and since when.
type waiting struct {
	ref      Ref
	budgets  Budgets
	clock    Clock
	observer Observer
	roles    Roles

	state   State
	started map[string]bool
	phase   Phase
	entered time.Time
	timing  Timing

	// seen is the Pod as it was last, failing since when the pull of each
	// container's image has failed, and pull when the first of them has used up
	// its budget, at due.
	seen    State
	failing map[string]time.Time
	pull    <-chan time.Time
	due     time.Time
}

func newWaiting(ref Ref, budgets Budgets, clock Clock, observer Observer, roles Roles) *waiting {
	return &waiting{
		ref: ref, budgets: budgets, clock: clock, observer: observer, roles: roles,
		started: map[string]bool{}, phase: Unscheduled, entered: clock.Now(),
	}
}

func (w *waiting) run(ctx context.Context, changes <-chan Change) (*corev1.Pod, Timing, error) {
	limit := w.clock.After(w.budgets.of(w.phase))
	beat := w.clock.After(heartbeat)
	for {
		select {
		case <-ctx.Done():
			return nil, w.timing, ctx.Err()
		case <-limit:
			return nil, w.timing, &PhaseTimeoutError{State: w.state, After: w.inPhase()}
		case <-w.pull:
			if err := w.pulls(w.seen); err != nil {
				return nil, w.timing, err
			}
		case <-beat:
			w.observer.Waiting(ctx, w.state, w.inPhase())
			beat = w.clock.After(heartbeat)
		case change, open := <-changes:
			switch {
			case !open && ctx.Err() != nil:
				return nil, w.timing, ctx.Err()
			case !open || change.Gone:
				return nil, w.timing, &GoneError{Ref: w.ref}
			case change.Err != nil:
				w.observer.Blind(change.Err)
				continue
			}
			before := w.phase
			done, err := w.take(ctx, change.Pod)
			if done || err != nil {
				return change.Pod, w.timing, err
			}
			if w.phase != before {
				limit, beat = w.clock.After(w.budgets.of(w.phase)), w.clock.After(heartbeat)
			}
		}
	}
}

// take looks at a new version of the Pod.
func (w *waiting) take(ctx context.Context, pod *corev1.Pod) (done bool, err error) {
	if pod.DeletionTimestamp != nil {
		return false, &GoneError{Ref: w.ref}
	}
	w.tellStarted(pod)
	state := w.roles.StateOf(pod)
	if p := state.final(); p != nil {
		return false, &ContainerError{Problem: *p, Node: state.Node}
	}
	w.seen = state
	if err := w.pulls(state); err != nil {
		return false, err
	}
	if state.Phase == Ended {
		if p := state.culprit(); p != nil && pod.Status.Reason == "" {
			return false, &ContainerError{Problem: *p, Node: state.Node}
		}
		return false, &FailedError{State: state}
	}
	if state.Phase != w.phase {
		w.leave(state.Phase)
	}
	if state.Phase == Running {
		return true, nil
	}
	if state.Phase != w.state.Phase || state.Detail != w.state.Detail || w.state.Node != state.Node {
		w.state = state
		w.observer.Waiting(ctx, state, w.inPhase())
	}
	return false, nil
}

// tellStarted tells which containers have started.
func (w *waiting) tellStarted(pod *corev1.Pod) {
	for _, c := range pod.Status.ContainerStatuses {
		if ran := c.State.Running != nil || c.State.Terminated != nil; ran && !w.started[c.Name] {
			w.started[c.Name] = true
			w.observer.Started(c.Name)
		}
	}
}

// leave books the time of the phase that ends.
func (w *waiting) leave(next Phase) {
	now := w.clock.Now()
	switch w.phase {
	case Unscheduled:
		w.timing.Node += now.Sub(w.entered)
	case Starting:
		w.timing.Start += now.Sub(w.entered)
	}
	w.phase, w.entered = next, now
}

func (w *waiting) inPhase() time.Duration { return w.clock.Now().Sub(w.entered) }
