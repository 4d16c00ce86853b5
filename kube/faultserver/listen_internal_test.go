package faultserver

import (
	"errors"
	"net"
	"syscall"
	"testing"
)

// While a server is down, connections to its port are refused, and nobody else
// gets it.
func TestPortStaysWhileNobodyListens(t *testing.T) {
	t.Parallel()
	first, err := listen(t, "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := first.Addr().String()
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if conn, err := net.Dial("tcp", address); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("a connection to a port where nobody listens: %v, %v", conn, err)
	}
	if other, err := net.Listen("tcp", address); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("somebody else gets the port: %v, %v", other, err)
	}
	again, err := listen(t, address)
	if err != nil {
		t.Fatalf("the port cannot be opened again: %v", err)
	}
	defer again.Close() //nolint:errcheck // it has done its work
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatalf("it is open again, and does not answer: %v", err)
	}
	_ = conn.Close()
}
