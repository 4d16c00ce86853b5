package stream_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/remotecommand"

	"github.com/socialweb-computer/tenant-executor/kube/faultserver"
	"github.com/socialweb-computer/tenant-executor/kube/stream"
)

func TestExitCodesAreExact(t *testing.T) {
	t.Parallel()
	overEach(t, func(t *testing.T, b *bench) {
		b.server.OnExec(func(e *faultserver.Exec) {
			code, _ := strconv.Atoi(e.Args[0])
			_, _ = io.WriteString(e.Stdout, "out\n")
			_, _ = io.WriteString(e.Stderr, "err\n")
			e.Exit(code)
		})
		for _, code := range []int{0, 1, 2, 42, 126, 127, 137, 143, 254, 255} {
			got := b.run(t.Context(), strconv.Itoa(code))
			if got.err != nil || got.code != code {
				t.Errorf("exit code %d: got %d, %v", code, got.code, got.err)
			}
			if got.stdout.String() != "out\n" || got.stderr.String() != "err\n" {
				t.Errorf("exit code %d: stdout %q, stderr %q", code, &got.stdout, &got.stderr)
			}
		}
	})
}

func TestBothProtocolsThatTellTheEnd(t *testing.T) {
	t.Parallel()
	for _, protocol := range []string{"v5.channel.k8s.io", "v4.channel.k8s.io"} {
		b := newBench(t)
		b.server.Protocols(protocol)
		b.server.OnExec(func(e *faultserver.Exec) { e.Exit(42) })
		if got := b.run(t.Context(), "x"); got.err != nil || got.code != 42 {
			t.Errorf("%s: got %d, %v", protocol, got.code, got.err)
		}
	}
}

// A server of the protocol's early versions ends a command without a status.
func TestOldProtocolIsRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.server.Protocols("v3.channel.k8s.io", "v2.channel.k8s.io", "channel.k8s.io")
	got := b.run(t.Context(), "x")
	var notStarted *stream.NotStartedError
	if !errors.As(got.err, &notStarted) {
		t.Errorf("got %d, %v; want a *NotStartedError", got.code, got.err)
	}
	if n := len(b.server.Execs()); n != 0 {
		t.Errorf("%d commands were started", n)
	}
}

// breaks are the ways in which a connection ends before the status is there.
func breaks() []faultserver.Break {
	return []faultserver.Break{
		faultserver.CloseStreams, faultserver.GoAway, faultserver.ResetStreams, faultserver.FIN, faultserver.RST,
	}
}

func TestLostConnectionIsNeverSuccess(t *testing.T) {
	t.Parallel()
	for _, way := range breaks() {
		t.Run(string(way), func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.server.OnExec(func(e *faultserver.Exec) {
				_, _ = io.WriteString(e.Stdout, "step 1\n")
				e.Break(way)
			})
			// The premise: client-go's executor calls the same fault success.
			// Should it stop to do so, this package may have become needless.
			if err := b.clientGo(t); err != nil {
				t.Errorf("client-go's executor: %v; it used to return nil", err)
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

// clientGo runs a command with client-go's own executor.
func (b *bench) clientGo(t *testing.T) error {
	t.Helper()
	request := b.cluster.REST().Post().Namespace(namespace).Resource("pods").Name(podName).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{Container: "build", Command: []string{"x"}, Stdout: true, Stderr: true}, b.cluster.ParameterCodec())
	executor, err := remotecommand.NewSPDYExecutor(b.cluster.Config(), "POST", request.URL())
	if err != nil {
		t.Fatal(err)
	}
	return executor.StreamWithContext(t.Context(), remotecommand.StreamOptions{Stdout: io.Discard, Stderr: io.Discard})
}

// With the output closed and no status, only the caller's context can end the
// wait; the caller watches the Pod beside it.
func TestStatusThatNeverComesEndsWithTheContext(t *testing.T) {
	t.Parallel()
	overEach(t, func(t *testing.T, b *bench) {
		b.server.OnExec(func(e *faultserver.Exec) { e.Break(faultserver.Hang) })
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			b.server.Wait(t, "the command runs", func() bool { return len(b.server.Execs()) == 1 })
			cancel()
		}()
		if got := b.run(ctx, "x"); !errors.Is(got.err, context.Canceled) {
			t.Errorf("got %d, %v; want the context's error", got.code, got.err)
		}
	})
}

func TestStatusThatIsNoStatus(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"metadata":{},"status":"Fail`: "the connection broke before the command's end was known: the status is cut off: unexpected end of JSON input",
		``:                              "the connection broke before the command's end was known",
	} {
		b := newBench(t)
		b.server.OnExec(func(e *faultserver.Exec) { e.Status([]byte(text)) })
		got := b.run(t.Context(), "x")
		var lost *stream.LostError
		if !errors.As(got.err, &lost) || got.err.Error() != want {
			t.Errorf("status %q: got %d, %v\nwant a *LostError %q", text, got.code, got.err, want)
		}
	}
}

// Whatever a server sends, only a status that says so is an exit code.
func TestStatusWithoutExitCodeIsNoExitCode(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`{"status":"Failure","reason":"NonZeroExitCode","message":"m"}`,
		`{"status":"Failure","reason":"NonZeroExitCode","message":"m","details":{"causes":[{"reason":"ExitCode","message":"0"}]}}`,
		`{"status":"Failure","reason":"NonZeroExitCode","message":"m","details":{"causes":[{"reason":"ExitCode","message":"-1"}]}}`,
		`{"status":"Failure","reason":"NonZeroExitCode","message":"m","details":{"causes":[{"reason":"ExitCode","message":"256"}]}}`,
		`{"status":"Failure","reason":"InternalError","message":"m","details":{"causes":[{"reason":"ExitCode","message":"7"}]}}`,
		`{"status":"","message":"m"}`,
		`{"message":"m"}`,
	} {
		b := newBench(t)
		b.server.OnExec(func(e *faultserver.Exec) { e.Status([]byte(text)) })
		got := b.run(t.Context(), "x")
		var runtime *stream.RuntimeError
		if !errors.As(got.err, &runtime) || got.err.Error() != "m" {
			t.Errorf("status %s: got %d, %v; want a *RuntimeError", text, got.code, got.err)
		}
	}
}

func TestRuntimeErrorKeepsTheText(t *testing.T) {
	t.Parallel()
	overEach(t, func(t *testing.T, b *bench) {
		const text = `failed to exec in container: OCI runtime exec failed: exec failed: exec: "sh": executable file not found in $PATH`
		b.server.OnExec(func(e *faultserver.Exec) { e.Error(text) })
		got := b.run(t.Context(), "x")
		var runtime *stream.RuntimeError
		if !errors.As(got.err, &runtime) {
			t.Fatalf("got %d, %v; want a *RuntimeError", got.code, got.err)
		}
		if want := "error executing command in container: " + text; got.err.Error() != want {
			t.Errorf("got %q, want %q", got.err, want)
		}
		if stream.MayReachLater(got.err) {
			t.Error("a command that the runtime refused counts as one that may start later")
		}
	})
}

// The connection goes away between the upgrade and the command's start.
func TestLostWhileTheStreamsOpen(t *testing.T) {
	t.Parallel()
	for n := 1; n <= 3; n++ {
		t.Run(fmt.Sprintf("at stream %d", n), func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.server.BreakAtStream(n)
			got := b.run(t.Context(), "x")
			var lost *stream.LostError
			if !errors.As(got.err, &lost) {
				t.Errorf("got code %d, error %v; want a *LostError", got.code, got.err)
			}
		})
	}
}
