package joblog

import (
	"io"
	"sync"
)

// Output is a job log that takes what a script prints, byte for byte, and the
// lines of a Log. It knows whether the script has ended its last line, so that a
// line of ours always begins one.
type Output struct {
	mu sync.Mutex
	to io.Writer
	// within is whether the last line has no end yet.
	within bool
}

// NewOutput is an Output that writes to a job log, which is at the beginning of a
// line.
func NewOutput(to io.Writer) *Output { return &Output{to: to} }

// Write implements io.Writer.
func (o *Output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n, err := o.to.Write(p)
	if n > 0 && n <= len(p) {
		o.within = p[n-1] != '\n'
	}
	return n, err
}

// line writes whole lines of ours in one Write, so that those of several
// goroutines do not mix.
func (o *Output) line(text string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.within {
		text = "\n" + text
	}
	o.within = false
	// A job log that cannot be written has no reader: nothing is left to tell.
	_, _ = io.WriteString(o.to, text)
}
