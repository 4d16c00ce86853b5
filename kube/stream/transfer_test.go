package stream_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/socialweb-computer/tenant-executor/kube/faultserver"
)

// noise is n bytes of every value, the same for the same seed.
func noise(seed uint64, n int) []byte {
	source := rand.NewChaCha8([32]byte{byte(seed)})
	b := make([]byte, n)
	_, _ = source.Read(b)
	return b
}

func TestLargeStdinArrivesWhole(t *testing.T) {
	t.Parallel()
	overEach(t, func(t *testing.T, b *bench) {
		const size = 6 << 20
		b.server.OnExec(func(e *faultserver.Exec) {
			sum := sha256.New()
			_, _ = io.Copy(sum, e.Stdin)
			_, _ = e.Stdout.Write(sum.Sum(nil))
		})
		script := noise(1, size)
		o := &outcome{}
		command := b.command(o, "cat")
		command.Stdin = bytes.NewReader(script)
		if code, err := b.runner.Run(t.Context(), command); err != nil || code != 0 {
			t.Fatalf("got %d, %v", code, err)
		}
		if want := sha256.Sum256(script); !bytes.Equal(o.stdout.Bytes(), want[:]) {
			t.Error("what arrived is not what was sent")
		}
		if got := b.server.Execs()[0].Stdin; !bytes.Equal(got, script) {
			t.Errorf("%d of %d bytes arrived", len(got), size)
		}
	})
}

// A command may end without reading what it is sent.
func TestStdinThatNobodyReads(t *testing.T) {
	t.Parallel()
	overEach(t, func(t *testing.T, b *bench) {
		b.server.OnExec(func(e *faultserver.Exec) { e.Exit(3) })
		o := &outcome{}
		command := b.command(o, "true")
		command.Stdin = bytes.NewReader(noise(2, 1<<20))
		if code, err := b.runner.Run(t.Context(), command); err != nil || code != 3 {
			t.Errorf("got %d, %v; want exit code 3", code, err)
		}
	})
}

func TestWithoutStdinNoneIsOpened(t *testing.T) {
	t.Parallel()
	overEach(t, func(t *testing.T, b *bench) {
		b.server.OnExec(func(e *faultserver.Exec) {
			n, err := e.Stdin.Read(make([]byte, 1))
			if n != 0 || !errors.Is(err, io.EOF) {
				e.Exit(1)
			}
		})
		if got := b.run(t.Context(), "cat"); got.err != nil || got.code != 0 {
			t.Errorf("got %d, %v", got.code, got.err)
		}
		if query := b.server.Requests().Of("", "pods/exec")[0].Query; strings.Contains(query, "stdin") {
			t.Errorf("the request asks for stdin: %s", query)
		}
	})
}

// slowWriter takes a little at a time and yields, so that the sender has to
// wait for it all along.
type slowWriter struct{ bytes.Buffer }

func (w *slowWriter) Write(p []byte) (int, error) {
	whole := len(p)
	for len(p) > 0 {
		n := min(len(p), 1000)
		if _, err := w.Buffer.Write(p[:n]); err != nil {
			return 0, err
		}
		p = p[n:]
		for range 20 {
			yield()
		}
	}
	return whole, nil
}

func TestLargeOutputByteForByte(t *testing.T) {
	t.Parallel()
	overEach(t, func(t *testing.T, b *bench) {
		const size = 20 << 20
		output := noise(3, size)
		// Every byte, alone and in a row, and a long line without an end.
		for i := range 256 {
			output[i] = byte(i)
		}
		copy(output[1<<20:], bytes.Repeat([]byte{'x'}, 200<<10))
		b.server.OnExec(func(e *faultserver.Exec) {
			_, _ = io.Copy(e.Stdout, struct{ io.Reader }{bytes.NewReader(output)})
			_, _ = e.Stderr.Write(output[:256])
			e.Exit(42)
		})
		got := b.run(t.Context(), "x")
		if got.err != nil || got.code != 42 {
			t.Fatalf("got %d, %v", got.code, got.err)
		}
		if !bytes.Equal(got.stdout.Bytes(), output) {
			t.Errorf("stdout: %d bytes arrived, not the %d that were sent", got.stdout.Len(), size)
		}
		if !bytes.Equal(got.stderr.Bytes(), output[:256]) {
			t.Errorf("stderr: %q", &got.stderr)
		}
	})
}

// The server ends the connection while the reader is still far behind; what
// was sent before still arrives, and with it the exit code.
func TestSlowReaderGetsAll(t *testing.T) {
	t.Parallel()
	overEach(t, func(t *testing.T, b *bench) {
		output := noise(4, 1<<20)
		b.server.OnExec(func(e *faultserver.Exec) {
			_, _ = e.Stdout.Write(output)
			e.Exit(7)
		})
		slow := &slowWriter{}
		command := b.command(&outcome{}, "x")
		command.Stdout = slow
		code, err := b.runner.Run(t.Context(), command)
		if err != nil || code != 7 {
			t.Fatalf("got %d, %v", code, err)
		}
		if !bytes.Equal(slow.Bytes(), output) {
			t.Errorf("%d of %d bytes arrived", slow.Len(), len(output))
		}
	})
}

// errFull is the error of a writer whose reader has gone.
var errFull = errors.New("no space left")

type fullWriter struct{}

func (fullWriter) Write([]byte) (int, error) { return 0, errFull }

// Output that cannot be written is lost output, not the end of the command.
func TestWriterThatFails(t *testing.T) {
	t.Parallel()
	overEach(t, func(t *testing.T, b *bench) {
		b.server.OnExec(func(e *faultserver.Exec) {
			_, _ = io.WriteString(e.Stdout, "x")
			e.WaitGone()
		})
		command := b.command(&outcome{}, "x")
		command.Stdout = fullWriter{}
		if code, err := b.runner.Run(t.Context(), command); !errors.Is(err, errFull) {
			t.Errorf("got %d, %v; want the writer's error", code, err)
		}
	})
}

// closableWriter tells when something is written after its owner is done.
type closableWriter struct {
	done  atomic.Bool
	late  atomic.Int64
	count atomic.Int64
	until int64
	reach context.CancelFunc
}

func (w *closableWriter) Write(p []byte) (int, error) {
	if w.done.Load() {
		w.late.Add(1)
	}
	if w.count.Add(1) == w.until {
		w.reach()
	}
	return len(p), nil
}

// Wherever a command is cancelled, nothing is written once Run has returned.
func TestCancelledCommandWritesNothingMore(t *testing.T) {
	t.Parallel()
	overEach(t, func(t *testing.T, b *bench) {
		b.server.OnExec(func(e *faultserver.Exec) {
			for {
				select {
				case <-e.Gone():
					e.WaitGone()
					return
				default:
				}
				_, errOut := io.WriteString(e.Stdout, "out\n")
				_, errErr := io.WriteString(e.Stderr, "err\n")
				if errOut != nil || errErr != nil {
					e.WaitGone()
					return
				}
			}
		})
		for range 40 {
			ctx, cancel := context.WithCancel(t.Context())
			w := &closableWriter{until: 1 + rand.Int64N(200), reach: cancel}
			command := b.command(&outcome{}, "yes")
			command.Stdout, command.Stderr = w, w
			_, err := b.runner.Run(ctx, command)
			w.done.Store(true)
			cancel()
			if !errors.Is(err, context.Canceled) {
				t.Errorf("cancelled at write %d: %v", w.until, err)
			}
			b.server.Wait(t, "the command has seen its client go", func() bool { return b.server.Running() == 0 })
			if n := w.late.Load(); n != 0 {
				t.Errorf("cancelled at write %d: %d writes came after Run had returned", w.until, n)
			}
		}
	})
}

// Before there is a connection, while it is upgraded, while streams open:
// a cancelled command gives the context's error and nothing else.
func TestCancelledAtAnyMoment(t *testing.T) {
	t.Parallel()
	overEach(t, func(t *testing.T, b *bench) {
		b.server.OnExec(func(e *faultserver.Exec) { e.WaitGone() })
		for i := range 60 {
			ctx, cancel := context.WithCancel(t.Context())
			stop := make(chan struct{})
			go func() {
				defer close(stop)
				for range i * 40 {
					yield()
				}
				cancel()
			}()
			if got := b.run(ctx, "x"); !errors.Is(got.err, context.Canceled) {
				t.Errorf("got %d, %v", got.code, got.err)
			}
			<-stop
		}
	})
}

// One buffer may take both streams. (The race detector is the judge.)
func TestStdoutAndStderrInOneWriter(t *testing.T) {
	t.Parallel()
	overEach(t, func(t *testing.T, b *bench) {
		const lines = 500
		b.server.OnExec(func(e *faultserver.Exec) {
			done := make(chan struct{})
			go func() {
				defer close(done)
				for range lines {
					_, _ = io.WriteString(e.Stderr, "err\n")
				}
			}()
			for range lines {
				_, _ = io.WriteString(e.Stdout, "out\n")
			}
			<-done
		})
		o := &outcome{}
		command := b.command(o, "x")
		command.Stderr = command.Stdout
		if code, err := b.runner.Run(t.Context(), command); err != nil || code != 0 {
			t.Fatalf("got %d, %v", code, err)
		}
		text := o.stdout.String()
		if strings.Count(text, "out\n") != lines || strings.Count(text, "err\n") != lines || len(text) != 8*lines {
			t.Errorf("%d bytes arrived, %d expected", len(text), 8*lines)
		}
	})
}
