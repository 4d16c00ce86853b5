package joblog

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"sync"
	"time"
)

// Plain turns a job's log into text for people: each section becomes a
// heading and a closing line with its duration. Whole lines are written at a
// time, so several jobs can share one terminal.
type Plain struct {
	// To is where the text goes. Jobs that share it must share Lock too.
	To   io.Writer
	Lock *sync.Mutex
	// Prefix is put before each line, to tell jobs apart.
	Prefix string
	// Colour keeps the log's colours.
	Colour bool
	// Now is the clock for durations.
	Now func() time.Time

	rest    []byte
	started map[string]time.Time
	mark    *regexp.Regexp
	colours *regexp.Regexp
}

// Write takes a part of a log. An incomplete line is kept for the next call,
// and for Close.
func (p *Plain) Write(data []byte) (int, error) {
	if p.started == nil {
		p.started = map[string]time.Time{}
		p.mark = regexp.MustCompile("section_(start|end):[0-9]+:([A-Za-z0-9_.-]+)(?:\\[[^\\]]*\\])?\r\x1b\\[0K")
		p.colours = regexp.MustCompile("\x1b\\[[0-9;]*[A-Za-z]")
	}
	p.rest = append(p.rest, data...)
	for {
		i := bytes.IndexByte(p.rest, '\n')
		if i < 0 {
			return len(data), nil
		}
		if err := p.line(p.rest[:i]); err != nil {
			return 0, err
		}
		p.rest = p.rest[i+1:]
	}
}

// Close writes an incomplete last line.
func (p *Plain) Close() error {
	if len(p.rest) == 0 {
		return nil
	}
	err := p.line(p.rest)
	p.rest = nil
	return err
}

// line writes a line and, for the marks in it, headings before and closing
// lines in their places.
func (p *Plain) line(line []byte) error {
	for {
		m := p.mark.FindSubmatchIndex(line)
		if m == nil {
			break
		}
		if m[0] > 0 {
			if err := p.emit(line[:m[0]]); err != nil {
				return err
			}
		}
		if err := p.section(string(line[m[2]:m[3]]), string(line[m[4]:m[5]])); err != nil {
			return err
		}
		if line = line[m[1]:]; len(line) == 0 {
			return nil
		}
	}
	return p.emit(line)
}

func (p *Plain) section(what, name string) error {
	if what == "start" {
		p.started[name] = p.Now()
		return p.emit([]byte("── " + name))
	}
	took := p.Now().Sub(p.started[name]).Round(10 * time.Millisecond)
	return p.emit(fmt.Appendf(nil, "── %s took %s", name, took))
}

func (p *Plain) emit(line []byte) error {
	line = bytes.TrimRight(line, "\r")
	if !p.Colour {
		line = p.colours.ReplaceAll(line, nil)
	}
	p.Lock.Lock()
	defer p.Lock.Unlock()
	_, err := fmt.Fprintf(p.To, "%s%s\n", p.Prefix, line)
	return err
}

// Lines calls F with each line of what is written to it, without the newline.
// The last line is reported by Close when it is not ended.
type Lines struct {
	F    func(line string)
	rest []byte
}

// Write never fails.
func (l *Lines) Write(p []byte) (int, error) {
	l.rest = append(l.rest, p...)
	for {
		i := bytes.IndexByte(l.rest, '\n')
		if i < 0 {
			return len(p), nil
		}
		l.F(string(l.rest[:i]))
		l.rest = l.rest[i+1:]
	}
}

// Close never fails.
func (l *Lines) Close() error {
	if len(l.rest) > 0 {
		l.F(string(l.rest))
		l.rest = nil
	}
	return nil
}
