package faultserver

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Server is one apiserver. Its methods may be called from several goroutines.
type Server struct {
	ca      *authority
	address string
	stop    chan struct{}

	// changed is signalled at each change of what the lock guards.
	mu      sync.Mutex
	changed *sync.Cond

	web     *httptest.Server
	store   store
	secrets []*corev1.Secret
	events  []corev1.Event
	// logs are the logs of containers, by their names; logCuts is how often one
	// is still cut off, after logCutAfter lines.
	logs                 map[string][]logLine
	logFrom              map[string]int // where the present file of each begins
	logFollowers         map[string]int
	logCuts, logCutAfter int
	record               record
	faults               []*fault
	refusals             int
	onCreate             []Step
	onExec               func(*Exec)
	onWatch              func(n int) WatchPlan
	lingering            bool
	// ahead is how far the cluster's clock is ahead of this host's.
	ahead     time.Duration
	denied    []string
	protocols []string
	breakAt   int
}

// Start starts a Server, which ends with the test.
func Start(t testing.TB) *Server {
	t.Helper()
	ca, err := newAuthority("test CA")
	if err != nil {
		t.Fatalf("starting the server: %v", err)
	}
	s := &Server{
		ca:        ca,
		address:   "127.0.0.1:0",
		stop:      make(chan struct{}),
		onExec:    func(*Exec) {},
		onWatch:   func(int) WatchPlan { return WatchPlan{} },
		protocols: []string{"v5.channel.k8s.io", "v4.channel.k8s.io"},
	}
	s.changed = sync.NewCond(&s.mu)
	s.Up(t)
	t.Cleanup(func() {
		close(s.stop)
		s.Down()
	})
	return s
}

// URL is the address of the apiserver. It stays the same when the Server goes
// down and up again, unless Move is called in between.
func (s *Server) URL() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return "https://" + s.address
}

// Down closes the port and every connection, as an apiserver that is killed:
// from now on connections are refused.
func (s *Server) Down() {
	s.mu.Lock()
	web := s.web
	s.web = nil
	// Upgraded connections are no longer known to the HTTP server.
	for _, e := range s.record.execs {
		reset(e.socket)
	}
	s.mu.Unlock()
	if web == nil {
		return
	}
	// Close waits for requests, and some never end by themselves.
	_ = web.Listener.Close()
	web.CloseClientConnections()
	web.Close()
}

// Up opens the port again. What the Server stores has stayed.
func (s *Server) Up(t testing.TB) {
	t.Helper()
	serving, err := s.ca.issue("apiserver", x509.ExtKeyUsageServerAuth, s.ca.cert.NotAfter)
	if err != nil {
		t.Fatalf("opening the port: %v", err)
	}
	listener, err := listen(t, s.address)
	if err != nil {
		t.Fatalf("opening the port: %v", err)
	}
	web := &httptest.Server{
		Listener: &gatekeeper{Listener: listener, server: s},
		// As with a real apiserver, requests share one HTTP/2 connection, and
		// exec gets an HTTP/1.1 connection of its own.
		EnableHTTP2: true,
		Config: &http.Server{
			Handler:           http.HandlerFunc(s.serve),
			ErrorLog:          log.New(io.Discard, "", 0),
			ReadHeaderTimeout: time.Minute,
			ConnContext: func(ctx context.Context, conn net.Conn) context.Context {
				return context.WithValue(ctx, connKey{}, conn)
			},
		},
		TLS: &tls.Config{
			Certificates: []tls.Certificate{serving},
			ClientAuth:   tls.RequireAndVerifyClientCert,
			ClientCAs:    s.ca.pool(),
			MinVersion:   tls.VersionTLS12,
		},
	}
	web.StartTLS()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.web, s.address = web, listener.Addr().String()
}

// Move has the Server come back, when it goes Up again, at another port and
// with another CA. What it stores has stayed.
func (s *Server) Move(t testing.TB) {
	t.Helper()
	ca, err := newAuthority("another test CA")
	if err != nil {
		t.Fatalf("moving the server: %v", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ca, s.address = ca, "127.0.0.1:0"
}

// RefuseConnections resets the next n connections before a byte is exchanged.
func (s *Server) RefuseConnections(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refusals = n
}

// Credentials writes the CA and a client certificate that the Server accepts
// into a folder of the test.
func (s *Server) Credentials(t testing.TB) Credentials {
	t.Helper()
	return written(t)(s.ca.writeCredentials(t.TempDir(), s.ca, s.ca.cert.NotAfter))
}

// ForeignClient is Credentials with a client certificate of another CA.
func (s *Server) ForeignClient(t testing.TB) Credentials {
	t.Helper()
	other, err := newAuthority("another CA")
	if err != nil {
		t.Fatalf("making a foreign client: %v", err)
	}
	return written(t)(other.writeCredentials(t.TempDir(), s.ca, other.cert.NotAfter))
}

// ForeignCA is Credentials of a client that trusts another CA.
func (s *Server) ForeignCA(t testing.TB) Credentials {
	t.Helper()
	other, err := newAuthority("another CA")
	if err != nil {
		t.Fatalf("making a foreign CA: %v", err)
	}
	return written(t)(s.ca.writeCredentials(t.TempDir(), other, s.ca.cert.NotAfter))
}

// ClientUntil is Credentials with a client certificate that expires then.
func (s *Server) ClientUntil(t testing.TB, until time.Time) Credentials {
	t.Helper()
	return written(t)(s.ca.writeCredentials(t.TempDir(), s.ca, until))
}

// ExpiredClient is Credentials with a client certificate that has expired.
func (s *Server) ExpiredClient(t testing.TB) Credentials {
	t.Helper()
	return written(t)(s.ca.writeCredentials(t.TempDir(), s.ca, time.Now().Add(-time.Minute)))
}

func written(t testing.TB) func(Credentials, error) Credentials {
	return func(c Credentials, err error) Credentials {
		t.Helper()
		if err != nil {
			t.Fatalf("writing credentials: %v", err)
		}
		return c
	}
}

// waitLimit is when Wait gives up on a condition. It only decides how long a
// broken test takes to say so.
const waitLimit = 45 * time.Second

// Wait waits until condition holds. It is asked again after each change of
// what the Server stores or has recorded.
func (s *Server) Wait(t testing.TB, what string, condition func() bool) {
	t.Helper()
	expired := false
	timer := time.AfterFunc(waitLimit, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		expired = true
		s.changed.Broadcast()
	})
	defer timer.Stop()
	for {
		// The condition uses the Server's methods, which lock for themselves.
		before := s.generation()
		if condition() {
			return
		}
		s.mu.Lock()
		for s.record.generation == before && !expired {
			s.changed.Wait()
		}
		ended := expired
		s.mu.Unlock()
		if ended {
			t.Fatalf("waited in vain until %s; requests so far:\n%s", what, s.Requests())
		}
	}
}

func (s *Server) generation() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.record.generation
}

// touch says that something changed. The caller holds the lock.
func (s *Server) touch() {
	s.record.generation++
	s.changed.Broadcast()
}

type connKey struct{}

// socket is the TCP connection of a request.
func socket(ctx context.Context) (*net.TCPConn, error) {
	conn, _ := ctx.Value(connKey{}).(net.Conn)
	if secured, ok := conn.(*tls.Conn); ok {
		conn = secured.NetConn()
	}
	plain, ok := conn.(*net.TCPConn)
	if !ok {
		return nil, fmt.Errorf("the request's connection is a %T", conn)
	}
	return plain, nil
}

// reset ends a TCP connection with an RST.
func reset(conn *net.TCPConn) {
	_ = conn.SetLinger(0)
	_ = conn.Close()
}

// gatekeeper is a listener that turns connections away.
type gatekeeper struct {
	net.Listener
	server *Server
}

func (g *gatekeeper) Accept() (net.Conn, error) {
	for {
		conn, err := g.Listener.Accept()
		if err != nil || !g.refuse() {
			return conn, err
		}
		if plain, ok := conn.(*net.TCPConn); ok {
			reset(plain)
		}
	}
}

func (g *gatekeeper) refuse() bool {
	s := g.server
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refusals == 0 {
		return false
	}
	s.refusals--
	s.record.refused++
	s.touch()
	return true
}
