package stream_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/socialweb-computer/tenant-executor/kube/faultserver"
	"github.com/socialweb-computer/tenant-executor/kube/stream"
	"github.com/socialweb-computer/tenant-executor/kube/stream/agent"
)

// An outage is told once, when it has lasted, and its end once; a short one is
// not told.
func TestFollowerTellsAnOutageOnce(t *testing.T) {
	t.Parallel()
	unreachable := faultserver.Answer(http.StatusBadGateway, "error dialing backend")
	for name, test := range map[string]struct {
		failures int
		want     []string
	}{
		"short": {3, nil},
		"long":  {12, []string{"broken", "restored"}},
	} {
		c := newCourse(t, func(p *peer) { p.begin(); p.end(0, 0) })
		c.server.Fail(test.failures, "create", "pods/exec", unreachable)
		if _, err := c.follow(t.Context()); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(test.want, c.said); diff != "" {
			t.Errorf("%s outage (-want +got):\n%s", name, diff)
		}
	}
}

// An outage beyond its bound ends the stage with what is known of it.
func TestFollowerOutageBudget(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		connections []func(*peer)
		begun       bool
		arrived     int64
		text        string
	}{
		"never reached": {nil, false, 0, "it is not known whether the script has begun"},
		"lost while it ran": {[]func(*peer){func(p *peer) { p.begin(); p.send(agent.KindData, 0, "0123") }}, true, 4,
			"the script was running and had written 4 bytes"},
	} {
		c := newCourse(t, test.connections...)
		if len(test.connections) == 0 {
			c.server.Fail(-1, "create", "pods/exec", faultserver.Reset())
		} else {
			c.server.OnExec(c.thenDown())
		}
		_, err := c.follow(t.Context())
		var out *stream.OutageError
		if !errors.As(err, &out) || out.Begun != test.begun || out.Arrived != test.arrived || out.After <= outage || !strings.Contains(err.Error(), test.text) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// thenDown serves one connection and fails all later ones.
func (c *course) thenDown() func(*faultserver.Exec) {
	return func(e *faultserver.Exec) {
		p := accept(c.t, e)
		c.server.Fail(-1, "create", "pods/exec", faultserver.Reset())
		p.begin()
		p.send(agent.KindData, 0, "0123")
		e.Break(faultserver.FIN)
	}
}

// A connection without a sign of life is given up.
func TestFollowerNoticesSilence(t *testing.T) {
	t.Parallel()
	c := newCourse(t,
		func(p *peer) { p.begin(); p.exec.WaitGone() },
		func(p *peer) { p.begin(); p.end(0, 3) })
	go func() {
		// The timer that is set once the agent's word has come.
		for n := 0; n < 2; {
			if <-c.clock.set == silence {
				n++
			}
		}
		c.clock.fire(silence)
	}()
	if status, err := c.follow(t.Context()); err != nil || status.Exit != 3 || len(c.opened) != 2 {
		t.Errorf("ended with %+v, %v after %d connections", status, err, len(c.opened))
	}
}

// The driver shows signs of life itself.
func TestFollowerShowsSignsOfLife(t *testing.T) {
	t.Parallel()
	c := newCourse(t, func(p *peer) {
		p.begin()
		p.awaitFrame(agent.KindAlive)
		p.end(0, 0)
	})
	go func() {
		for <-c.clock.set != silence/3 {
		}
		c.clock.fire(silence / 3)
	}()
	if _, err := c.follow(t.Context()); err != nil {
		t.Error(err)
	}
}
