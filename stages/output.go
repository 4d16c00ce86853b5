package stages

import (
	"bytes"
	"io"
	"strings"
	"sync"
)

// cutoff passes a script's output on until it is cut.
type cutoff struct {
	mu   sync.Mutex
	to   io.Writer
	done bool
}

// Write never fails once the output is cut: the script's processes are being
// ended, and a broken pipe would only add to it.
func (c *cutoff) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.done {
		return len(p), nil
	}
	return c.to.Write(p)
}

func (c *cutoff) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.done = true
}

// marker takes the first line of a stage's stderr, which says that the script
// has begun, and passes on what follows. Without the line all of it is what
// went wrong.
type marker struct {
	mu    sync.Mutex
	line  string
	to    io.Writer
	head  bytes.Buffer
	begun bool
}

// longestHead bounds what is kept of a stage that does not begin, in bytes.
const longestHead = 4096

// Write implements io.Writer.
func (m *marker) Write(p []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.begun {
		return m.to.Write(p)
	}
	m.head.Write(p)
	if _, rest, found := strings.Cut(m.head.String(), m.line); found {
		m.begun = true
		m.head.Reset()
		if _, err := io.WriteString(m.to, rest); err != nil {
			return 0, err
		}
	} else if m.head.Len() > longestHead {
		m.head.Next(m.head.Len() - longestHead)
	}
	return len(p), nil
}

func (m *marker) seen() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.begun
}

// text is what was written in place of the line.
func (m *marker) text() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return strings.TrimSpace(m.head.String())
}

func (m *marker) reset() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.head.Reset()
	m.begun = false
}
