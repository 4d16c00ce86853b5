package main_test

import (
	"context"
	"io"
	"strings"
	"testing"

	"github.com/socialweb-computer/tenant-executor/kube/faultserver"
	"github.com/socialweb-computer/tenant-executor/kube/stream/agent"
)

// ways are all ways in which a connection ends without a status.
func ways() []faultserver.Break {
	return []faultserver.Break{
		faultserver.CloseStreams, faultserver.GoAway, faultserver.ResetStreams, faultserver.FIN, faultserver.RST, faultserver.Hang,
	}
}

// long is how many numbers the script of these tests prints: some frames full.
const long = 30000

// However and whenever the connection breaks, the stage's log and its exit code
// are the script's own, and the script runs once.
func TestLostConnectionCostsNothing(t *testing.T) {
	t.Parallel()
	moments := map[string]func(*line, faultserver.Break){
		"before the request":          func(l *line, way faultserver.Break) { l.cutIn(0, way) },
		"in the request":              func(l *line, way faultserver.Break) { l.cutIn(20, way) },
		"in the script":               func(l *line, way faultserver.Break) { l.cutIn(300, way) },
		"before the agent's word":     func(l *line, way faultserver.Break) { l.cutOut(0, way) },
		"in the output":               func(l *line, way faultserver.Break) { l.cutOut(40000, way) },
		"before the end":              func(l *line, way faultserver.Break) { l.breakAt(agent.KindEnd, way, false) },
		"right after the end":         func(l *line, way faultserver.Break) { l.breakAt(agent.KindEnd, way, true) },
		"when the stage is confirmed": func(l *line, way faultserver.Break) { l.breakAt(agent.KindBegun, way, true) },
	}
	for _, way := range ways() {
		t.Run(string(way), func(t *testing.T) {
			t.Parallel()
			h := newHarness(t)
			h.settings["run.silence"] = "3s" // for connections that hang
			p := h.play()
			h.theJob()
			h.env["TENANT_EXECUTOR_POD"] = h.server.Pods()[0].Name
			starts := 0
			for name, at := range moments {
				p.onLine(func(n int, l *line) {
					if n == 1 {
						at(l, way)
					}
				})
				h.expectWhole(h.run("build_script", h.counted()+"seq 1 30000; exit 42"), name)
				starts++
				h.expectStarts(starts)
				if n := p.connections(); n != 2 && name != "right after the end" {
					t.Errorf("%s: %d connections, want 2", name, n)
				}
			}
			h.plainExecFails(p, way)
		})
	}
}

// expectWhole looks for all numbers and exit code 42.
func (h *harness) expectWhole(got result, what string) {
	h.t.Helper()
	if got.stdout != numbers(long) || got.stderr != "" {
		h.t.Errorf("%s: %d bytes of output, want %d; stderr %q", what, len(got.stdout), len(numbers(long)), got.stderr)
	}
	if file := h.exitCodeFile(); got.code != buildCode || file != "42\n" {
		h.t.Errorf("%s: exit code %d, and the runner was handed %q", what, got.code, file)
	}
}

// plainExecFails breaks the connection of a plain exec: there it costs the rest
// of the output and the exit code, which shows that the break is one.
func (h *harness) plainExecFails(p *programs, way faultserver.Break) {
	h.t.Helper()
	ctx, cancel := context.WithCancel(h.t.Context())
	defer cancel()
	printed, err := h.plainExec(ctx, p, numbers(long), func(l *line) {
		l.cutOut(40000, way)
		if way == faultserver.Hang {
			// It would wait for ever.
			to := l.out
			l.out = writerFunc(func(p []byte) (int, error) {
				n, err := to.Write(p)
				if err != nil {
					cancel()
				}
				return n, err
			})
		}
	})
	if len(printed) > 40000 {
		h.t.Errorf("a plain exec has %d bytes of output in spite of the break", len(printed))
	}
	if err != nil && strings.Contains(err.Error(), "exit code 42") {
		h.t.Errorf("a plain exec knows the exit code in spite of the break: %v", err)
	}
	h.t.Logf("a plain exec prints %d of %d bytes and gives the error %v", len(printed), len(numbers(long)), err)
}

// breakAt breaks the connection at the first frame of a kind, which still
// passes or not.
func (l *line) breakAt(kind agent.Kind, way faultserver.Break, pass bool) {
	l.framesOut(func(k agent.Kind, frame []byte, to io.Writer) error {
		if k != kind || pass {
			if _, err := to.Write(frame); err != nil {
				return err
			}
		}
		if k == kind {
			l.breaks(way)
			return errCut
		}
		return nil
	})
}

// What a bad network does to bytes is noticed, and costs a new connection at
// the most.
func TestDamagedStreamCostsNothing(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		bad  func(n int, l *line)
		// connections is how many it takes.
		connections int
		// plain is whether a plain exec would not notice.
		plain bool
	}{
		{"bytes lost within a frame", func(_ int, l *line) {
			l.alter(func(at int, b byte) []byte {
				if at >= 5000 && at < 5010 {
					return nil
				}
				return []byte{b}
			})
		}, 4, true},
		{"a byte changed", func(n int, l *line) {
			l.alter(func(at int, b byte) []byte {
				if at == 5000*n {
					b ^= 4
				}
				return []byte{b}
			})
		}, 4, true},
		{"bytes added", func(_ int, l *line) {
			l.alter(func(at int, b byte) []byte {
				if at == 30 {
					return []byte{b, 'x', 'y', b}
				}
				return []byte{b}
			})
		}, 4, true},
		{"every frame twice", func(_ int, l *line) {
			l.framesOut(func(_ agent.Kind, frame []byte, to io.Writer) error {
				_, err := to.Write(append(frame[:len(frame):len(frame)], frame...))
				return err
			})
		}, 1, false},
		{"frames dropped", func(_ int, l *line) {
			count := 0
			l.framesOut(func(kind agent.Kind, frame []byte, to io.Writer) error {
				if count++; count == 3 {
					return nil
				}
				_, err := to.Write(frame)
				return err
			})
		}, 4, false},
		{"dead after some bytes", func(_ int, l *line) { l.swallow(5000) }, 2, false},
		{"dead from the start", func(_ int, l *line) { l.swallow(1) }, 2, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t)
			h.settings["run.silence"] = "3s"
			p := h.play()
			h.theJob()
			p.onLine(func(n int, l *line) {
				if n < max(test.connections, 2) {
					test.bad(n, l)
				}
			})
			h.expectWhole(h.run("build_script", h.counted()+"seq 1 30000; exit 42"), test.name)
			h.expectStarts(1)
			if n := p.connections(); n != test.connections {
				t.Errorf("%d connections, want %d", n, test.connections)
			}
			if !test.plain {
				return
			}
			printed, err := h.plainExec(t.Context(), p, numbers(long), func(l *line) { test.bad(1, l) })
			if printed == numbers(long) || err == nil || !strings.Contains(err.Error(), "exit code 42") {
				t.Errorf("a plain exec prints %d bytes and gives %v; it should not have noticed", len(printed), err)
			}
		})
	}
}

// A frame may arrive in any pieces.
func TestFramesSplitAtEveryByte(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	p := h.play()
	h.theJob()
	p.onLine(func(_ int, l *line) { l.trickle() })
	h.expect(h.run("build_script", "seq 1 500; exit 42"), buildCode, numbers(500), "")
	if n := p.connections(); n != 1 {
		t.Errorf("%d connections, want 1", n)
	}
}

// An acknowledgement that is lost with its connection costs nothing: where the
// next one goes on says the same. The spool is smaller than the output, so that
// the script could not end otherwise.
func TestLostAcknowledgements(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.settings["run.spool_limit"] = "16Mi"
	p := h.play()
	h.theJob()
	p.onLine(func(n int, l *line) {
		l.framesIn(func(kind agent.Kind, frame []byte, to io.Writer) error {
			if kind == agent.KindAck {
				l.breaks(faultserver.RST)
				return errCut
			}
			_, err := to.Write(frame)
			return err
		})
	})
	got := h.run("build_script", h.counted()+"seq 1 3000000; exit 42")
	if got.stdout != numbers(3000000) || got.code != buildCode {
		t.Errorf("exit code %d, %d bytes of output", got.code, len(got.stdout))
	}
	if n := p.connections(); n < 15 {
		t.Errorf("only %d connections: hardly an acknowledgement was lost", n)
	}
	h.expectStarts(1)
}
