package faults

import (
	"sync"
	"time"
)

// Agenda is what is still to go wrong. The zero value is an agenda on which
// nothing stands. It may be used from several goroutines.
type Agenda struct {
	mu       sync.Mutex
	settings Settings
}

// Set changes the agenda. A value out of range changes nothing.
func (a *Agenda) Set(change Change) (Settings, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	next := a.settings.With(change)
	if err := next.Check(); err != nil {
		return a.settings, err
	}
	a.settings = next
	return next, nil
}

// Settings is what is still to come.
func (a *Agenda) Settings() Settings {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.settings
}

// TakeFailingBoot tells whether this boot is to fail.
func (a *Agenda) TakeFailingBoot() bool {
	return a.take(func(s *Settings) *int { return &s.FailingBoots })
}

// TakeNeverReady tells whether this node is never to become ready.
func (a *Agenda) TakeNeverReady() bool {
	return a.take(func(s *Settings) *int { return &s.NeverReady })
}

// TakeDropOnBind tells whether the node of a Pod that has just been bound is to
// be dropped.
func (a *Agenda) TakeDropOnBind() bool {
	return a.take(func(s *Settings) *int { return &s.DropsOnBind })
}

// Unreachable is how long a new node's kubelet refuses connections after the
// node has become ready.
func (a *Agenda) Unreachable() time.Duration { return a.Settings().Unreachable.Duration }

// take counts one down, and tells whether there was one.
func (a *Agenda) take(count func(*Settings) *int) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	left := count(&a.settings)
	if *left == 0 {
		return false
	}
	*left--
	return true
}
