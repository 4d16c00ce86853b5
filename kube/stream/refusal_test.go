package stream_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"syscall"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/socialweb-computer/tenant-executor/kube/cluster"
	"github.com/socialweb-computer/tenant-executor/kube/faultserver"
	"github.com/socialweb-computer/tenant-executor/kube/stream"
)

func TestRefusedUpgrades(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		fault  faultserver.Fault
		later  bool
		denied bool
		text   string
	}{
		{"no route to the node yet (status)",
			faultserver.AnswerStatus(http.StatusInternalServerError, metav1.StatusReasonInternalError,
				"error dialing backend: proxy error from 127.0.0.1:6443 while dialing 10.0.0.7:10250, code 502: 502 Bad Gateway"),
			true, false, "the command did not start: error dialing backend: proxy error from 127.0.0.1:6443 while dialing 10.0.0.7:10250, code 502: 502 Bad Gateway"},
		{"no route to the node yet (text)",
			faultserver.Answer(http.StatusInternalServerError, "error dialing backend: remote error: tls: internal error"),
			true, false, "the command did not start: 500 Internal Server Error: error dialing backend: remote error: tls: internal error"},
		{"bad gateway", faultserver.Answer(http.StatusBadGateway, "Bad Gateway"), true, false,
			"the command did not start: 502 Bad Gateway: Bad Gateway"},
		{"apiserver not ready", faultserver.Answer(http.StatusServiceUnavailable, "starting"), true, false,
			"the command did not start: 503 Service Unavailable: starting"},
		{"too many requests", faultserver.AnswerStatus(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, "slow down"), true, false,
			"the command did not start: slow down"},
		{"no node yet", faultserver.AnswerStatus(http.StatusBadRequest, metav1.StatusReasonBadRequest, "pod job does not have a host assigned"), true, false,
			"the command did not start: pod job does not have a host assigned"},
		{"container not there yet (404)", faultserver.Answer(http.StatusNotFound, `unable to upgrade connection: container not found ("build")`), true, false,
			`the command did not start: 404 Not Found: unable to upgrade connection: container not found ("build")`},
		{"container not there yet (500)", faultserver.Answer(http.StatusInternalServerError, `unable to upgrade connection: container not found ("build")`), true, false,
			`the command did not start: 500 Internal Server Error: unable to upgrade connection: container not found ("build")`},
		{"no such Pod", faultserver.PodNotFound("job"), false, false,
			`the command did not start: pods "job" not found`},
		{"no right", faultserver.AnswerStatus(http.StatusForbidden, metav1.StatusReasonForbidden, `pods "job" is forbidden: User "driver" cannot create resource "pods/exec"`), false, true,
			`the command did not start: pods "job" is forbidden: User "driver" cannot create resource "pods/exec"`},
		{"no right (text)", faultserver.Answer(http.StatusForbidden, "Forbidden"), false, true, "the command did not start: 403 Forbidden: Forbidden"},
		{"unknown client", faultserver.AnswerStatus(http.StatusUnauthorized, metav1.StatusReasonUnauthorized, "Unauthorized"), false, true,
			"the command did not start: Unauthorized"},
		{"upgrade ignored", faultserver.Answer(http.StatusOK, "hello"), true, false, "the command did not start: 200 OK: hello"},
		{"reset", faultserver.Reset(), true, false, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.server.Fail(1, "create", "pods/exec", test.fault)
			got := b.run(t.Context(), "x")
			var notStarted *stream.NotStartedError
			if !errors.As(got.err, &notStarted) {
				t.Fatalf("got %d, %v; want a *NotStartedError", got.code, got.err)
			}
			if later := stream.MayReachLater(got.err); later != test.later {
				t.Errorf("MayReachLater is %v for %v", later, got.err)
			}
			if denied := cluster.Denied(got.err); denied != test.denied {
				t.Errorf("Denied is %v for %v", denied, got.err)
			}
			if strings.Contains(got.err.Error(), "command=") {
				t.Errorf("the message repeats the command: %v", got.err)
			}
			if test.text != "" && got.err.Error() != test.text {
				t.Errorf("got  %q\nwant %q", got.err, test.text)
			}
			if n := len(b.server.Execs()); n != 0 {
				t.Errorf("%d commands were started", n)
			}
		})
	}
}

func TestConnectionRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.server.Down()
	got := b.run(t.Context(), "x")
	if !errors.Is(got.err, syscall.ECONNREFUSED) || !stream.MayReachLater(got.err) {
		t.Errorf("got %v; want a refused connection that may be tried again", got.err)
	}
	b.server.Up(t)
	if got := b.run(t.Context(), "x"); got.err != nil || got.code != 0 {
		t.Errorf("the server is back: got %d, %v", got.code, got.err)
	}
}

func TestWrongCertificatesAreFinal(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for name, files := range map[string]faultserver.Credentials{
		"client of another CA":  b.server.ForeignClient(t),
		"cluster of another CA": b.server.ForeignCA(t),
	} {
		got := connect(t, b.server, files).run(t.Context(), "x")
		if !cluster.Denied(got.err) || stream.MayReachLater(got.err) {
			t.Errorf("%s: Denied is %v, MayReachLater %v for %v", name, cluster.Denied(got.err), stream.MayReachLater(got.err), got.err)
		}
	}
}

// A server that takes the request and says nothing must not hold a caller who
// has been told to end.
func TestSilentServerEndsWithTheContext(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.server.Fail(-1, "create", "pods/exec", faultserver.Silence())
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		b.server.Wait(t, "the command is asked for", func() bool { return b.server.Requests().Count("create", "pods/exec") == 1 })
		cancel()
	}()
	if got := b.run(ctx, "x"); !errors.Is(got.err, context.Canceled) {
		t.Errorf("got %d, %v; want the context's error", got.code, got.err)
	}
}

// Without a word from the server the command counts as not started, so that it
// can be tried again. (The only test here that waits for a time to pass.)
func TestSilentServerIsGivenUp(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.server.Fail(1, "create", "pods/exec", faultserver.Silence())
	got := b.run(t.Context(), "x")
	if !stream.MayReachLater(got.err) || !errors.Is(got.err, context.DeadlineExceeded) {
		t.Errorf("got %d, %v; want a command that did not start", got.code, got.err)
	}
}
