package resolver

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"testing"
)

// started is a resolver, and a Go resolver that asks it alone.
func started(t *testing.T) (*Server, *net.Resolver) {
	t.Helper()
	s, err := Start(t.Context(), "127.0.0.1:0", map[string]netip.Addr{Host: netip.MustParseAddr("10.201.0.1")}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return s, &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", s.Addr())
	}}
}

func TestNamesOfTheZone(t *testing.T) {
	_, resolver := started(t)
	for _, name := range []string{Host, "HOST." + Zone, Host + "."} {
		if got, err := resolver.LookupHost(t.Context(), name); err != nil || !slices.Equal(got, []string{"10.201.0.1"}) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

// What is not there is not there, and nobody waits for it.
func TestOtherNames(t *testing.T) {
	_, resolver := started(t)
	for _, name := range []string{"gitlab.example.com.", "other." + Zone + ".", Host + ".ci.svc.cluster.local."} {
		got, err := resolver.LookupHost(t.Context(), name)
		var failed *net.DNSError
		if !errors.As(err, &failed) || !failed.IsNotFound {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

// A message that is none is passed over, and the next question answered.
func TestNonsenseIsPassedOver(t *testing.T) {
	s, resolver := started(t)
	conn, err := net.Dial("udp", s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, text := range []string{"", "x", "\x00\x01\x80\x00\x00\x01\x00\x00\x00\x00\x00\x00", "\x00\x01\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\xff"} {
		if _, err := conn.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := resolver.LookupHost(t.Context(), Host); err != nil {
		t.Error(err)
	}
}
