package agent

import "io"

// scriptReader takes the script off the frames.
type scriptReader struct {
	frames *Reader
	left   int64
	rest   []byte
	place  int64
	// lost is the error of a connection that did not bring the whole script.
	lost error
}

// Read implements io.Reader.
func (s *scriptReader) Read(p []byte) (int, error) {
	for len(s.rest) == 0 {
		if s.left == 0 {
			return 0, io.EOF
		}
		frame, err := s.frames.Next()
		if err != nil {
			s.lost = err
			return 0, err
		}
		if frame.Kind == KindAlive {
			continue
		}
		if frame.Kind != KindScript || int64(frame.Offset) != s.place || int64(len(frame.Payload)) > s.left || len(frame.Payload) == 0 {
			s.lost = ErrCorrupt
			return 0, ErrCorrupt
		}
		s.rest = frame.Payload
		s.place += int64(len(frame.Payload))
		s.left -= int64(len(frame.Payload))
	}
	n := copy(p, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}
