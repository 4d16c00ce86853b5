package stream_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/socialweb-computer/tenant-executor/kube/faultserver"
	"github.com/socialweb-computer/tenant-executor/kube/stream"
	"github.com/socialweb-computer/tenant-executor/kube/stream/agent"
)

// An agent that answers and brings nothing is an outage like any other: it is
// told, the pauses grow, and it ends.
func TestFollowerNeedsProgress(t *testing.T) {
	t.Parallel()
	for name, serve := range map[string]func(*peer){
		"it only says that the stage has begun": func(p *peer) { p.begin(); p.exec.Exit(0) },
		"it says so, and that it lives":         func(p *peer) { p.begin(); p.send(agent.KindAlive, 0, ""); p.exec.Exit(1) },
		"its end cannot be understood":          func(p *peer) { p.begin(); p.send(agent.KindEnd, 4, "exit=\"zero\"\n") },
		"it says again what it has said":        func(p *peer) { p.begin(); p.send(agent.KindData, 0, "0123") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCourse(t)
			connections := 0
			c.server.OnExec(func(e *faultserver.Exec) {
				p := accept(t, e)
				if connections++; connections == 1 {
					p.begin()
					p.send(agent.KindData, 0, "0123")
				} else {
					serve(p)
				}
				e.Break(faultserver.FIN)
			})
			_, err := c.follow(t.Context())
			var out *stream.OutageError
			if !errors.As(err, &out) || !out.Begun || out.Arrived != 4 || out.After <= outage || out.After > outage+6*time.Second {
				t.Errorf("ended with %v", err)
			}
			if connections > 30 {
				t.Errorf("%d connections in %s", connections, outage)
			}
			if diff := cmp.Diff([]string{"broken"}, c.said); diff != "" {
				t.Errorf("said (-want +got):\n%s", diff)
			}
		})
	}
}

// A script may be silent for as long as it likes: connections that stand are no
// outage, and one that breaks after a while counts from then on.
func TestFollowerFollowsASilentScript(t *testing.T) {
	t.Parallel()
	c := newCourse(t)
	connections := 0
	c.server.OnExec(func(e *faultserver.Exec) {
		p := accept(t, e)
		p.begin()
		if connections++; connections == 20 {
			p.end(0, 3)
			return
		}
		c.clock.awaitTimers(silence, 2) // the second is set once the agent's word has come
		c.clock.pass(silence)
		p.send(agent.KindAlive, 0, "")
		c.clock.awaitTimers(silence, 1)
		e.Break(faultserver.FIN)
	})
	status, err := c.follow(t.Context())
	if err != nil || status.Exit != 3 {
		t.Errorf("ended with %+v, %v after %d connections", status, err, connections)
	}
}

// Whoever hears of an outage may know that there is nothing to be reached any
// more: then nothing is promised.
func TestFollowerEndsWhereNothingIsLeft(t *testing.T) {
	t.Parallel()
	c := newCourse(t, func(p *peer) { p.begin() })
	c.gone = errors.New("the Pod is gone")
	c.server.Fail(-1, "create", "pods/exec", faultserver.Reset())
	c.server.OnExec(c.thenDown())
	if _, err := c.follow(t.Context()); !errors.Is(err, c.gone) {
		t.Errorf("ended with %v", err)
	}
}
