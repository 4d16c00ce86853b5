package agent

import (
	"bytes"
	"fmt"
	"net"
	"strings"
	"syscall"
	"testing"
)

// listen takes connections at a free port.
func listen(t *testing.T, network, address string) int {
	t.Helper()
	l, err := net.Listen(network, address)
	if err != nil {
		t.Skipf("this machine has no %s: %v", network, err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l.Addr().(*net.TCPAddr).Port
}

// silent is a port at which nobody listens, nor can but the socket that has it.
func silent(t *testing.T) (socket, port int) {
	t.Helper()
	socket, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(socket) })
	if err := syscall.Bind(socket, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	address, err := syscall.Getsockname(socket)
	if err != nil {
		t.Fatal(err)
	}
	return socket, address.(*syscall.SockaddrInet4).Port
}

func TestPorts(t *testing.T) {
	t.Parallel()
	four := listen(t, "tcp4", "127.0.0.1:0")
	_, none := silent(t)
	var out bytes.Buffer
	if err := ports(fmt.Sprintf("%d,%d", four, none), &out); err != nil {
		t.Fatal(err)
	}
	if got, want := out.String(), fmt.Sprintf("%d\n", none); got != want {
		t.Errorf("silent ports %q, want %q", got, want)
	}
}

func TestPortsOfIPv6(t *testing.T) {
	t.Parallel()
	if !answers(listen(t, "tcp6", "[::1]:0")) {
		t.Error("a service that listens on ::1 alone does not count as there")
	}
}

// A port that opens while it is waited for ends the wait.
func TestPortsWaitForALateOne(t *testing.T) {
	t.Parallel()
	socket, port := silent(t)
	opened := make(chan error, 1)
	go func() { opened <- syscall.Listen(socket, 1) }()
	var out bytes.Buffer
	if err := ports(fmt.Sprint(port), &out); err != nil {
		t.Fatal(err)
	}
	if err := <-opened; err != nil {
		t.Fatal(err)
	}
	if out.String() != "" {
		t.Errorf("silent ports %q, want none", out.String())
	}
}

func TestPortsRefusesNonsense(t *testing.T) {
	t.Parallel()
	for _, list := range []string{"", "redis", "0", "65536", "80,", "-1"} {
		if err := ports(list, &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), "not a port") {
			t.Errorf("ports %q: error %v", list, err)
		}
	}
}
