package main

import (
	"os"
	"os/signal"
	"syscall"
	"time"
)

// catchSignals returns the signals that stop a run, and a function that gives
// them back to the system.
func catchSignals() (<-chan os.Signal, func()) {
	c := make(chan os.Signal, 4)
	signal.Notify(c, os.Interrupt, syscall.SIGTERM)
	return c, func() { signal.Stop(c) }
}

// stopper turns signals and a time limit into what the jobs understand.
type stopper struct {
	cancel, abort, shutdown chan struct{}
	say                     func(string)
}

func newStopper(say func(string)) *stopper {
	return &stopper{
		cancel: make(chan struct{}), abort: make(chan struct{}), shutdown: make(chan struct{}),
		say: say,
	}
}

// watch serves signals until done is closed. The first interrupt cancels all
// jobs gracefully, the second aborts them. A third, and a SIGTERM, is what a
// SIGTERM is to GitLab Runner: the runner shuts down.
func (s *stopper) watch(signals <-chan os.Signal, done <-chan struct{}) {
	steps := []struct {
		text string
		stop chan struct{}
	}{
		{"cancelling the jobs; interrupt again to abort them", s.cancel},
		{"aborting the jobs; interrupt again to leave those that do not end", s.abort},
		{"shutting down; jobs that do not end in time are left as they are", s.shutdown},
	}
	for len(steps) > 0 {
		select {
		case <-done:
			return
		case sig := <-signals:
			if sig == syscall.SIGTERM {
				steps = steps[len(steps)-1:]
			}
			s.say(steps[0].text)
			close(steps[0].stop)
			steps = steps[1:]
		}
	}
	// Whoever goes on sending signals (timeout(1) sends its own twice) is heard
	// no more: the jobs have their time.
}

// stopped reports whether no further job is to be begun.
func (s *stopper) stopped() <-chan struct{} {
	c := make(chan struct{})
	go func() {
		defer close(c)
		select {
		case <-s.cancel:
		case <-s.abort:
		case <-s.shutdown:
		}
	}()
	return c
}

// after returns a channel that is closed when the jobs are cancelled, or d
// after now if d is above 0.
func (s *stopper) after(d time.Duration, ended <-chan struct{}) <-chan struct{} {
	if d <= 0 {
		return s.cancel
	}
	c := make(chan struct{})
	go func() {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-s.cancel:
			close(c)
		case <-timer.C:
			close(c)
		case <-ended:
		}
	}()
	return c
}
