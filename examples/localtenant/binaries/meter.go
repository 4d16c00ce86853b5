package binaries

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// meter shows how far a build is: once a second on a terminal, in place, and a
// line a minute elsewhere. It reads what `go build -v` says.
type meter struct {
	out      io.Writer
	terminal bool
	total    int
	now      func() time.Time
	began    time.Time

	mu     sync.Mutex
	rest   []byte
	count  int
	faults []string
}

func newMeter(out io.Writer, terminal bool, total int, now func() time.Time) *meter {
	return &meter{out: out, terminal: terminal, total: total, now: now, began: now()}
}

// Write takes the output of the compiler: a package a line, or a complaint.
func (m *meter) Write(text []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.rest = append(m.rest, text...)
	for {
		end := bytes.IndexByte(m.rest, '\n')
		if end < 0 {
			return len(text), nil
		}
		line := string(m.rest[:end])
		m.rest = m.rest[end+1:]
		if looksLikePackage(line) {
			m.count++
		} else {
			m.faults = append(m.faults, line)
		}
	}
}

// complaints gives what the compiler said besides packages.
func (m *meter) complaints() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return strings.Join(append(m.faults, string(m.rest)), "\n")
}

// line is the progress in words.
func (m *meter) line() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	took := m.now().Sub(m.began).Round(time.Second)
	if m.total == 0 {
		return fmt.Sprintf("%s: %d packages compiled", took, m.count)
	}
	return fmt.Sprintf("%s: %d of at most %d packages compiled", took, m.count, m.total)
}

// run shows the progress until the function that it gives is called.
func (m *meter) run() (stop func()) {
	period := time.Minute
	if m.terminal {
		period = time.Second
	}
	done := make(chan struct{})
	var shown sync.WaitGroup
	shown.Go(func() {
		tick := time.NewTicker(period)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				m.show()
			}
		}
	})
	return func() {
		close(done)
		shown.Wait()
		if m.terminal {
			// Back to the start of the line, which is cleared.
			fmt.Fprint(m.out, "\r\x1b[K")
		}
	}
}

func (m *meter) show() {
	if m.terminal {
		fmt.Fprintf(m.out, "\r\x1b[K%s", m.line())
		return
	}
	fmt.Fprintln(m.out, m.line())
}
