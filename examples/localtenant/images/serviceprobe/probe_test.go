package main

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// at once: the clock of a test, which also remembers what was waited for.
type clock struct {
	mu     sync.Mutex
	waited []time.Duration
	never  map[time.Duration]bool
}

func (c *clock) after(d time.Duration) <-chan time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waited = append(c.waited, d)
	fired := make(chan time.Time, 1)
	if !c.never[d] {
		fired <- time.Time{}
	}
	return fired
}

// output collects what is printed and tells when a text is there.
type output struct {
	mu    sync.Mutex
	grown *sync.Cond
	text  bytes.Buffer
}

func newOutput() *output {
	o := &output{}
	o.grown = sync.NewCond(&o.mu)
	return o
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	defer o.grown.Broadcast()
	return o.text.Write(p)
}

func (o *output) waitFor(text string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for !strings.Contains(o.text.String(), text) {
		o.grown.Wait()
	}
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

func lookupIn(env map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		value, found := env[name]
		return value, found
	}
}

func TestEndsByItself(t *testing.T) {
	out, timer := newOutput(), &clock{}
	env := map[string]string{"PROBE_PORT": "0", "PROBE_DIE_AFTER": "3s", "PROBE_EXIT_CODE": "7"}
	code := newProbe(nil, lookupIn(env), out, out, timer.after).run(t.Context())
	if code != 7 || !strings.Contains(out.String(), "ends by itself with exit code 7") {
		t.Errorf("exit code %d, %q", code, out)
	}
	if len(timer.waited) != 1 || timer.waited[0] != 3*time.Second {
		t.Errorf("waited for %v, want 3s", timer.waited)
	}
}

func TestStopsWhenTold(t *testing.T) {
	out := newOutput()
	timer := &clock{}
	ctx, cancel := context.WithCancel(t.Context())
	env := map[string]string{"PROBE_PORT": "0", "PROBE_LINES": "3", "PROBE_LINE_EVERY": "2s", "PROBE_MEMORY": "1", "PROBE_STOP_AFTER": "9s"}
	ended := make(chan int, 1)
	go func() { ended <- newProbe(nil, lookupIn(env), out, out, timer.after).run(ctx) }()
	out.waitFor("line 3 of 3")
	out.waitFor("holds 1 MiB")
	cancel()
	if code := <-ended; code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	if last := timer.waited[len(timer.waited)-1]; last != 9*time.Second {
		t.Errorf("stopped after %v, want 9s", last)
	}
}

// TestListensLate holds the clock of PROBE_LISTEN_AFTER back: nothing listens.
func TestListensLate(t *testing.T) {
	out := newOutput()
	timer := &clock{never: map[time.Duration]bool{time.Hour: true}}
	env := map[string]string{"PROBE_LISTEN_AFTER": "1h", "PROBE_DIE_AFTER": "1s", "PROBE_EXIT_CODE": "0"}
	if code := newProbe(nil, lookupIn(env), out, out, timer.after).run(t.Context()); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if strings.Contains(out.String(), "listens") {
		t.Errorf("listened before its time: %q", out)
	}
}

func TestAnswers(t *testing.T) {
	p := newProbe([]string{"--flag", "a b"}, lookupIn(map[string]string{"NAME": "value", "EMPTY": ""}), newOutput(), newOutput(), nil)
	for path, want := range map[string]struct {
		code int
		text string
	}{
		"/":           {http.StatusOK, "service-probe on "},
		"/args":       {http.StatusOK, `["--flag","a b"]` + "\n"},
		"/env/NAME":   {http.StatusOK, "value\n"},
		"/env/EMPTY":  {http.StatusOK, "\n"},
		"/env/ABSENT": {http.StatusNotFound, "ABSENT is not set\n"},
		"/else":       {http.StatusNotFound, ""},
	} {
		answer := httptest.NewRecorder()
		p.routes().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, path, nil))
		if answer.Code != want.code || !strings.HasPrefix(answer.Body.String(), want.text) {
			t.Errorf("%s: %d %q, want %d %q", path, answer.Code, answer.Body, want.code, want.text)
		}
	}
}

func TestBadSettings(t *testing.T) {
	for name, value := range map[string]string{
		"PROBE_PORT": "65536", "PROBE_LINES": "many", "PROBE_DIE_AFTER": "3", "PROBE_LISTEN_AFTER": "-1s",
		"PROBE_EXIT_CODE": "256", "PROBE_MEMORY": "-1", "PROBE_STOP_AFTER": "x", "PROBE_LINE_EVERY": "x", "PROBE_MEMORY_AFTER": "x",
	} {
		out, errOut := newOutput(), newOutput()
		code := newProbe(nil, lookupIn(map[string]string{name: value}), out, errOut, time.After).run(t.Context())
		if code != exitUsage || !strings.Contains(errOut.String(), name) || out.String() != "" {
			t.Errorf("%s=%s: exit code %d, %q, %q", name, value, code, out, errOut)
		}
	}
}
