package stream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/remotecommand"
	"k8s.io/streaming/pkg/httpstream"

	"github.com/socialweb-computer/tenant-executor/kube/bounded"
	"github.com/socialweb-computer/tenant-executor/kube/crash"
)

// session is the set of streams of one running command.
type session struct {
	conn httpstream.Connection
	// stderr is nil for a command on a terminal, resize for any other.
	errors, stdin, stdout, stderr, resize httpstream.Stream

	gates   []*gate
	output  sync.WaitGroup
	status  chan statusRead
	copyErr chan error
}

type statusRead struct {
	text []byte
	err  error
}

// lastReplies is how long replies that arrived before a connection went away
// may take to get through.
const lastReplies = 2 * time.Second

var errClosed = errors.New("the connection was closed while the command started")

// open opens the streams, which starts the command. Waiting for the server's
// reply to each heeds neither ctx nor the end of the connection
// (createStreamResponseTimeout in k8s.io/streaming), so both are watched here.
func open(ctx context.Context, conn httpstream.Connection, c Command) (*session, error) {
	limited, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	crash.Go(ctx, func() {
		select {
		case <-limited.Done():
			return
		case <-conn.CloseChan():
		}
		// A command that is quick has ended by now, and its streams are well.
		late := time.NewTimer(lastReplies)
		defer late.Stop()
		select {
		case <-limited.Done():
		case <-late.C:
			cancel(errClosed)
		}
	})
	s, err := bounded.Do(limited, func() (*session, error) { return openStreams(conn, c) }, func(*session) {})
	if cause := context.Cause(limited); err != nil && cause != nil {
		return nil, cause
	}
	return s, err
}

// openStreams opens the error stream first, as every client does: the server
// waits for all of them.
func openStreams(conn httpstream.Connection, c Command) (*session, error) {
	s := &session{conn: conn, status: make(chan statusRead, 1), copyErr: make(chan error, 3)}
	var err error
	if s.errors, err = s.stream(corev1.StreamTypeError); err != nil {
		return nil, err
	}
	// Nothing is ever sent on it; closing our half says so.
	if err := s.errors.Close(); err != nil {
		return nil, fmt.Errorf("closing the error stream: %w", err)
	}
	if c.Stdin != nil {
		if s.stdin, err = s.stream(corev1.StreamTypeStdin); err != nil {
			return nil, err
		}
	}
	if s.stdout, err = s.stream(corev1.StreamTypeStdout); err != nil {
		return nil, err
	}
	if c.Sizes == nil {
		s.stderr, err = s.stream(corev1.StreamTypeStderr)
	} else {
		s.resize, err = s.stream(corev1.StreamTypeResize)
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

// begin connects the streams with the command's reader and writers.
func (s *session) begin(ctx context.Context, c Command) {
	crash.Go(ctx, func() {
		text, err := bounded.ReadAll(s.errors, bounded.Short)
		if tooLong(err) {
			s.copyErr <- err
		}
		s.status <- statusRead{text, err}
	})
	if s.stdin != nil {
		crash.Go(ctx, func() { send(s.stdin, c.Stdin) })
	}
	out := &gate{to: c.Stdout}
	s.gates = []*gate{out}
	if s.stderr == nil {
		crash.Go(ctx, func() { sendSizes(s.resize, c.Sizes, s.conn.CloseChan()) })
		s.receive(ctx, s.stdout, out)
		return
	}
	err := out
	if !same(c.Stdout, c.Stderr) {
		err = &gate{to: c.Stderr}
	}
	s.gates = []*gate{out, err}
	s.receive(ctx, s.stdout, out)
	s.receive(ctx, s.stderr, err)
}

// same says whether two writers are one: then only one goroutine at a time may
// write to it. Types that cannot be compared are not the same.
func same(a, b io.Writer) bool {
	v := reflect.ValueOf(a)
	return v.IsValid() && v.Comparable() && a == b
}

func (s *session) stream(kind string) (httpstream.Stream, error) {
	headers := http.Header{}
	headers.Set(corev1.StreamType, kind)
	stream, err := s.conn.CreateStream(headers)
	if err != nil {
		return nil, fmt.Errorf("opening the %s stream: %w", kind, err)
	}
	return stream, nil
}

// send copies stdin and says that it ends. A command that has ended does not
// read any more; its status tells what there is to tell.
func send(stream httpstream.Stream, from io.Reader) {
	defer stream.Close() //nolint:errcheck // see above
	if c, closes := from.(io.Closer); closes {
		defer c.Close() //nolint:errcheck // it only lets go of a writer
	}
	// Only Read is passed on: a WriterTo would write everything in one frame,
	// larger than SPDY allows.
	_, _ = io.Copy(stream, struct{ io.Reader }{from})
}

// sendSizes tells the server how large the terminal is, each size as JSON
// (k8s.io/client-go/tools/remotecommand, v3.go).
func sendSizes(stream httpstream.Stream, sizes <-chan Size, over <-chan bool) {
	encoder := json.NewEncoder(stream)
	for {
		select {
		case <-over:
			return
		case size, open := <-sizes:
			if !open || encoder.Encode(size) != nil {
				return
			}
		}
	}
}

func (s *session) receive(ctx context.Context, stream io.Reader, to *gate) {
	s.output.Add(1)
	crash.Go(ctx, func() {
		defer s.output.Done()
		if _, err := io.Copy(to, stream); err != nil {
			s.copyErr <- err
		}
	})
}

// wait ends when the output has ended and the status is there, or when ctx
// does. After it nothing is written to the Command's writers any more.
func (s *session) wait(ctx context.Context) (int, error) {
	defer s.close()
	done := make(chan struct{})
	crash.Go(ctx, func() {
		defer close(done)
		s.output.Wait()
	})
	select {
	case <-ctx.Done():
		return 0, ctx.Err()
	case err := <-s.copyErr:
		return 0, broken(err)
	case <-done:
	}
	var read statusRead
	select {
	case <-ctx.Done():
		return 0, ctx.Err()
	case err := <-s.copyErr:
		return 0, broken(err)
	case read = <-s.status:
	}
	select {
	case err := <-s.copyErr: // it came with the end
		return 0, broken(err)
	default:
	}
	if len(read.text) == 0 {
		return 0, &LostError{Err: read.err}
	}
	return exitCode(read.text)
}

// broken is what an error of copying means for the command.
func broken(err error) error {
	if tooLong(err) {
		return err // another connection would bring no more
	}
	return &LostError{Err: err}
}

// tooLong reports whether err says that an answer was longer than its kind may be.
func tooLong(err error) bool {
	var long *bounded.TooLongError
	return errors.As(err, &long)
}

func (s *session) close() {
	for _, g := range s.gates {
		g.close()
	}
	_ = s.conn.Close()
}

// gate passes writes on until it is closed. Copying goroutines outlive a
// cancelled command; their last bytes must not reach the caller.
type gate struct {
	mu     sync.Mutex
	to     io.Writer
	closed bool
}

func (g *gate) Write(p []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return 0, io.ErrClosedPipe
	}
	return g.to.Write(p)
}

func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
}

// RuntimeError is the container runtime's or the kubelet's word that the
// command could not be run: no such program, no such container.
type RuntimeError struct{ Message string }

// Error is the message of the runtime.
func (e *RuntimeError) Error() string { return e.Message }

// exitCode reads the status that ends a command.
func exitCode(text []byte) (int, error) {
	var status metav1.Status
	if err := json.Unmarshal(text, &status); err != nil {
		return 0, &LostError{Err: fmt.Errorf("the status is cut off: %w", err)}
	}
	if status.Status == metav1.StatusSuccess {
		return 0, nil
	}
	if status.Reason == remotecommand.NonZeroExitCodeReason && status.Details != nil {
		for _, cause := range status.Details.Causes {
			if cause.Type == remotecommand.ExitCodeCauseType {
				if code, err := strconv.ParseUint(cause.Message, 10, 8); err == nil && code > 0 {
					return int(code), nil
				}
			}
		}
	}
	return 0, &RuntimeError{Message: strings.TrimSpace(status.Message)}
}
