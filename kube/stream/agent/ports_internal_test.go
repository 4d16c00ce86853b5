package agent

import (
	"bytes"
	"fmt"
	"net"
	"strings"
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

// free is a port at which nobody listens.
func free(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // it has done its work
	return l.Addr().(*net.TCPAddr).Port
}

func TestPorts(t *testing.T) {
	t.Parallel()
	four, none := listen(t, "tcp4", "127.0.0.1:0"), free(t)
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
	port := free(t)
	opened := make(chan error, 1)
	go func() {
		l, err := net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			t.Cleanup(func() { _ = l.Close() })
		}
		opened <- err
	}()
	var out bytes.Buffer
	if err := ports(fmt.Sprint(port), &out); err != nil {
		t.Fatal(err)
	}
	if err := <-opened; err != nil {
		t.Skipf("the port was taken meanwhile: %v", err)
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
