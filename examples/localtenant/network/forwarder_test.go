package network

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"testing"
)

// server answers each line with its own name and the line, until the client's
// end of the connection; then it says goodbye.
func server(t *testing.T, name string) net.Listener {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				lines := bufio.NewScanner(conn)
				for lines.Scan() {
					fmt.Fprintln(conn, name, lines.Text())
				}
				fmt.Fprintln(conn, "goodbye")
			}()
		}
	}()
	return listener
}

func newForwarder(t *testing.T) (*Forwarder, context.CancelFunc) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	forwarder, err := NewForwarder(ctx, "127.0.0.1:0", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		forwarder.Close()
	})
	return forwarder, cancel
}

func dial(t *testing.T, forwarder *Forwarder) *net.TCPConn {
	t.Helper()
	conn, err := net.Dial("tcp", forwarder.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn.(*net.TCPConn)
}

func expect(t *testing.T, from *bufio.Reader, want string) {
	t.Helper()
	got, err := from.ReadString('\n')
	if err != nil || got != want+"\n" {
		t.Fatalf("read %q, %v; want %q", got, err, want)
	}
}

func TestForwarder(t *testing.T) {
	forwarder, _ := newForwarder(t)
	forwarder.SetTarget(server(t, "one").Addr().String())
	first := dial(t, forwarder)
	answers := bufio.NewReader(first)
	fmt.Fprintln(first, "a")
	expect(t, answers, "one a")

	// New connections follow the target, old ones stay.
	forwarder.SetTarget(server(t, "two").Addr().String())
	second := dial(t, forwarder)
	fmt.Fprintln(second, "b")
	expect(t, bufio.NewReader(second), "two b")
	fmt.Fprintln(first, "c")
	expect(t, answers, "one c")

	// The end of one direction passes through, and the other goes on.
	if err := first.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	expect(t, answers, "goodbye")
	if _, err := answers.ReadByte(); err != io.EOF {
		t.Errorf("after the goodbye: %v, want the end", err)
	}
}

func TestForwarderWithoutTarget(t *testing.T) {
	forwarder, _ := newForwarder(t)
	if _, err := dial(t, forwarder).Read(make([]byte, 1)); err == nil {
		t.Error("something came from nowhere")
	}
	gone := server(t, "gone")
	forwarder.SetTarget(gone.Addr().String())
	gone.Close()
	if _, err := dial(t, forwarder).Read(make([]byte, 1)); err == nil {
		t.Error("something came from a target that is gone")
	}
}

func TestForwarderEndsWithItsContext(t *testing.T) {
	forwarder, cancel := newForwarder(t)
	forwarder.SetTarget(server(t, "one").Addr().String())
	conn := dial(t, forwarder)
	answers := bufio.NewReader(conn)
	fmt.Fprintln(conn, "a")
	expect(t, answers, "one a")
	cancel()
	if _, err := answers.ReadByte(); err == nil {
		t.Error("the connection lives on")
	}
}

func TestFreePort(t *testing.T) {
	port, err := FreePort()
	if err != nil {
		t.Fatal(err)
	}
	if port < firstPort || port >= lastPort {
		t.Errorf("port %d is out of range", port)
	}
	listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		t.Fatalf("the free port is in use: %v", err)
	}
	listener.Close()
}
