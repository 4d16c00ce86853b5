package stream

import (
	"context"
	"io"

	"github.com/socialweb-computer/tenant-executor/kube/crash"
)

// printer writes output, a piece at a time, beside whoever hands it over: a
// reader of the output may take his time, and the connection to the stage must
// not stand still with him. It is for one goroutine at a time.
type printer struct {
	// done gets the end of the present piece; nil while there is none.
	done   chan error
	buffer []byte
	failed error
}

// hand takes a copy of a piece that goes to out, once the piece before it is
// written. Its error is that of an earlier piece, or that of ctx; then this one
// is not taken.
func (p *printer) hand(ctx context.Context, out io.Writer, piece []byte) error {
	if err := p.flush(ctx); err != nil {
		return err
	}
	p.buffer = append(p.buffer[:0], piece...)
	done := make(chan error, 1)
	p.done = done
	crash.Go(ctx, func() {
		if _, err := out.Write(p.buffer); err != nil {
			done <- &outputError{err}
		}
		close(done)
	})
	return nil
}

// flush waits until everything that was handed over is written.
func (p *printer) flush(ctx context.Context) error {
	if p.done == nil {
		return p.failed
	}
	select {
	case p.failed = <-p.done:
		p.done = nil
		return p.failed
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// idle says whether everything is written, without waiting.
func (p *printer) idle() bool {
	select {
	case p.failed = <-p.done:
		p.done = nil
	default:
	}
	return p.done == nil
}
