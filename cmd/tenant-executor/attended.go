package main

import (
	"errors"
	"io"
	"syscall"
)

// unattended has a stage of the runner go on when nobody reads what it says: the
// runner has ended, and what the stage has begun is still to be brought to an
// end.
func (a *app) unattended() {
	a.survive()
}

// leaveUnattended is unattended for a stage that is of no use without its
// reader. It ends as by the runner's TERM: prepare deletes its Pod, run ends the
// script.
func (a *app) leaveUnattended() {
	a.unattended()
	a.stdout = &attended{to: a.stdout, gone: a.leave}
}

// attended is a writer that tells when its reader is gone, and from then on
// writes to nobody.
type attended struct {
	to   io.Writer
	gone func()
}

func (w *attended) Write(data []byte) (int, error) {
	n, err := w.to.Write(data)
	if errors.Is(err, syscall.EPIPE) {
		w.gone()
		return len(data), nil
	}
	return n, err
}
