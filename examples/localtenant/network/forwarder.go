package network

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
)

// Forwarder passes TCP connections on to a target. It is the door through
// which nodes reach the apiserver, which listens on the host's loopback alone.
type Forwarder struct {
	listener net.Listener
	target   atomic.Pointer[string]
	log      *slog.Logger
	wait     sync.WaitGroup
}

// NewForwarder listens on address. Connections are refused at once until the
// target is set.
func NewForwarder(ctx context.Context, address string, log *slog.Logger) (*Forwarder, error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen for the nodes: %w", err)
	}
	f := &Forwarder{listener: listener, log: log}
	f.wait.Go(func() { f.serve(ctx) })
	return f, nil
}

// Addr is the address that it listens on.
func (f *Forwarder) Addr() string { return f.listener.Addr().String() }

// SetTarget sets where new connections lead. Those that are open stay.
func (f *Forwarder) SetTarget(address string) { f.target.Store(&address) }

// Close stops listening and waits until all connections have ended. The
// context given to NewForwarder must be over, or they end with their clients.
func (f *Forwarder) Close() error {
	err := f.listener.Close()
	f.wait.Wait()
	return err
}

func (f *Forwarder) serve(ctx context.Context) {
	for {
		client, err := f.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			f.log.Error("forwarder: accept", "error", err)
			return
		}
		f.wait.Go(func() { f.pass(ctx, client) })
	}
}

func (f *Forwarder) pass(ctx context.Context, client net.Conn) {
	defer client.Close()
	target := f.target.Load()
	if target == nil {
		return
	}
	var dialer net.Dialer
	server, err := dialer.DialContext(ctx, "tcp", *target)
	if err != nil {
		// Said once a connection at most on debug: while the apiserver is
		// down every client tries again and again.
		f.log.Debug("forwarder: target does not answer", "target", *target, "error", err)
		return
	}
	defer server.Close()
	stop := context.AfterFunc(ctx, func() {
		client.Close()
		server.Close()
	})
	defer stop()
	var both sync.WaitGroup
	both.Go(func() { pump(server, client) })
	both.Go(func() { pump(client, server) })
	both.Wait()
}

// pump copies one direction and hands on its end. An end that is an error (a
// killed apiserver resets its connections) ends the other direction too.
func pump(to, from net.Conn) {
	_, err := io.Copy(to, from)
	if err != nil {
		to.Close()
		from.Close()
		return
	}
	if half, ok := to.(*net.TCPConn); ok {
		_ = half.CloseWrite()
	}
}
