// Package joblog is the driver's voice in the job log: short lines in the
// runner's own style, which the author of the job reads.
package joblog

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/socialweb-computer/tenant-executor/executor/failure"
)

// The colours that the runner gives its own lines (helpers/ansi_colors.go).
const (
	yellow = "\033[0;33m"
	red    = "\033[31;1m"
	reset  = "\033[0;m"
)

// Log writes lines for the reader of the job log. They may hold what others wrote,
// and are made harmless here, at the one place that all of them pass.
type Log struct{ out *Output }

// New is a Log that writes to out; an Output is shared with what else is written
// to it.
func New(out io.Writer) Log {
	if shared, is := out.(*Output); is {
		return Log{out: shared}
	}
	return Log{out: NewOutput(out)}
}

// Info says what happens.
func (l Log) Info(format string, args ...any) {
	l.line("", fmt.Sprintf(format, args...))
}

// Warn says what is wrong without ending the stage.
func (l Log) Warn(format string, args ...any) {
	l.line(yellow, "WARNING: "+fmt.Sprintf(format, args...))
}

// Fail says why the stage ends: the cause, and below it what can be done.
func (l Log) Fail(f *failure.Failure) {
	own := lines(f)
	own[0] = "ERROR: " + own[0]
	l.line(red, own...)
	if remedy := f.Remedy(); remedy != "" {
		l.line("", remedy)
	}
}

// Service shows a line that a service has written.
func (l Log) Service(service, text string) {
	l.out.line(ServiceLine(Harmless(service), printable(text)))
}

// Lines lets whole lines of others in between those of the Log.
func (l Log) Lines() *Mixer { return NewMixer(l.out) }

// lines are those of a failure: errors that errors.Join has joined have one each.
// Every other line break in it is somebody else's.
func lines(err error) []string {
	for inner := err; inner != nil; inner = errors.Unwrap(inner) {
		joined, is := inner.(interface{ Unwrap() []error })
		if !is {
			continue
		}
		before, last := strings.CutSuffix(err.Error(), inner.Error())
		parts := joined.Unwrap()
		if !last || errors.Join(parts...).Error() != inner.Error() {
			break
		}
		var all []string
		for _, part := range parts {
			all = append(all, lines(part)...)
		}
		all[0] = before + all[0]
		return all
	}
	return []string{err.Error()}
}

// line writes one line, or several that belong together.
func (l Log) line(colour string, text ...string) {
	for i := range text {
		text[i] = Harmless(text[i])
	}
	whole := strings.Join(text, "\n")
	if colour != "" {
		whole = colour + whole + reset
	}
	l.out.line(whole + "\n")
}

// Count is a number of things as people say it: 1 node, 2 nodes.
func Count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// Duration is a duration as people say it: in seconds, from a minute on in
// minutes and seconds.
func Duration(d time.Duration) string {
	d = d.Round(time.Second)
	if d < time.Minute {
		return fmt.Sprintf("%d s", int(d.Seconds()))
	}
	if s := int(d.Seconds()) % 60; s != 0 {
		return fmt.Sprintf("%d min %d s", int(d.Minutes()), s)
	}
	return fmt.Sprintf("%d min", int(d.Minutes()))
}

// Short is a duration in as few letters as can be, in whole seconds.
func Short(d time.Duration) string { return d.Round(time.Second).String() }
