package main_test

import (
	"context"
	"encoding/binary"
	"errors"
	"io"

	"github.com/socialweb-computer/tenant-executor/kube/faultserver"
	"github.com/socialweb-computer/tenant-executor/kube/stream/agent"
)

// errCut is the end of a line that breaks.
var errCut = errors.New("the line is cut")

// cutOut breaks the connection after n bytes from the agent.
func (l *line) cutOut(n int, way faultserver.Break) {
	l.out = &cutter{to: l.out, left: n, cut: func() { l.breaks(way) }}
}

type cutter struct {
	to   io.Writer
	left int
	cut  func()
}

func (c *cutter) Write(p []byte) (int, error) {
	if len(p) < c.left {
		c.left -= len(p)
		return c.to.Write(p)
	}
	n, err := c.to.Write(p[:c.left])
	c.left -= n
	if err == nil {
		c.cut()
		err = errCut
	}
	return n, err
}

// cutIn breaks the connection after n bytes from the driver.
func (l *line) cutIn(n int64, way faultserver.Break) {
	in := io.LimitReader(l.in, n)
	l.in = readerFunc(func(p []byte) (int, error) {
		got, err := in.Read(p)
		if errors.Is(err, io.EOF) {
			l.breaks(way)
			err = errCut
		}
		return got, err
	})
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// alter changes the byte stream from the agent: change gets the place of each
// byte and gives what becomes of it.
func (l *line) alter(change func(at int, b byte) []byte) {
	to, at := l.out, 0
	l.out = writerFunc(func(p []byte) (int, error) {
		var changed []byte
		for _, b := range p {
			changed = append(changed, change(at, b)...)
			at++
		}
		_, err := to.Write(changed)
		return len(p), err
	})
}

// twice passes each chunk from the program on twice.
func (l *line) twice() {
	to := l.out
	l.out = writerFunc(func(p []byte) (int, error) {
		if _, err := to.Write(p); err != nil {
			return 0, err
		}
		return to.Write(p)
	})
}

// withoutTheThird drops the third chunk from the program.
func (l *line) withoutTheThird() {
	to, count := l.out, 0
	l.out = writerFunc(func(p []byte) (int, error) {
		if count++; count == 3 {
			return len(p), nil
		}
		return to.Write(p)
	})
}

// trickle passes each byte from the agent on alone.
func (l *line) trickle() {
	to := l.out
	l.out = writerFunc(func(p []byte) (int, error) {
		for i := range p {
			if _, err := to.Write(p[i : i+1]); err != nil {
				return i, err
			}
		}
		return len(p), nil
	})
}

// swallow takes everything from both sides and passes nothing on, after n
// bytes from the agent: the connection is open and dead.
func (l *line) swallow(n int) {
	to, in, left := l.out, l.in, n
	dead := make(chan struct{})
	l.out = writerFunc(func(p []byte) (int, error) {
		part := p[:min(left, len(p))]
		left -= len(part)
		if left == 0 && len(part) > 0 {
			close(dead)
		}
		if _, err := to.Write(part); err != nil {
			return 0, err
		}
		return len(p), nil
	})
	l.in = readerFunc(func(p []byte) (int, error) {
		for {
			got, err := in.Read(p)
			select {
			case <-dead:
				if err == nil {
					continue
				}
			default:
			}
			return got, err
		}
	})
}

// stall passes n bytes from the program on and then none until ctx ends.
func (l *line) stall(ctx context.Context, n int) {
	to, left := l.out, n
	l.out = writerFunc(func(p []byte) (int, error) {
		if len(p) < left {
			left -= len(p)
			return to.Write(p)
		}
		n, err := to.Write(p[:left])
		if err == nil {
			<-ctx.Done()
			err = ctx.Err()
		}
		return n, err
	})
}

// frameHeader is the length of a frame without its payload, in bytes; the
// payload's length stands after the first byte.
const frameHeader = 17

// splitter calls each for each whole frame that is written to it.
type splitter struct {
	buffer []byte
	each   func(kind agent.Kind, frame []byte) error
}

func (s *splitter) Write(p []byte) (int, error) {
	s.buffer = append(s.buffer, p...)
	for len(s.buffer) >= frameHeader {
		size := frameHeader + int(binary.BigEndian.Uint32(s.buffer[1:]))
		if len(s.buffer) < size {
			break
		}
		if err := s.each(agent.Kind(s.buffer[0]), s.buffer[:size]); err != nil {
			return 0, err
		}
		s.buffer = s.buffer[size:]
	}
	return len(p), nil
}

// framesOut calls each for each frame from the agent, in place of passing it
// on.
func (l *line) framesOut(each func(kind agent.Kind, frame []byte, to io.Writer) error) {
	to := l.out
	l.out = &splitter{each: func(kind agent.Kind, frame []byte) error { return each(kind, frame, to) }}
}

// framesIn is framesOut for the frames from the driver.
func (l *line) framesIn(each func(kind agent.Kind, frame []byte, to io.Writer) error) {
	from := l.in
	r, w := io.Pipe()
	l.in = r
	go func() {
		_, err := io.Copy(&splitter{each: func(kind agent.Kind, frame []byte) error { return each(kind, frame, w) }}, struct{ io.Reader }{from})
		_ = w.CloseWithError(err)
	}()
}
