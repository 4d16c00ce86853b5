// Package joblog is the driver's voice in the job log: short lines in the
// runner's own style, which the author of the job reads.
package joblog

import (
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

// Log writes lines for the reader of the job log.
type Log struct{ out io.Writer }

// New is a Log that writes to out. A line goes out in one Write, so that lines
// of several goroutines do not mix.
func New(out io.Writer) Log { return Log{out: out} }

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
	l.line(red, "ERROR: "+f.Error())
	if remedy := f.Remedy(); remedy != "" {
		l.line("", remedy)
	}
}

// Service shows a line that a service has written.
func (l Log) Service(service, text string) {
	_, _ = io.WriteString(l.out, ServiceLine(service, text)) // as in line
}

// Lines lets whole lines of others in between those of the Log.
func (l Log) Lines() *Mixer { return NewMixer(l.out) }

func (l Log) line(colour, text string) {
	text = strings.TrimRight(text, "\n")
	if colour != "" {
		text = colour + text + reset
	}
	// A job log that cannot be written has no reader: nothing is left to tell.
	_, _ = io.WriteString(l.out, text+"\n")
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
