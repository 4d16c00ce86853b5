package daemon

import (
	"context"
	"sync"
	"time"
)

// Step is one line of the daemon's start, as `up` reads it.
type Step struct {
	// Name of what has been started, and how long that took.
	Name string        `json:"name,omitempty"`
	Took time.Duration `json:"took,omitempty"`
	// Ready ends a start that worked, Error one that did not.
	Ready bool   `json:"ready,omitempty"`
	Error string `json:"error,omitempty"`
}

func (s Step) last() bool { return s.Ready || s.Error != "" }

// signal wakes everybody who waits for a change.
type signal struct {
	mu   sync.Mutex
	next chan struct{}
}

func newSignal() *signal { return &signal{next: make(chan struct{})} }

// wait gives a channel that is closed at the next change. Take it before
// looking, or a change in between is missed.
func (s *signal) wait() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.next
}

func (s *signal) changed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.next)
	s.next = make(chan struct{})
}

// progress keeps the steps of the start, for readers that come early or late.
type progress struct {
	now    func() time.Time
	change *signal

	mu    sync.Mutex
	began time.Time
	steps []Step
}

func newProgress(now func() time.Time) *progress {
	return &progress{now: now, began: now(), change: newSignal()}
}

// done notes a step; its time runs from the step before.
func (p *progress) done(name string) {
	p.mu.Lock()
	now := p.now()
	p.steps = append(p.steps, Step{Name: name, Took: now.Sub(p.began)})
	p.began = now
	p.mu.Unlock()
	p.change.changed()
}

// end notes how the start has ended.
func (p *progress) end(err error) {
	step := Step{Ready: true}
	if err != nil {
		step = Step{Error: err.Error()}
	}
	p.mu.Lock()
	p.steps = append(p.steps, step)
	p.mu.Unlock()
	p.change.changed()
}

// follow hands each step to tell, until the last.
func (p *progress) follow(ctx context.Context, tell func(Step) error) error {
	for seen := 0; ; {
		change := p.change.wait()
		p.mu.Lock()
		fresh := p.steps[seen:]
		p.mu.Unlock()
		for _, step := range fresh {
			seen++
			if err := tell(step); err != nil || step.last() {
				return err
			}
		}
		select {
		case <-change:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// isReady tells whether the start is over and worked.
func (p *progress) isReady() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.steps) > 0 && p.steps[len(p.steps)-1].Ready
}
