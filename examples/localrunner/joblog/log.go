// Package joblog writes a job's log the way GitLab receives it from a runner:
// sections, the runner's own coloured lines, the output of the stages, and no
// secrets. Plain turns such a log into text for a terminal.
package joblog

import (
	"bytes"
	"fmt"
	"io"
	"sync"
	"time"
)

// Colours as GitLab Runner uses them (helpers/ansi_colors.go).
const (
	clearTo  = "\x1b[0K"
	reset    = "\x1b[0;m"
	boldCyan = "\x1b[36;1m"
	green    = "\x1b[32;1m"
	red      = "\x1b[31;1m"
	yellow   = "\x1b[0;33m"
	limitCol = "\x1b[33;1m"
)

// DefaultLimit is the largest log, in bytes, when nothing else is set.
const DefaultLimit = 4 << 20

// Options of a log.
type Options struct {
	// Phrases are the values to mask.
	Phrases []string
	// TokenPrefixes begin tokens to mask; see DefaultTokenPrefixes.
	TokenPrefixes []string
	// Limit is the number of bytes after which the log is cut off; 0 means
	// DefaultLimit.
	Limit int64
	// Timestamps puts the time and the stream before each line.
	Timestamps bool
	// Now is the clock.
	Now func() time.Time
}

// Log may be used by several goroutines at once.
type Log struct {
	opts Options

	mu      sync.Mutex
	to      io.Writer
	written int64
	cut     bool
	err     error
}

// New begins a log.
func New(to io.Writer, opts Options) *Log {
	if opts.Limit <= 0 {
		opts.Limit = DefaultLimit
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	return &Log{to: to, opts: opts}
}

// Err returns the first error in writing the log.
func (l *Log) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// write is the one way out. It never fails for the writer: a stage must not
// be disturbed by its log. See Err.
func (l *Log) write(p []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cut || l.err != nil || len(p) == 0 {
		return
	}
	room := l.opts.Limit - l.written
	if int64(len(p)) > room {
		l.cut = true
		p = fmt.Appendf(bytes.Clone(p[:room]),
			"\n%sJob's log exceeded limit of %d bytes.\nJob execution will continue but no more output will be collected.%s\n",
			limitCol, l.opts.Limit, reset)
	}
	l.written += int64(len(p))
	_, l.err = l.to.Write(p)
}

// Section runs f between the marks of a section and under its title.
func (l *Log) Section(name, title string, f func() error) error {
	l.mark("start", name)
	defer l.mark("end", name)
	l.Println(boldCyan + title + reset)
	return f()
}

func (l *Log) mark(what, name string) {
	l.write(fmt.Appendf(nil, "section_%s:%d:%s\r%s", what, l.opts.Now().Unix(), name, clearTo))
}

// Println writes a line of the runner's.
func (l *Log) Println(text string) { l.line(clearTo, text) }

// Info writes a green line.
func (l *Log) Info(text string) { l.line(green, text) }

// Warn writes a yellow line with "WARNING: ".
func (l *Log) Warn(text string) { l.line(yellow+"WARNING: ", text) }

// Error writes a red line with "ERROR: ".
func (l *Log) Error(text string) { l.line(red+"ERROR: ", text) }

func (l *Log) line(prefix, text string) {
	s := l.Stream(0, Stdout)
	_, _ = s.Write([]byte(prefix + text + reset + "\n")) // a stream never fails
	_ = s.Close()
}

// Kind is the kind of a stream, as it is written before a line.
type Kind byte

// The two kinds of streams.
const (
	Stdout Kind = 'O'
	Stderr Kind = 'E'
)

// Stream opens a stream of output. The number tells the runner's own output
// and that of config and prepare (0) from that of the stages (1). The last
// bytes are written when the stream is closed.
func (l *Log) Stream(number int, kind Kind) io.WriteCloser {
	var to io.Writer = writerFunc(l.write)
	s := &stream{}
	if l.opts.Timestamps {
		lines := &lineWriter{log: l, label: fmt.Sprintf("%02d%c", number, kind)}
		to, s.flush = lines, lines.flush
	}
	s.mask = newMask(to, l.opts.Phrases, l.opts.TokenPrefixes)
	return s
}

type writerFunc func(p []byte)

func (f writerFunc) Write(p []byte) (int, error) {
	f(p)
	return len(p), nil
}

type stream struct {
	mask  *mask
	flush func()
}

func (s *stream) Write(p []byte) (int, error) { return s.mask.Write(p) }

func (s *stream) Close() error {
	err := s.mask.Close()
	if s.flush != nil {
		s.flush()
	}
	return err
}

// lineWriter passes on whole lines with the time before them.
type lineWriter struct {
	log   *Log
	label string
	rest  []byte
}

func (w *lineWriter) Write(p []byte) (int, error) {
	w.rest = append(w.rest, p...)
	for {
		i := bytes.IndexByte(w.rest, '\n')
		if i < 0 {
			return len(p), nil
		}
		w.emit(w.rest[:i+1])
		w.rest = w.rest[i+1:]
	}
}

func (w *lineWriter) emit(line []byte) {
	stamp := w.log.opts.Now().UTC().Format("2006-01-02T15:04:05.000000Z")
	w.log.write(fmt.Appendf(nil, "%s %s %s", stamp, w.label, line))
}

func (w *lineWriter) flush() {
	if len(w.rest) > 0 {
		w.emit(append(w.rest, '\n'))
		w.rest = nil
	}
}
