// Package registry is the image registry of the local tenant cluster: one
// content behind three listeners, one open to everybody, one with basic
// authentication and one with tokens, and with faults on demand.
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
	"sync"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"
)

// Options says where the registry listens, where it keeps blobs and who may
// use the listeners that want a login.
type Options struct {
	// Address is the IP address all listeners bind to, for example that of
	// the bridge the nodes are on. The ports are chosen by the kernel.
	Address string
	// Store is the folder of the blobs. It is created when missing and may be
	// used again by a later registry; one registry at a time.
	Store string
	// Username and Password open the listeners that want a login.
	Username, Password string
	// Guest is a second user with the same password, who may log in and pull
	// nothing.
	Guest string
	// Log gets one line for each request; nil means no log. Credentials are
	// never written.
	Log io.Writer
}

// Server is a running registry. Manifests and tags are kept in memory: after
// a new Start they have to be pushed again, which is quick because the blobs
// are still in the store.
type Server struct {
	plain, basic, token *door
	faults              *faults
	stopWatch           func() bool

	mu     sync.Mutex // guards changes of the faults
	closed bool
}

// Start opens the listeners and serves until Close is called or ctx ends.
func Start(ctx context.Context, opts Options) (*Server, error) {
	if err := opts.check(); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(opts.Store, 0o755); err != nil {
		return nil, fmt.Errorf("make the registry's store: %w", err)
	}
	s := &Server{faults: newFaults()}
	content := registry.New(
		registry.WithBlobHandler(registry.NewDiskBlobHandler(opts.Store)),
		registry.Logger(log.New(io.Discard, "", 0)), // our own log has status and duration
	)
	who := accounts{member: opts.Username, guest: opts.Guest, password: opts.Password}
	logged := newRequestLog(opts.Log)
	for _, listener := range []struct {
		door    **door
		name    string
		handler http.Handler
	}{
		{&s.plain, "plain", content},
		{&s.basic, "auth", requireBasicAuth(who, content)},
		{&s.token, "token", newTokens(who, time.Now).wrap(content)},
	} {
		made, err := newDoor(ctx, opts.Address, logged.wrap(listener.name, s.faults.wrap(listener.handler)))
		if err != nil {
			return nil, errors.Join(err, s.Close())
		}
		*listener.door = made
	}
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
		return errors.New("registry: a user name and a password are needed for the listeners with a login")
	}
	if o.Guest == "" || o.Guest == o.Username {
		return errors.New("registry: the guest needs a user name of its own")
	}
	return nil
}

// PlainAddr is the host:port of the listener without authentication.
func (s *Server) PlainAddr() string { return s.plain.addr }

// AuthAddr is the host:port of the listener that demands basic
// authentication. It serves the same content as PlainAddr.
func (s *Server) AuthAddr() string { return s.basic.addr }

// TokenAddr is the host:port of the listener that demands a token and gives
// them out. It serves the same content as PlainAddr, to pull alone.
func (s *Server) TokenAddr() string { return s.token.addr }

// Faults are what SetFaults has set.
func (s *Server) Faults() Faults { return s.faults.get() }

// SetFaults has the registry misbehave, or end that. A request that already
// waits for a delay keeps it. The error is an ErrFaults, which changes nothing,
// or that of a listener that cannot be opened or shut, after which the faults
// count as they were.
func (s *Server) SetFaults(want Faults) error {
	if err := want.Check(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return fmt.Errorf("set the registry's faults: %w", net.ErrClosed)
	}
	for _, d := range s.doors() {
		move := func() error { return d.open(context.Background()) }
		if want.Refuse {
			move = d.shut
		}
		if err := move(); err != nil {
			return err
		}
	}
	s.faults.set(want)
	return nil
}

// doors are those that there are: a start may have failed half way.
func (s *Server) doors() []*door {
	var made []*door
	for _, d := range []*door{s.plain, s.basic, s.token} {
		if d != nil {
			made = append(made, d)
		}
	}
	return made
}

// Close ends all listeners and cuts open connections. It may be called more
// than once. The store stays.
func (s *Server) Close() error {
	if s.stopWatch != nil {
		s.stopWatch()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	var errs []error
	for _, d := range s.doors() {
		errs = append(errs, d.close())
	}
	return errors.Join(errs...)
}
