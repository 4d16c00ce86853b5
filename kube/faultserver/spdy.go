package faultserver

import (
	"net"
	"net/http"
	"slices"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
)

// openSPDY upgrades the connection and waits for the client's streams; it gives
// none when the client goes before.
func (s *Server) openSPDY(w http.ResponseWriter, r *http.Request, plain *net.TCPConn) (connection, map[string]channel) {
	s.mu.Lock()
	protocols, breakAt := s.protocols, s.breakAt
	s.breakAt = 0
	s.mu.Unlock()
	if _, err := httpstream.Handshake(r, w, protocols); err != nil {
		return nil, nil // Handshake has answered
	}
	opening := make(chan opened)
	count := atomic.Int32{}
	conn := spdy.NewResponseUpgrader().UpgradeResponse(w, r, func(stream httpstream.Stream, replied <-chan struct{}) error {
		if int(count.Add(1)) == breakAt {
			reset(plain)
			return nil
		}
		go func() {
			select {
			case opening <- opened{stream, replied}:
			case <-s.stop:
			}
		}()
		return nil
	})
	if conn == nil {
		return nil, nil // UpgradeResponse has answered
	}
	streams, ok := accept(conn, opening, streamCount(r.URL.Query()))
	if !ok {
		_ = conn.Close()
		return nil, nil
	}
	return spdyConnection{conn}, streams
}

type spdyConnection struct{ httpstream.Connection }

// goAway sends a GOAWAY frame and closes the connection.
func (c spdyConnection) goAway() { _ = c.Close() }

// opened is a stream that the client has opened, and when its reply is sent.
type opened struct {
	httpstream.Stream
	replied <-chan struct{}
}

// accept waits for n streams, by their type; ok is false when the client goes
// before.
func accept(conn httpstream.Connection, opening <-chan opened, n int) (streams map[string]channel, ok bool) {
	streams = map[string]channel{}
	for len(streams) < n {
		var one opened
		select {
		case one = <-opening:
		case <-conn.CloseChan():
			return nil, false
		}
		select {
		case <-one.replied:
		case <-conn.CloseChan():
			return nil, false
		}
		streams[one.Headers().Get(corev1.StreamType)] = one.Stream
	}
	return streams, true
}

func streamCount(query map[string][]string) int {
	count := 1
	for _, name := range []string{"stdin", "stdout", "stderr", "tty"} { // a terminal has a stream for its size
		if wanted(query, name) {
			count++
		}
	}
	return count
}

// wanted says whether the client asks for a stream.
func wanted(query map[string][]string, name string) bool {
	return len(query[name]) > 0 && slices.Contains([]string{"1", "true"}, query[name][0])
}
