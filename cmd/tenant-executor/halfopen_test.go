package main_test

import (
	"net"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// middlebox is a proxy of TCP that can lose its connections without a word, as
// a firewall does that forgets them: both sides have an open connection on
// which nothing comes and nothing goes.
type middlebox struct {
	listener net.Listener
	to       string

	mu     sync.Mutex
	thawed sync.Cond
	// frozen is how many of the connections are lost.
	frozen int
	count  int
	conns  []net.Conn
	closed bool
}

// newMiddlebox stands before the cluster's server.
func newMiddlebox(t *testing.T, to string) *middlebox {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	m := &middlebox{listener: listener, to: to}
	m.thawed.L = &m.mu
	t.Cleanup(m.close)
	go m.serve()
	return m
}

func (m *middlebox) url() string { return "https://" + m.listener.Addr().String() }

func (m *middlebox) serve() {
	for {
		client, err := m.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", m.to)
		if err != nil {
			_ = client.Close()
			continue
		}
		m.mu.Lock()
		m.count++
		n := m.count
		m.conns = append(m.conns, client, server)
		m.mu.Unlock()
		go m.forward(n, client, server)
		go m.forward(n, server, client)
	}
}

// forward passes bytes on, and the end of one direction with the other, for as
// long as the connection is not lost.
func (m *middlebox) forward(n int, from, to net.Conn) {
	buffer := make([]byte, 32<<10)
	for {
		got, err := from.Read(buffer)
		if !m.passes(n) {
			return // whatever it was, nobody hears of it
		}
		if _, failed := to.Write(buffer[:got]); err != nil || failed != nil {
			_, _ = from.Close(), to.Close()
			return
		}
	}
}

// passes waits at a connection that is lost, to the end of the test.
func (m *middlebox) passes(n int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for n <= m.frozen && !m.closed {
		m.thawed.Wait()
	}
	return !m.closed
}

// lose loses all connections so far; further ones pass.
func (m *middlebox) lose() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.frozen = m.count
}

func (m *middlebox) close() {
	_ = m.listener.Close()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	m.thawed.Broadcast()
	for _, conn := range m.conns {
		_ = conn.Close()
	}
}

// defaultSilence is the setting's default: who notices well before it heeds
// what was configured.
const defaultSilence = 30 * time.Second

// outageLines are what the driver says of an outage that lasts; on a slow machine
// this one may.
func outageLines() *regexp.Regexp {
	return regexp.MustCompile(`(?m)^.*(The connection to the script is lost|cannot be reached for the next stage|Reached again).*\n`)
}

// A connection that is half open on both sides, to the stage and to the cluster,
// is noticed within the time that is configured; the stage goes on over another
// one while the old one is still open.
func TestHalfOpenConnectionCostsNothing(t *testing.T) {
	t.Parallel()
	overEach(t, func(t *testing.T, h *harness) {
		h.settings["run.silence"] = "3s"
		between := newMiddlebox(t, h.server.URL()[len("https://"):])
		h.settings["cluster.url"] = between.url()
		p := h.play()
		h.theJob()
		gate := h.folder + "/gate"
		script := "echo step 1; until [ -e '" + gate + "' ]; do echo tick; sleep 0.02; done; seq 1 30000; exit 42"
		plain := h.startPlainExec(p, script, nil)
		plain.stdout.waitFor(t, "step 1\n")
		stage := h.startRun("build_script", h.counted()+script)
		stage.stdout.waitFor(t, "step 1\n")
		between.lose()
		lost := time.Now()
		h.server.Wait(t, "the agent is reached again", func() bool { return p.connections() == 2 })
		if took := time.Since(lost); took > defaultSilence*2/3 {
			t.Errorf("it took %s to notice", took)
		}
		h.write("gate", "")
		got := stage.wait()
		got.stdout = outageLines().ReplaceAllString(got.stdout, "")
		ticks := strings.Count(got.stdout, "tick\n")
		if want := "step 1\n" + strings.Repeat("tick\n", ticks) + numbers(30000); got.stdout != want || ticks < 10 {
			t.Errorf("%d bytes of output with %d ticks, want %d", len(got.stdout), ticks, len(want))
		}
		if file := h.exitCodeFile(); got.code != buildCode || file != "42\n" {
			t.Errorf("exit code %d, and the runner was handed %q", got.code, file)
		}
		h.expectStarts(1)
		plain.expectWaiting()
	})
}
