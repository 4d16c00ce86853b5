package registry

import (
	"errors"
	"io"
	"net"
	"net/http"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
)

func TestDown(t *testing.T) {
	server := start(t, nil)
	push(t, server.PlainAddr(), sample(t))
	basic := remote.WithAuth(&authn.Basic{Username: testUser, Password: testPassword})

	setFaults(t, server, Faults{Down: true})
	for _, addr := range []string{server.PlainAddr(), server.AuthAddr(), server.TokenAddr()} {
		_, err := remote.Image(tag(t, addr), append(noRetry, basic)...)
		var answer *transport.Error
		if !errors.As(err, &answer) || answer.StatusCode != http.StatusServiceUnavailable {
			t.Errorf("pull from %s while down = %v, want a 503", addr, err)
		}
	}
	setFaults(t, server, Faults{})
	if _, err := remote.Image(tag(t, server.PlainAddr()), noRetry...); err != nil {
		t.Errorf("pull after the registry came back: %v", err)
	}
}

func setFaults(t *testing.T, server *Server, faults Faults) {
	t.Helper()
	if err := server.SetFaults(faults); err != nil {
		t.Fatal(err)
	}
}

// TestRefuse shuts the doors and opens them again at the same ports, also when
// a connection was open.
func TestRefuse(t *testing.T) {
	server := start(t, nil)
	push(t, server.PlainAddr(), sample(t))
	addrs := []string{server.PlainAddr(), server.AuthAddr(), server.TokenAddr()}
	open, err := net.Dial("tcp", server.PlainAddr())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = open.Close() }()
	for range 2 { // shutting what is shut changes nothing
		setFaults(t, server, Faults{Refuse: true})
	}
	if _, err := io.ReadAll(open); err != nil && !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the open connection: %v, want its end", err)
	}
	for _, addr := range addrs {
		if conn, err := net.Dial("tcp", addr); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("dial %s = %v, %v, want a refusal", addr, conn, err)
		}
	}
	for range 2 {
		setFaults(t, server, Faults{})
	}
	if _, err := remote.Image(tag(t, server.PlainAddr()), noRetry...); err != nil {
		t.Errorf("pull after the registry came back: %v", err)
	}
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
	if err := server.SetFaults(Faults{}); !errors.Is(err, net.ErrClosed) {
		t.Errorf("faults of a closed registry = %v", err)
	}
}

// TestMendFails has somebody listen, on purpose, at the port of a door that is
// shut: the fault stays, and is ended by a later try.
func TestMendFails(t *testing.T) {
	server := start(t, nil)
	setFaults(t, server, Faults{Refuse: true})
	other, err := net.Listen("tcp", server.PlainAddr())
	if err != nil {
		t.Fatal(err)
	}
	if err := server.SetFaults(Faults{}); !errors.Is(err, syscall.EADDRINUSE) || !server.Faults().Refuse {
		t.Errorf("mended while another listens: %v, %+v", err, server.Faults())
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	setFaults(t, server, Faults{})
}

func TestRateLimited(t *testing.T) {
	server := start(t, nil)
	push(t, server.PlainAddr(), sample(t))
	setFaults(t, server, Faults{RateLimited: true})
	basic := remote.WithAuth(&authn.Basic{Username: testUser, Password: testPassword})
	for _, addr := range []string{server.PlainAddr(), server.AuthAddr(), server.TokenAddr()} {
		_, err := remote.Image(tag(t, addr), append(noRetry, basic)...)
		var answer *transport.Error
		if !errors.As(err, &answer) || answer.StatusCode != http.StatusTooManyRequests ||
			len(answer.Errors) != 1 || answer.Errors[0].Code != transport.TooManyRequestsErrorCode {
			t.Errorf("pull from %s = %v, want a 429 with TOOMANYREQUESTS", addr, err)
		}
		if _, err := remote.Head(tag(t, addr), append(noRetry, basic)...); err != nil {
			t.Errorf("HEAD of a manifest from %s: %v, want it to count for nothing", addr, err)
		}
	}
}

func TestFaultsOfSomeRepositories(t *testing.T) {
	server := start(t, nil)
	push(t, server.PlainAddr(), sample(t))
	for pattern, want := range map[string]bool{"localtenant/sample": true, "localtenant/s*": true, "localtenant/other": false, "sample": false} {
		setFaults(t, server, Faults{Down: true, Repositories: pattern})
		_, err := remote.Image(tag(t, server.PlainAddr()), noRetry...)
		if failed := err != nil; failed != want {
			t.Errorf("down for %q: pull = %v", pattern, err)
		}
	}
}

func TestFaultsAreChecked(t *testing.T) {
	server := start(t, nil)
	setFaults(t, server, Faults{Delay: time.Nanosecond})
	for _, bad := range []Faults{
		{Delay: -1}, {BytesPerSecond: -1}, {Repositories: "["}, {Refuse: true, Repositories: "a"},
	} {
		if err := server.SetFaults(bad); !errors.Is(err, ErrFaults) {
			t.Errorf("%+v: %v, want ErrFaults", bad, err)
		}
	}
	if got := server.Faults(); got != (Faults{Delay: time.Nanosecond}) {
		t.Errorf("after refusals the faults are %+v", got)
	}
}
