package main

import (
	"io"
)

// keyboard passes on what a person types. "~." at the beginning of a line hangs
// up, for a connection that does not answer any more; "~~" is one "~".
type keyboard struct {
	from   io.Reader
	hangUp func()

	// within is whether the line has begun, tilde whether a "~" at its
	// beginning is held back.
	within, tilde bool
	rest          []byte
}

// Read implements io.Reader.
func (k *keyboard) Read(p []byte) (int, error) {
	for len(k.rest) == 0 {
		typed := make([]byte, len(p))
		n, err := k.from.Read(typed)
		for _, b := range typed[:n] {
			if !k.take(b) {
				k.hangUp()
				return 0, io.EOF
			}
		}
		if err != nil && len(k.rest) == 0 {
			return 0, err
		}
	}
	n := copy(p, k.rest)
	k.rest = k.rest[n:]
	return n, nil
}

// take takes one byte; it says whether to go on.
func (k *keyboard) take(b byte) bool {
	switch {
	case k.tilde && b == '.':
		return false
	case k.tilde && b != '~':
		k.rest = append(k.rest, '~')
	case !k.tilde && !k.within && b == '~':
		k.tilde = true
		return true
	}
	k.tilde, k.within = false, b != '\r' && b != '\n'
	k.rest = append(k.rest, b)
	return true
}
