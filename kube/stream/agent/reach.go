package agent

import (
	"errors"
	"io"
	"net/netip"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// reach waits until a host answers at a TCP port, for portsPatience at most, and
// writes what is missing if it does not. A connection that is refused is an
// answer: the network leads there.
func reach(address string, out io.Writer) error {
	host, port, err := splitAddress(address)
	if err != nil {
		return err
	}
	r := systemResolver()
	for until := time.Now().Add(portsPatience); ; time.Sleep(portsPause) {
		missing := r.try(host, port)
		if missing == "" {
			return nil
		}
		if time.Now().After(until) {
			_, err := io.WriteString(out, missing+"\n")
			return err
		}
	}
}

// splitAddress takes HOST:PORT apart. An IPv6 address stands in brackets.
func splitAddress(address string) (string, uint16, error) {
	i := strings.LastIndexByte(address, ':')
	if i < 1 {
		return "", 0, errors.New("no HOST:PORT: " + address)
	}
	port, err := strconv.ParseUint(address[i+1:], 10, 16)
	if err != nil || port == 0 {
		return "", 0, errors.New("not a port: " + address[i+1:])
	}
	return strings.TrimSuffix(strings.TrimPrefix(address[:i], "["), "]"), uint16(port), nil
}

// try looks once whether a host answers, and says what is missing, "" if nothing
// is.
func (r *resolver) try(host string, port uint16) string {
	addresses := r.lookup(host)
	if len(addresses) == 0 {
		return "its name is not resolved"
	}
	for _, address := range addresses {
		if err := connect(address, port); err == nil || errors.Is(err, syscall.ECONNREFUSED) {
			return ""
		}
	}
	return "it does not answer"
}

// connect makes a connection and ends it.
func connect(address netip.Addr, port uint16) error {
	family, to := sockaddr(address, port)
	socket, err := syscall.Socket(family, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer syscall.Close(socket) //nolint:errcheck // nothing was written
	limit := syscall.NsecToTimeval(connectLimit.Nanoseconds())
	if err := syscall.SetsockoptTimeval(socket, syscall.SOL_SOCKET, syscall.SO_SNDTIMEO, &limit); err != nil {
		return err
	}
	for {
		if err := syscall.Connect(socket, to); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

// sockaddr is an address as the kernel takes it.
func sockaddr(address netip.Addr, port uint16) (int, syscall.Sockaddr) {
	if address = address.Unmap(); address.Is4() {
		return syscall.AF_INET, &syscall.SockaddrInet4{Port: int(port), Addr: address.As4()}
	}
	return syscall.AF_INET6, &syscall.SockaddrInet6{Port: int(port), Addr: address.As16()}
}
