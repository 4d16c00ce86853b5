package main

import (
	"fmt"
	"io"
)

// console writes the lines a job log shows, in the colours GitLab's log viewer
// knows from the real program.
type console struct {
	out io.Writer
}

const (
	yellow = "\x1b[0;33m"
	red    = "\x1b[31;1m"
	reset  = "\x1b[0;m"
)

func (c console) info(format string, args ...any) { c.line("", "", format, args) }

func (c console) warn(format string, args ...any) { c.line(yellow, "WARNING: ", format, args) }

func (c console) error(format string, args ...any) { c.line(red, "ERROR: ", format, args) }

func (c console) fatal(err error) { c.line(red, "FATAL: ", "%v", []any{err}) }

func (c console) line(colour, prefix, format string, args []any) {
	end := reset
	if colour == "" {
		end = ""
	}
	// Nobody is left to tell when the job log itself cannot be written.
	_, _ = fmt.Fprintf(c.out, "%s%s%s%s\n", colour, prefix, fmt.Sprintf(format, args...), end)
}
