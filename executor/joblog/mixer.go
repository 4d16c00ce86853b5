package joblog

import (
	"bytes"
	"io"
	"sync"
)

// grey is the colour in which the runner shows what services say
// (helpers/service/logger.go).
const grey = "\033[0;37m"

// ServiceLine is a line that a service has written, as the runner shows it.
func ServiceLine(service, text string) string {
	return grey + "[service:" + service + "] " + text + reset + "\n"
}

// mostHeld is how much waits for the end of a script's line, in bytes. A
// script that shows its progress in one long line may never end it.
const mostHeld = 256 << 10

// Mixer lets whole lines of others into the output of a script, between its own
// lines and never within one.
type Mixer struct {
	mu  sync.Mutex
	out io.Writer
	// within is whether the script has begun a line that has no end yet.
	within bool
	held   []byte
}

// NewMixer is a Mixer that writes to out.
func NewMixer(out io.Writer) *Mixer { return &Mixer{out: out} }

// Write takes the script's output, byte for byte.
func (m *Mixer) Write(p []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	written := 0
	if i := bytes.IndexByte(p, '\n'); i >= 0 && len(m.held) > 0 {
		n, err := m.out.Write(p[:i+1])
		if written = n; err != nil {
			return written, err
		}
		if err := m.release(); err != nil {
			return written, err
		}
	}
	if written == len(p) {
		m.within = m.within && len(p) == 0
		return written, nil
	}
	m.within = p[len(p)-1] != '\n'
	n, err := m.out.Write(p[written:])
	return written + n, err
}

// Line lets in a line, which ends with a line break: at once, or where the
// script's present line ends.
func (m *Mixer) Line(text string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.held = append(m.held, text...)
	if m.within && len(m.held) < mostHeld {
		return nil
	}
	return m.force()
}

// Flush lets in what still waits, although the script's line has no end.
func (m *Mixer) Flush() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.force()
}

func (m *Mixer) force() error {
	if m.within && len(m.held) > 0 {
		m.within = false
		if _, err := io.WriteString(m.out, "\n"); err != nil {
			return err
		}
	}
	return m.release()
}

func (m *Mixer) release() error {
	if len(m.held) == 0 {
		return nil
	}
	_, err := m.out.Write(m.held)
	m.held = m.held[:0]
	return err
}
