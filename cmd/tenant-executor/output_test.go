package main_test

import (
	"bytes"
	"strings"
	"sync"
	"testing"
)

// output keeps what a stage writes and tells when something new is there.
type output struct {
	mu      sync.Mutex
	changed *sync.Cond
	text    bytes.Buffer
	ended   bool
}

func newOutput() *output {
	o := &output{}
	o.changed = sync.NewCond(&o.mu)
	return o
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.changed.Broadcast()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

func (o *output) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ended = true
	o.changed.Broadcast()
}

// waitFor waits until the stage has written a text.
func (o *output) waitFor(t *testing.T, text string) {
	t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	for !strings.Contains(o.text.String(), text) {
		if o.ended {
			t.Fatalf("the stage ended and had not written %q:\n%s", text, o.text.String())
		}
		o.changed.Wait()
	}
}
