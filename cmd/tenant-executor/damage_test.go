package main_test

import (
	"io"
	"testing"

	"github.com/socialweb-computer/tenant-executor/kube/faultserver"
	"github.com/socialweb-computer/tenant-executor/kube/stream/agent"
)

// What a bad network does to bytes is noticed, and costs a new connection at
// the most.
func TestDamagedStreamCostsNothing(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		bad  func(n int, l *line)
		// connections is how many it takes.
		connections int
		// plain does the like to the chunks of a plain exec, which has no
		// frames; nil does the same. It does not notice.
		plain func(*line)
	}{
		{"bytes lost within a frame", func(_ int, l *line) {
			l.alter(func(at int, b byte) []byte {
				if at >= 5000 && at < 5010 {
					return nil
				}
				return []byte{b}
			})
		}, 4, nil},
		{"a byte changed", func(n int, l *line) {
			l.alter(func(at int, b byte) []byte {
				if at == 5000*n {
					b ^= 4
				}
				return []byte{b}
			})
		}, 4, nil},
		{"bytes added", func(_ int, l *line) {
			l.alter(func(at int, b byte) []byte {
				if at == 30 {
					return []byte{b, 'x', 'y', b}
				}
				return []byte{b}
			})
		}, 4, nil},
		{"every frame twice", func(_ int, l *line) {
			l.framesOut(func(_ agent.Kind, frame []byte, to io.Writer) error {
				_, err := to.Write(append(frame[:len(frame):len(frame)], frame...))
				return err
			})
		}, 1, (*line).twice},
		{"frames dropped", func(_ int, l *line) {
			count := 0
			l.framesOut(func(kind agent.Kind, frame []byte, to io.Writer) error {
				if count++; count == 3 {
					return nil
				}
				_, err := to.Write(frame)
				return err
			})
		}, 4, (*line).withoutTheThird},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t)
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
			h.plainExec(p, "seq 1 30000; exit 42", func(l *line) {
				if test.plain != nil {
					test.plain(l)
				} else {
					test.bad(1, l)
				}
			}).expectDeceived(numbers(long), 42)
		})
	}
}

// A connection that is open and passes nothing on is given up. A plain exec waits
// for ever.
func TestDeadConnectionCostsNothing(t *testing.T) {
	t.Parallel()
	for name, after := range map[string]int{"after some bytes": 5000, "from the start": 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			overEach(t, func(t *testing.T, h *harness) {
				h.settings["run.silence"] = "3s"
				p := h.play()
				h.theJob()
				plain := h.startPlainExec(p, "seq 1 30000; exit 42", func(l *line) { l.stall(t.Context(), after) })
				p.onLine(func(n int, l *line) {
					if n == 1 {
						l.swallow(after)
					}
				})
				h.expectWhole(h.run("build_script", h.counted()+"seq 1 30000; exit 42"), name)
				h.expectStarts(1)
				if n := p.connections(); n != 2 {
					t.Errorf("%d connections, want 2", n)
				}
				plain.expectWaiting()
			})
		})
	}
}

// A frame may arrive in any pieces; a plain exec does not mind either.
func TestFramesSplitAtEveryByte(t *testing.T) {
	t.Parallel()
	overEach(t, func(t *testing.T, h *harness) {
		p := h.play()
		h.theJob()
		p.onLine(func(_ int, l *line) { l.trickle() })
		h.expect(h.run("build_script", "seq 1 500; exit 42"), buildCode, numbers(500), "")
		if n := p.connections(); n != 1 {
			t.Errorf("%d connections, want 1", n)
		}
		h.plainExec(p, "seq 1 500; exit 42", (*line).trickle).expect(numbers(500), 42)
	})
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
	// A plain exec acknowledges nothing; its connection breaks after as much.
	h.plainExec(p, "seq 1 3000000; exit 42", func(l *line) { l.cutOut(256<<10, faultserver.RST) }).expectLost(got.stdout, 42)
}
