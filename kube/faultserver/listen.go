package faultserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// listen opens a port of this host: any one for a new server, or that which it
// had before. In between nobody listens there, and yet the port stays with the
// test to its end: somebody else's connection could have got it for its own end
// and keep it for long.
func listen(t testing.TB, address string) (net.Listener, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	if port == "0" {
		number, err := hold(t, host)
		if err != nil {
			return nil, fmt.Errorf("holding a port: %w", err)
		}
		address = net.JoinHostPort(host, strconv.Itoa(number))
	}
	config := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		var set error
		err := c.Control(func(fd uintptr) { set = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1) })
		return errors.Join(err, set)
	}}
	return config.Listen(context.Background(), "tcp", address)
}

// hold binds a socket to a free port and does not listen, so that connections are
// refused and nobody else gets the port. Those who mean to share it can
// (SO_REUSEPORT in socket(7)).
func hold(t testing.TB, host string) (port int, err error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1); err != nil {
		return 0, err
	}
	local := &unix.SockaddrInet4{}
	copy(local.Addr[:], net.ParseIP(host).To4())
	if err := unix.Bind(fd, local); err != nil {
		return 0, err
	}
	bound, err := unix.Getsockname(fd)
	if err != nil {
		return 0, err
	}
	return bound.(*unix.SockaddrInet4).Port, nil
}
