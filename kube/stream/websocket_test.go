package stream_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/remotecommand"

	"github.com/socialweb-computer/tenant-executor/kube/cluster"
	"github.com/socialweb-computer/tenant-executor/kube/faultserver"
	"github.com/socialweb-computer/tenant-executor/kube/stream"
)

// newWebBench is newBench over WebSocket.
func newWebBench(t *testing.T) *bench {
	t.Helper()
	b := newBench(t)
	b.runner = stream.NewRunner(b.cluster, stream.WebSocket)
	return b
}

// A connection that ends without a status is lost, however it ends. client-go
// takes the first of these for success, and loses the exit code with all.
func TestLostWebSocketIsNeverSuccess(t *testing.T) {
	t.Parallel()
	for way, success := range map[faultserver.Break]bool{
		faultserver.CloseStreams: true, faultserver.GoAway: false, faultserver.FIN: false, faultserver.RST: false,
	} {
		t.Run(string(way), func(t *testing.T) {
			t.Parallel()
			b := newWebBench(t)
			b.server.OnExec(func(e *faultserver.Exec) {
				_, _ = io.WriteString(e.Stdout, "step 1\n")
				e.Break(way)
			})
			if err := b.clientGoWebSocket(t); (err == nil) != success {
				t.Errorf("client-go's executor gives %v; success used to be %v", err, success)
			}
			got := b.run(t.Context(), "x")
			var lost *stream.LostError
			if !errors.As(got.err, &lost) {
				t.Errorf("got code %d, error %v; want a *LostError", got.code, got.err)
			}
			if stream.MayReachLater(got.err) {
				t.Error("a lost command counts as one that may be started again")
			}
		})
	}
}

func (b *bench) clientGoWebSocket(t *testing.T) error {
	t.Helper()
	executor, err := remotecommand.NewWebSocketExecutor(b.cluster.Config(), "GET",
		b.server.URL()+"/api/v1/namespaces/"+namespace+"/pods/"+podName+"/exec?command=x&container=build&stdout=true&stderr=true")
	if err != nil {
		t.Fatal(err)
	}
	return executor.StreamWithContext(t.Context(), remotecommand.StreamOptions{Stdout: io.Discard, Stderr: io.Discard})
}

// The command starts with the connection: whoever does not hear whether there
// is one does not know whether the command has started.
func TestWebSocketThatMayHaveStarted(t *testing.T) {
	t.Parallel()
	b := newWebBench(t)
	b.server.Fail(1, "get", "pods/exec", faultserver.Reset())
	got := b.run(t.Context(), "x")
	var lost *stream.LostError
	if !errors.As(got.err, &lost) || stream.MayReachLater(got.err) || !cluster.Disconnected(got.err) {
		t.Errorf("got %d, %v; want a *LostError of the connection", got.code, got.err)
	}
	if text := got.err.Error(); strings.Contains(text, "command=") || !strings.Contains(text, "connecting to 127.0.0.1:") {
		t.Errorf("the message is %q", text)
	}
}

// The apiserver opens the connection before it has reached the node. What it
// then says of the way there is not the end of the command.
func TestWebSocketToANodeThatIsNotReached(t *testing.T) {
	t.Parallel()
	for _, message := range []string{
		"Internal error occurred: error dialing backend: proxy error from 127.0.0.1:6443 while dialing 10.0.0.7:10250, code 502: 502 Bad Gateway",
		`Internal error occurred: unable to upgrade connection: container not found ("build")`,
		"Internal error occurred: unable to upgrade connection: pod does not exist",
	} {
		b := newWebBench(t)
		b.server.OnExec(func(e *faultserver.Exec) {
			e.Status([]byte(`{"status":"Failure","reason":"InternalError","code":500,"message":"` + strings.ReplaceAll(message, `"`, `\"`) + `"}`))
		})
		got := b.run(t.Context(), "x")
		var lost *stream.LostError
		if !errors.As(got.err, &lost) || !strings.Contains(got.err.Error(), message) {
			t.Errorf("%s: got %d, %v; want a *LostError", message, got.code, got.err)
		}
	}
}

func TestRefusedWebSockets(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name          string
		fault         faultserver.Fault
		later, denied bool
		text          string
	}{
		{"bad gateway", faultserver.Answer(http.StatusBadGateway, "Bad Gateway"), true, false, "the command did not start: 502 Bad Gateway: Bad Gateway"},
		{"no such Pod", faultserver.PodNotFound("job"), false, false, `the command did not start: pods "job" not found`},
		{"no right", faultserver.AnswerStatus(http.StatusForbidden, metav1.StatusReasonForbidden, `pods "job" is forbidden: User "driver" cannot get resource "pods/exec"`),
			false, true, `the command did not start: pods "job" is forbidden: User "driver" cannot get resource "pods/exec"`},
		{"unknown client", faultserver.AnswerStatus(http.StatusUnauthorized, metav1.StatusReasonUnauthorized, "Unauthorized"), false, true,
			"the command did not start: Unauthorized"},
		{"upgrade ignored", faultserver.Answer(http.StatusOK, "hello"), true, false, "the command did not start: 200 OK: hello"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			b := newWebBench(t)
			b.server.Fail(1, "get", "pods/exec", test.fault)
			got := b.run(t.Context(), "x")
			if stream.MayReachLater(got.err) != test.later || cluster.Denied(got.err) != test.denied || got.err == nil || got.err.Error() != test.text {
				t.Errorf("got %v, later %v, denied %v", got.err, stream.MayReachLater(got.err), cluster.Denied(got.err))
			}
			if n := len(b.server.Execs()); n != 0 {
				t.Errorf("%d commands were started", n)
			}
		})
	}
}

func TestWebSocketWithoutAServer(t *testing.T) {
	t.Parallel()
	b := newWebBench(t)
	for name, files := range map[string]faultserver.Credentials{
		"client of another CA": b.server.ForeignClient(t), "cluster of another CA": b.server.ForeignCA(t),
	} {
		other := connect(t, b.server, files)
		other.runner = stream.NewRunner(other.cluster, stream.WebSocket)
		if got := other.run(t.Context(), "x"); !cluster.Denied(got.err) || stream.MayReachLater(got.err) {
			t.Errorf("%s: Denied is %v for %v", name, cluster.Denied(got.err), got.err)
		}
	}
	b.server.Protocols("v4.channel.k8s.io")
	if got := b.run(t.Context(), "x"); !cluster.Denied(got.err) {
		t.Errorf("a server without the protocol: %v", got.err)
	}
	b.server.Down()
	if got := b.run(t.Context(), "x"); !stream.MayReachLater(got.err) {
		t.Errorf("nobody listens: %v", got.err)
	}
}

// A server that takes the request and says nothing does not hold a caller who
// has been told to end.
func TestSilentWebSocketEndsWithTheContext(t *testing.T) {
	t.Parallel()
	b := newWebBench(t)
	b.server.Fail(-1, "get", "pods/exec", faultserver.Silence())
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		b.server.Wait(t, "the command is asked for", func() bool { return b.server.Requests().Count("get", "pods/exec") == 1 })
		cancel()
	}()
	if got := b.run(ctx, "x"); !errors.Is(got.err, context.Canceled) {
		t.Errorf("got %d, %v; want the context's error", got.code, got.err)
	}
}
