// Package bounded keeps what others do within bounds of size and of time.
//
// Whoever runs in a Pod, or owns its node, decides what a command there answers
// and how much of it; the memory here is the runner host's. Calls of libraries
// and programs of the host need not heed a context by themselves.
package bounded

import (
	"fmt"
	"io"
)

// Short is the most that is kept of an answer that should be a few lines, in
// bytes.
const Short = 64 << 10

// TooLongError says that an answer is longer than one of its kind can be.
type TooLongError struct {
	// Most is how long it may be, in bytes.
	Most int
}

// Error says so.
func (e *TooLongError) Error() string {
	return fmt.Sprintf("the answer is longer than the %d KiB that it may have", e.Most>>10)
}

// Buffer keeps an answer. A Write beyond its limit is a *TooLongError, which
// ends the command that answers: nothing is gained by reading on. What came
// before is kept. The zero value keeps Short.
type Buffer struct {
	// Most is the limit in bytes, 0 for Short.
	Most int
	kept []byte
}

func (b *Buffer) most() int {
	if b.Most == 0 {
		return Short
	}
	return b.Most
}

// Write keeps p, or as much of it as there is room for.
func (b *Buffer) Write(p []byte) (int, error) {
	n := min(len(p), b.most()-len(b.kept))
	b.kept = append(b.kept, p[:n]...)
	if n < len(p) {
		return n, &TooLongError{Most: b.most()}
	}
	return n, nil
}

// String is what was kept.
func (b *Buffer) String() string { return string(b.kept) }

// Reset forgets it.
func (b *Buffer) Reset() { b.kept = b.kept[:0] }

// ReadAll reads to the end of r, most bytes at the most. With a *TooLongError it
// gives the beginning of what was read.
func ReadAll(r io.Reader, most int) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(r, int64(most)+1))
	if len(text) > most {
		return text[:most], &TooLongError{Most: most}
	}
	return text, err
}
