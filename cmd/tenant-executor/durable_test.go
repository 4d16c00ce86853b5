package main_test

import (
	"io"
	"testing"

	"github.com/socialweb-computer/tenant-executor/kube/faultserver"
	"github.com/socialweb-computer/tenant-executor/kube/stream/agent"
)

// ways are all ways in which a connection ends without a status of the command,
// by transport.
func ways() map[string][]faultserver.Break {
	return map[string][]faultserver.Break{
		spdy: {
			faultserver.CloseStreams, faultserver.GoAway, faultserver.ResetStreams, faultserver.FIN, faultserver.RST, faultserver.Hang,
		},
		webSocket: {
			faultserver.CloseStreams, faultserver.GoAway, faultserver.FIN, faultserver.RST, faultserver.Hang, faultserver.LostBehind,
		},
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
	overEachWay(t, func(t *testing.T, h *harness, way faultserver.Break) {
		if way == faultserver.Hang {
			h.settings["run.silence"] = "3s" // this connection hangs
		}
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

// overEachWay runs a test for each way in which a connection ends.
func overEachWay(t *testing.T, test func(t *testing.T, h *harness, way faultserver.Break)) {
	t.Helper()
	for over, all := range ways() {
		for _, way := range all {
			t.Run(over+" "+string(way), func(t *testing.T) {
				t.Parallel()
				h := newHarness(t)
				h.settings["cluster.transport"] = over
				test(t, h, way)
			})
		}
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
	broken := make(chan struct{})
	x := h.startPlainExec(p, "seq 1 30000; exit 42", func(l *line) {
		l.cutOut(40000, way)
		l.out.(*cutter).cut = func() { l.breaks(way); close(broken) }
	})
	if way == faultserver.Hang {
		<-broken
		x.stop() // it would wait for ever
	}
	x.expectLost(numbers(long), 42)
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
