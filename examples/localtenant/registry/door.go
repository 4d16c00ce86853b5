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
	"strconv"
	"sync"
	"syscall"
	"time"
)

// door is one listener of the registry. It can be shut, so that connections
// are refused, and opened again at the same port, which stays its own in the
// meantime.
type door struct {
	addr    string
	handler http.Handler
	held    *os.File // keeps the port

	mu       sync.Mutex
	server   *http.Server // nil when shut
	listener net.Listener
}

// newDoor takes a free port of the address and opens there.
func newDoor(ctx context.Context, address string, handler http.Handler) (*door, error) {
	held, port, err := holdPort(net.ParseIP(address))
	if err != nil {
		return nil, fmt.Errorf("open a listener of the registry at %s: %w", address, err)
	}
	d := &door{addr: net.JoinHostPort(address, strconv.Itoa(port)), handler: handler, held: held}
	if err := d.open(ctx); err != nil {
		return nil, errors.Join(err, held.Close())
	}
	return d, nil
}

// open lets connections in; it may be open already.
func (d *door) open(ctx context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.server != nil {
		return nil
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", d.addr)
	if err != nil {
		return fmt.Errorf("open a listener of the registry: %w", err)
	}
	d.server = &http.Server{
		Handler: d.handler,
		// A node that dies in the middle of a request header must not hold a
		// connection for ever; bodies may take as long as they need.
		ReadHeaderTimeout: 30 * time.Second,
		// net/http would write to the process's standard error.
		ErrorLog: log.New(io.Discard, "", 0),
	}
	d.listener = listener
	go serve(d.server, listener)
	return nil
}

// shut cuts open connections and has new ones refused.
func (d *door) shut() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.server == nil {
		return nil
	}
	err := d.server.Close()
	// A server that was told to serve a moment ago may not know its listener
	// yet, and would close it late.
	if late := d.listener.Close(); !errors.Is(late, net.ErrClosed) {
		err = errors.Join(err, late)
	}
	d.server, d.listener = nil, nil
	return err
}

// close is shut for good: the port is given back.
func (d *door) close() error {
	err := d.shut()
	if held := d.held.Close(); !errors.Is(held, os.ErrClosed) {
		err = errors.Join(err, held)
	}
	return err
}

// serve ends when the server is closed; any other end shows as refused
// connections to whoever pulls, and there is nobody here to tell.
func serve(server *http.Server, listener net.Listener) {
	_ = server.Serve(listener)
}

// holdPort binds a socket to a free port and never listens on it. While it is
// there the kernel gives the port to nobody who asks for any, and a connection
// to it is refused unless somebody listens. With SO_REUSEADDR on both, which
// Go sets for its listeners, a listener may still have it (socket(7)).
func holdPort(ip net.IP) (*os.File, int, error) {
	family, address := syscall.AF_INET6, syscall.Sockaddr(&syscall.SockaddrInet6{Addr: [16]byte(ip.To16())})
	if v4 := ip.To4(); v4 != nil {
		family, address = syscall.AF_INET, &syscall.SockaddrInet4{Addr: [4]byte(v4)}
	}
	fd, err := syscall.Socket(family, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, 0, os.NewSyscallError("socket", err)
	}
	held := os.NewFile(uintptr(fd), "held port")
	if err := syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1); err != nil {
		return nil, 0, errors.Join(os.NewSyscallError("setsockopt", err), held.Close())
	}
	if err := syscall.Bind(fd, address); err != nil {
		return nil, 0, errors.Join(os.NewSyscallError("bind", err), held.Close())
	}
	bound, err := syscall.Getsockname(fd)
	if err != nil {
		return nil, 0, errors.Join(os.NewSyscallError("getsockname", err), held.Close())
	}
	switch bound := bound.(type) {
	case *syscall.SockaddrInet4:
		return held, bound.Port, nil
	case *syscall.SockaddrInet6:
		return held, bound.Port, nil
	}
	return nil, 0, errors.Join(fmt.Errorf("a socket of the unknown kind %T", bound), held.Close())
}
