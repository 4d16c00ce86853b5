package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/socialweb-computer/tenant-executor/examples/localrunner/joblog"
)

// screen is where people look: the jobs' logs on stdout, our own words on
// stderr.
type screen struct {
	mu     sync.Mutex
	stdout io.Writer
	stderr io.Writer
	plain  bool
	colour bool
	prefix bool
}

func newScreen(s surroundings, sections string, parallel int) (*screen, error) {
	sc := &screen{stdout: s.stdout, stderr: s.stderr, prefix: parallel > 1}
	switch sections {
	case "raw":
	case "plain":
		sc.plain = true
	case "auto":
		sc.plain = s.terminal || parallel > 1
	default:
		return nil, fmt.Errorf("--sections %q: want raw, plain or auto", sections)
	}
	sc.colour = s.terminal && !slices.ContainsFunc(s.environ, func(e string) bool {
		return len(e) > len("NO_COLOR=") && e[:len("NO_COLOR=")] == "NO_COLOR="
	})
	return sc, nil
}

// log returns the place for the log of a job.
func (s *screen) log(job string) io.WriteCloser {
	if !s.plain {
		return nopCloser{lockedOut{s}}
	}
	p := &joblog.Plain{To: s.stdout, Lock: &s.mu, Colour: s.colour, Now: time.Now}
	if s.prefix {
		p.Prefix = job + " | "
	}
	return p
}

// say prints a line of our own.
func (s *screen) say(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, _ = fmt.Fprintln(s.stderr, line) // there is no other place to report to
}

// lockedWriter writes to stderr, lockedOut to stdout, both not in the middle
// of others' lines.
type lockedWriter struct{ s *screen }

func (w lockedWriter) Write(p []byte) (int, error) {
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	return w.s.stderr.Write(p)
}

type lockedOut struct{ s *screen }

func (w lockedOut) Write(p []byte) (int, error) {
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	return w.s.stdout.Write(p)
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

// logFile opens the file for a job's log, or nothing when no folder is given.
func logFile(path string) (io.WriteCloser, error) {
	if path == "" {
		return nopCloser{io.Discard}, nil
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("--log-dir: %w", err)
	}
	return f, nil
}
