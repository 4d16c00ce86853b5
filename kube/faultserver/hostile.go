package faultserver

import (
	"bufio"
	"encoding/binary"
	"math"
	"net"
	"net/http"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/socialweb-computer/tenant-executor/kube/stream/agent"
)

// Evil is a text that tries to be more than a text: lines of its own, a cleared
// screen, a section of the job log, a result.
const Evil = "no\n\x1b[2J\nsection_start:1560896352:evil\r\x1b[0K\nERROR: Job succeeded\n"

// flood is how much an attack sends before it waits, in bytes: more than anything
// may keep of it.
const flood = 256 << 20

// Attack is what a hostile program, or the kubelet of a node that a job owns, does
// in place of a command.
type Attack struct {
	Name string
	// Do plays it until the client has gone.
	Do func(*Exec)
	// Lost is whether it looks like a connection that was lost, so that the command is
	// tried again for as long as its budget is.
	Lost bool
}

// Attacks are those on any command.
func Attacks() []Attack {
	return []Attack{
		{Name: "zeros on stdout", Do: func(e *Exec) { e.flood(corev1.StreamTypeStdout, make([]byte, 32<<10)) }},
		{Name: "zeros on stderr", Do: func(e *Exec) { e.flood(corev1.StreamTypeStderr, make([]byte, 32<<10)) }},
		{Name: "lines on both", Do: func(e *Exec) {
			go e.flood(corev1.StreamTypeStderr, []byte(strings.Repeat(Evil, 100)))
			e.flood(corev1.StreamTypeStdout, []byte(strings.Repeat("x86_64 gzip\n", 1000)))
		}},
		{Name: "a status without an end", Do: func(e *Exec) {
			_, _ = e.channels[corev1.StreamTypeError].Write([]byte(`{"status": "Failure", "message": "`))
			e.flood(corev1.StreamTypeError, []byte(strings.Repeat("x", 32<<10)))
		}},
		{Name: "half a status", Lost: true, Do: func(e *Exec) { e.Status([]byte(`{"status": "Succ`)) }},
		{Name: "an evil status", Do: func(e *Exec) { e.Error(strings.Repeat(Evil, 100)) }},
		{Name: "a byte now and then", Lost: true, Do: func(e *Exec) {
			e.until(func() error {
				time.Sleep(50 * time.Millisecond)
				_, err := e.Stdout.Write([]byte{0})
				return err
			})
		}},
		{Name: "frames of another kind", Lost: true, Do: func(e *Exec) { e.Raw([]byte(strings.Repeat("\x80\x03\x00\x08\x00\x00\x00\x04\x00\x00\x00\x01", 1000))) }},
		{Name: "answers to pings nobody sent", Lost: true, Do: func(e *Exec) {
			// To ping 1 of SPDY, again and again. For a WebSocket it is noise.
			ping := []byte("\x80\x03\x00\x06\x00\x00\x00\x04\x00\x00\x00\x01")
			e.until(func() error { return e.Raw(ping) })
		}},
		{Name: "the longest frames", Lost: true, Do: func(e *Exec) {
			// Of SPDY, for the streams that a command has in turn; for a WebSocket
			// it is noise.
			frame := make([]byte, 8+1<<24-1)
			binary.BigEndian.PutUint32(frame[4:], 1<<24-1)
			sent := uint32(0)
			e.until(func() error {
				binary.BigEndian.PutUint32(frame, 1+2*(sent%4))
				if sent++; sent > flood>>24 {
					return errDone
				}
				return e.Raw(frame)
			})
		}},
	}
}

// AgentAttacks are those of what stands in place of the driver's agent.
func AgentAttacks() []Attack {
	begun := agent.Frame{Kind: agent.KindBegun}
	end := agent.Frame{Kind: agent.KindEnd, Payload: agent.Status{}.Bytes()}
	data := func(offset uint64, text string) agent.Frame {
		return agent.Frame{Kind: agent.KindData, Offset: offset, Payload: []byte(text)}
	}
	attacks := []Attack{
		{Name: "begins for ever", Do: func(e *Exec) { e.until(func() error { return begun.Write(e.Stdout) }) }},
		{Name: "refuses with an evil text", Do: func(e *Exec) {
			refused := agent.Frame{Kind: agent.KindRefused, Payload: []byte(strings.Repeat(Evil, 500))}
			e.until(func() error { return refused.Write(e.Stdout) })
		}},
		{Name: "ends badly with an evil text", Do: func(e *Exec) {
			status := agent.Status{Trouble: agent.TroubleStart, Detail: strings.Repeat(Evil, 100)}
			e.frames(begun, agent.Frame{Kind: agent.KindEnd, Payload: status.Bytes()})
		}},
	}
	for name, frames := range map[string][]agent.Frame{
		"output before all numbers":   {begun, data(1<<63, "abc"), end},
		"output behind all numbers":   {begun, data(math.MaxUint64, "abc"), end},
		"a beginning at the far end":  {{Kind: agent.KindBegun, Offset: math.MaxInt64}, data(math.MaxInt64, "abc")},
		"a beginning before it":       {{Kind: agent.KindBegun, Offset: 1<<63 + 5}, data(1<<63+5, "abc")},
		"an end of no output":         {begun, {Kind: agent.KindEnd, Offset: 1 << 40, Payload: agent.Status{}.Bytes()}},
		"an end before the beginning": {end},
		"output without a beginning":  {data(0, "abc"), end},
		"so far, but not to there":    {begun, {Kind: agent.KindSoFar, Offset: 1 << 62}},
		"a status that is none":       {begun, {Kind: agent.KindEnd, Payload: []byte("exit=\"nought\"\n")}},
		"a kind that nobody knows":    {begun, {Kind: '?', Payload: []byte(Evil)}},
	} {
		attacks = append(attacks, Attack{Name: name, Do: func(e *Exec) { e.frames(frames...) }})
	}
	return append(attacks, Attack{Name: "half a frame", Do: func(e *Exec) {
		whole := data(0, strings.Repeat("x", 1000)).Append(nil)
		_ = begun.Write(e.Stdout)
		_, _ = e.Stdout.Write(whole[:len(whole)/2])
		e.WaitGone()
	}})
}

// frames sends frames and ends the command.
func (e *Exec) frames(all ...agent.Frame) {
	for _, f := range all {
		_ = f.Write(e.Stdout) // the client may have seen enough
	}
	e.Exit(0)
}

// flood writes on a stream until the client has gone, or a while.
func (e *Exec) flood(stream string, piece []byte) {
	left := flood
	e.until(func() error {
		if left -= len(piece); left < 0 {
			return errDone
		}
		to := e.channels[stream]
		if to == nil {
			return errDone
		}
		_, err := to.Write(piece)
		return err
	})
}

// errDone ends until.
var errDone = net.ErrClosed

// until does something again and again until it fails, and then waits for the end
// of the client.
func (e *Exec) until(do func() error) {
	e.ended.Store(true)
	for do() == nil {
		select {
		case <-e.Gone():
			return
		case <-e.server.stop:
			return
		default:
		}
	}
	e.WaitGone()
}

// Raw writes to the connection below its streams, as it goes over the wire.
func (e *Exec) Raw(p []byte) error {
	_, err := e.below.Write(p)
	return err
}

// kept is a ResponseWriter that keeps the connection which is taken from it.
type kept struct {
	http.ResponseWriter
	conn net.Conn
}

// Hijack implements http.Hijacker.
func (k *kept) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffered, err := http.NewResponseController(k.ResponseWriter).Hijack()
	k.conn = conn
	return conn, buffered, err
}

// EndlessHead answers with a head that does not end.
func EndlessHead() Fault {
	return Fault{respond: func(_ *Server, w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			panic(http.ErrAbortHandler) // over HTTP/2 heads have an end
		}
		defer conn.Close() //nolint:errcheck // the client has gone
		_, _ = conn.Write([]byte("HTTP/1.1 403 Forbidden\r\nX-Evil: "))
		for left, piece := flood, []byte(strings.Repeat("x", 32<<10)); left > 0; left -= len(piece) {
			if _, err := conn.Write(piece); err != nil {
				return
			}
		}
	}}
}

// EndlessBody answers with a code and a JSON text that does not end.
func EndlessBody(code int) Fault {
	return Fault{respond: func(_ *Server, w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_, _ = w.Write([]byte(`{"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "`))
		for left, piece := flood, []byte(strings.Repeat("x", 32<<10)); left > 0; left -= len(piece) {
			if _, err := w.Write(piece); err != nil {
				return
			}
		}
	}}
}
