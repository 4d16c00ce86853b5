// Package registry is the image registry of the local tenant cluster: one
// content behind two listeners, one open to everybody and one that demands a
// user name and a password, with switches that make it slow or unavailable.
package registry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"
)

// Options says where the registry listens, where it keeps blobs and who may
// use the listener with authentication.
type Options struct {
	// Address is the IP address both listeners bind to, for example that of
	// the bridge the nodes are on. The ports are chosen by the kernel.
	Address string
	// Store is the folder of the blobs. It is created when missing and may be
	// used again by a later registry; one registry at a time.
	Store string
	// Username and Password open the listener with authentication.
	Username, Password string
	// Log gets one line for each request; nil means no log. Credentials are
	// never written.
	Log io.Writer
}

// Server is a running registry. Manifests and tags are kept in memory: after
// a new Start they have to be pushed again, which is quick because the blobs
// are still in the store.
type Server struct {
	plain, auth *http.Server
	plainAddr   string
	authAddr    string
	faults      *faults
	stopWatch   func() bool
}

// Start opens both listeners and serves until Close is called or ctx ends.
func Start(ctx context.Context, opts Options) (*Server, error) {
	if err := opts.check(); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(opts.Store, 0o755); err != nil {
		return nil, fmt.Errorf("make the registry's store: %w", err)
	}
	plain, auth, err := listen(ctx, opts.Address)
	if err != nil {
		return nil, err
	}

	s := &Server{
		plainAddr: plain.Addr().String(),
		authAddr:  auth.Addr().String(),
		faults:    newFaults(),
	}
	content := s.faults.wrap(registry.New(
		registry.WithBlobHandler(registry.NewDiskBlobHandler(opts.Store)),
		registry.Logger(log.New(io.Discard, "", 0)), // our own log has status and duration
	))
	logged := newRequestLog(opts.Log)
	s.plain = newHTTPServer(logged.wrap("plain", content))
	s.auth = newHTTPServer(logged.wrap("auth", requireBasicAuth(opts.Username, opts.Password, content)))
	go serve(s.plain, plain)
	go serve(s.auth, auth)
	s.stopWatch = context.AfterFunc(ctx, func() { _ = s.Close() })
	return s, nil
}

// check refuses options a registry cannot work with.
func (o Options) check() error {
	if net.ParseIP(o.Address) == nil {
		return fmt.Errorf("registry address %q is not an IP address", o.Address)
	}
	if o.Store == "" {
		return errors.New("registry store: no folder given")
	}
	if o.Username == "" || o.Password == "" {
		return errors.New("registry: a user name and a password are needed for the listener with authentication")
	}
	return nil
}

// listen opens the two listeners, or none.
func listen(ctx context.Context, address string) (plain, auth net.Listener, err error) {
	var config net.ListenConfig
	plain, err = config.Listen(ctx, "tcp", net.JoinHostPort(address, "0"))
	if err != nil {
		return nil, nil, fmt.Errorf("open the registry's listener: %w", err)
	}
	auth, err = config.Listen(ctx, "tcp", net.JoinHostPort(address, "0"))
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("open the registry's listener with authentication: %w", err), plain.Close())
	}
	return plain, auth, nil
}

func newHTTPServer(handler http.Handler) *http.Server {
	return &http.Server{
		Handler: handler,
		// A node that dies in the middle of a request header must not hold a
		// connection for ever; bodies may take as long as they need.
		ReadHeaderTimeout: 30 * time.Second,
		// net/http would write to the process's standard error.
		ErrorLog: log.New(io.Discard, "", 0),
	}
}

// serve ends when the server is closed; any other end shows as refused
// connections to whoever pulls, and there is nobody here to tell.
func serve(server *http.Server, listener net.Listener) {
	_ = server.Serve(listener)
}

// PlainAddr is the host:port of the listener without authentication.
func (s *Server) PlainAddr() string { return s.plainAddr }

// AuthAddr is the host:port of the listener that demands basic
// authentication. It serves the same content as PlainAddr.
func (s *Server) AuthAddr() string { return s.authAddr }

// SetDelay makes every request on both listeners wait for d before it is
// answered; zero or less ends that. A request that already waits keeps its
// delay.
func (s *Server) SetDelay(d time.Duration) { s.faults.setDelay(d) }

// SetDown makes every request on both listeners fail with 503 while down is
// true.
func (s *Server) SetDown(down bool) { s.faults.setDown(down) }

// Close ends both listeners and cuts open connections. It may be called more
// than once. The store stays.
func (s *Server) Close() error {
	if s.stopWatch != nil {
		s.stopWatch()
	}
	return errors.Join(s.plain.Close(), s.auth.Close())
}
