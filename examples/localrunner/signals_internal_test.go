package main

import (
	"os"
	"slices"
	"syscall"
	"testing"
)

// Each signal takes one step at the most, and none takes a step twice.
func TestSignals(t *testing.T) {
	const (
		interrupt = syscall.SIGINT
		terminate = syscall.SIGTERM
	)
	for _, test := range []struct {
		signals                 []os.Signal
		cancel, abort, shutdown bool
	}{
		{[]os.Signal{interrupt}, true, false, false},
		{[]os.Signal{interrupt, interrupt}, true, true, false},
		{[]os.Signal{interrupt, interrupt, interrupt}, true, true, true},
		{slices.Repeat([]os.Signal{interrupt}, 9), true, true, true},
		{[]os.Signal{terminate}, false, false, true},
		{[]os.Signal{terminate, terminate}, false, false, true},
		{[]os.Signal{terminate, interrupt, terminate, interrupt}, false, false, true},
		{[]os.Signal{interrupt, terminate, terminate}, true, false, true},
	} {
		signals, done, ended := make(chan os.Signal, len(test.signals)), make(chan struct{}), make(chan struct{})
		said := 0
		s := newStopper(func(string) { said++ })
		for _, one := range test.signals {
			signals <- one
		}
		go func() {
			defer close(ended)
			s.watch(signals, done)
		}()
		for _, c := range []struct {
			stop chan struct{}
			want bool
		}{{s.cancel, test.cancel}, {s.abort, test.abort}, {s.shutdown, test.shutdown}} {
			if c.want {
				<-c.stop
			}
		}
		close(done)
		<-ended
		for _, c := range []struct {
			name string
			stop chan struct{}
			want bool
		}{{"cancel", s.cancel, test.cancel}, {"abort", s.abort, test.abort}, {"shutdown", s.shutdown, test.shutdown}} {
			select {
			case <-c.stop:
				if !c.want {
					t.Errorf("%v: %s", test.signals, c.name)
				}
			default:
			}
		}
		if want := len(slices.DeleteFunc([]bool{test.cancel, test.abort, test.shutdown}, func(b bool) bool { return !b })); said != want {
			t.Errorf("%v: %d lines for %d steps", test.signals, said, want)
		}
	}
}
