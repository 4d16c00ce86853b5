package stream_test

import (
	"errors"
	"math"
	"net/http"
	"strings"
	"testing"

	"github.com/socialweb-computer/tenant-executor/kube/faultserver"
	"github.com/socialweb-computer/tenant-executor/kube/stream"
	"github.com/socialweb-computer/tenant-executor/kube/stream/agent"
)

// What an agent or the network may do to a stage that goes on: the next
// connection takes over where the output stands, and the script is not sent
// again once the agent has said that it has begun.
func TestFollowerGoesOn(t *testing.T) {
	t.Parallel()
	// rest is the second connection's part: it gives the bytes from the wanted
	// one on, and the end.
	rest := func(p *peer) {
		p.begin()
		p.send(agent.KindData, int(p.offset), "0123456789"[p.offset:])
		p.end(10, 7)
	}
	tests := []struct {
		name  string
		first func(*peer)
		// offset and script are what the second connection has to ask for.
		offset int64
		script string
	}{
		{"broken before the agent's word", func(*peer) {}, 0, "echo x"},
		{"broken after it", func(p *peer) { p.begin() }, 0, ""},
		{"broken in the output", func(p *peer) { p.begin(); p.send(agent.KindData, 0, "0123") }, 4, ""},
		{"broken before the end", func(p *peer) { p.begin(); p.send(agent.KindData, 0, "0123456789") }, 10, ""},
		{"a gap", func(p *peer) {
			p.begin()
			p.send(agent.KindData, 0, "0123")
			p.send(agent.KindData, 6, "6789")
			p.end(10, 0)
		}, 4, ""},
		{"the end before all output", func(p *peer) {
			p.begin()
			p.send(agent.KindData, 0, "01")
			p.end(10, 0)
		}, 2, ""},
		{"an end beyond the output", func(p *peer) {
			p.begin()
			p.send(agent.KindData, 0, "0123456789")
			p.end(9, 0)
		}, 10, ""},
		{"output without the agent's word", func(p *peer) { p.send(agent.KindData, 0, "abc"); p.end(3, 0) }, 0, "echo x"},
		{"a status that is none", func(p *peer) {
			p.begin()
			p.send(agent.KindData, 0, "0123456789")
			p.send(agent.KindEnd, 10, "exit=\"zero\"\n")
		}, 10, ""},
		{"a kind that nobody knows", func(p *peer) { p.begin(); p.send('?', 0, "") }, 0, ""},
		{"output from a place that no output has", func(p *peer) { p.begin(); p.send(agent.KindData, math.MinInt64, "abc") }, 0, ""},
		{"output at the end of all numbers", func(p *peer) { p.begin(); p.send(agent.KindData, math.MaxInt64, "abc") }, 0, ""},
		{"the agent's word again, elsewhere", func(p *peer) {
			p.begin()
			p.send(agent.KindData, 0, "0123")
			p.send(agent.KindBegun, 2, "")
			p.send(agent.KindData, 2, "xx6789")
			p.end(10, 0)
		}, 4, ""},
		{"bytes that are no frames", func(p *peer) {
			p.begin()
			_, _ = p.exec.Stdout.Write(noise(3, 1000))
		}, 0, ""},
		{"the agent ends by itself", func(p *peer) {
			p.begin()
			p.send(agent.KindData, 0, "0")
			_, _ = p.exec.Stderr.Write([]byte("podagent: something\n"))
			p.exec.Exit(1)
		}, 1, ""},
		{"the runtime restarts", func(p *peer) { p.exec.Error("container is not running: not found") }, 0, "echo x"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			c := newCourse(t, test.first, rest)
			status, err := c.follow(t.Context())
			if err != nil || status != (agent.Status{Exit: 7}) {
				t.Errorf("ended with %+v, %v; want exit code 7", status, err)
			}
			if got := c.output.String(); got != "0123456789" {
				t.Errorf("the output is %q", got)
			}
			if len(c.opened) != 2 {
				t.Fatalf("%d connections, want 2", len(c.opened))
			}
			if got := c.opened[0]; string(got.script) != "echo x" || got.offset != 0 {
				t.Errorf("the first connection sent the script %q and wanted byte %d", got.script, got.offset)
			}
			if got := c.opened[1]; string(got.script) != test.script || got.offset != test.offset {
				t.Errorf("the second connection sent the script %q and wanted byte %d; want %q and %d", got.script, got.offset, test.script, test.offset)
			}
		})
	}
}

// What has come before is passed over, whole or in part.
func TestFollowerPassesOverDuplicates(t *testing.T) {
	t.Parallel()
	c := newCourse(t, func(p *peer) {
		p.begin()
		p.send(agent.KindData, 0, "0123")
		p.send(agent.KindData, 0, "0123")
		p.send(agent.KindAlive, 0, "")
		p.send(agent.KindData, 2, "2345")
		p.send(agent.KindBegun, 6, "") // as when frames come twice
		p.send(agent.KindData, 1, "12")
		p.send(agent.KindData, 6, "6789")
		p.end(10, 0)
	})
	status, err := c.follow(t.Context())
	if err != nil || status != (agent.Status{}) || c.output.String() != "0123456789" {
		t.Errorf("ended with %+v, %v and %q", status, err, c.output.String())
	}
}

// Answers after which another connection cannot help.
func TestFollowerGivesUp(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		first func(*peer)
		want  func(error) bool
	}{
		{"refused", func(p *peer) { p.send(agent.KindRefused, 0, "the disk is full") }, func(err error) bool {
			var refused *stream.RefusedError
			return errors.As(err, &refused) && refused.Text == "the disk is full"
		}},
		{"vanished", func(p *peer) { p.send(agent.KindMissing, 0, "") }, func(err error) bool {
			var vanished *stream.VanishedError
			return errors.As(err, &vanished)
		}},
		{"output is gone", func(p *peer) { p.send(agent.KindBegun, 4<<20, "") }, func(err error) bool {
			var refused *stream.RefusedError
			return errors.As(err, &refused) && strings.Contains(refused.Text, "is gone")
		}},
		{"no agent", func(p *peer) { p.exec.Error("exec failed: no such file or directory") }, func(err error) bool {
			var runtime *stream.RuntimeError
			return errors.As(err, &runtime)
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			c := newCourse(t, test.first)
			if status, err := c.follow(t.Context()); !test.want(err) {
				t.Errorf("ended with %+v, %v", status, err)
			}
		})
	}
}

// The apiserver's word that the Pod is gone is final; the kubelet's is not.
func TestFollowerAndAPodThatIsNotFound(t *testing.T) {
	t.Parallel()
	c := newCourse(t, func(p *peer) { p.begin(); p.end(0, 0) })
	c.server.Fail(3, "create", "pods/exec", faultserver.Answer(http.StatusNotFound, "pod does not exist"))
	if status, err := c.follow(t.Context()); err != nil {
		t.Errorf("ended with %+v, %v", status, err)
	}
	c = newCourse(t)
	c.server.Fail(1, "create", "pods/exec", faultserver.PodNotFound(podName))
	if status, err := c.follow(t.Context()); !stream.PodGone(err) {
		t.Errorf("ended with %+v, %v", status, err)
	}
}

// What is acknowledged has been written.
func TestFollowerAcknowledgesWhatIsWritten(t *testing.T) {
	t.Parallel()
	piece := strings.Repeat("x", agent.MaxPayload)
	const pieces = 20
	c := newCourse(t, func(p *peer) {
		p.begin()
		for i := range pieces {
			p.send(agent.KindData, i*len(piece), piece)
		}
		last := uint64(0)
		for last < (pieces-6)*agent.MaxPayload {
			last = p.awaitFrame(agent.KindAck).Offset
		}
		if last >= pieces*agent.MaxPayload {
			t.Errorf("byte %d is acknowledged", last)
		}
		p.end(pieces*len(piece), 0)
	})
	if _, err := c.follow(t.Context()); err != nil || c.output.Len() != pieces*len(piece) {
		t.Errorf("%d bytes and %v", c.output.Len(), err)
	}
}

// Attaching takes what there is of the output, and sends no script.
func TestFollowerAttaches(t *testing.T) {
	t.Parallel()
	c := newCourse(t, func(p *peer) {
		if p.request.Sum != "" || p.offset != 0 {
			t.Errorf("attaching sends %+v from byte %d", p.request, p.offset)
		}
		p.send(agent.KindBegun, 100, "")
		p.send(agent.KindData, 100, "rest")
	}, func(p *peer) {
		if p.offset != 104 {
			t.Errorf("the second connection wants byte %d", p.offset)
		}
		p.begin()
		p.end(104, 5)
	})
	s := c.stage(&c.output)
	s.Script = nil
	if status, err := c.follower().Run(t.Context(), s, nil); err != nil || status.Exit != 5 || c.output.String() != "rest" {
		t.Errorf("ended with %+v, %v and %q", status, err, c.output.String())
	}
}
