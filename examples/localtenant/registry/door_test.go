package registry

import (
	"errors"
	"net"
	"net/http"
	"syscall"
	"testing"
)

// TestDoorIsShutAtOnce shuts doors that were opened a moment before: when shut
// returns, nobody is let in, and somebody else may listen.
func TestDoorIsShutAtOnce(t *testing.T) {
	d, err := newDoor(t.Context(), "127.0.0.1", http.NotFoundHandler())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := errors.Join(d.close(), d.close()); err != nil {
			t.Errorf("close twice: %v", err)
		}
	}()
	for range 200 {
		if err := d.shut(); err != nil {
			t.Fatal(err)
		}
		if conn, err := net.Dial("tcp", d.addr); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Fatalf("dial = %v, %v, want a refusal", conn, err)
		}
		if err := d.open(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestDoorAtVersion6(t *testing.T) {
	d, err := newDoor(t.Context(), "::1", http.NotFoundHandler())
	if errors.Is(err, syscall.EADDRNOTAVAIL) || errors.Is(err, syscall.EAFNOSUPPORT) {
		t.Skip("this machine has no IPv6")
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.close() }()
	resp, err := http.Get("http://" + d.addr)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
}
