package agent

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
)

// Stream is where a script has written output.
type Stream byte

// The streams.
const (
	Stdout Stream = iota
	Stderr
)

// other is the one that a run of the one is followed by.
func (s Stream) other() Stream { return Stderr - s }

// Each piece of a spool that keeps the streams apart has a file of marks: the
// stream of its first byte, then how long each run of one stream was that has
// ended, as numbers of seven bits a byte, the lowest first. The end of a run is
// there before the first byte behind it. Runs are a byte at least, so the marks
// take no more room than the output.
func marksPath(folder string, piece int64) string {
	return filepath.Join(folder, "marks."+strconv.FormatInt(piece, 10))
}

// markWriter writes the marks of one piece.
type markWriter struct {
	file   *os.File
	stream Stream
	began  int64 // the present run, as an offset of the spool
}

// newMarks begins the marks of a piece, the first byte of which is of the
// stream.
func newMarks(folder string, offset int64, stream Stream) (*markWriter, error) {
	file, err := os.OpenFile(marksPath(folder, offset/pieceSize), os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
	if err != nil {
		return nil, err
	}
	if _, err := file.Write([]byte{byte(stream)}); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &markWriter{file: file, stream: stream, began: offset}, nil
}

// turn says of which stream the output is from an offset on.
func (w *markWriter) turn(stream Stream, offset int64) error {
	if stream == w.stream {
		return nil
	}
	if _, err := w.file.Write(appendRun(nil, offset-w.began)); err != nil {
		return err
	}
	w.stream, w.began = stream, offset
	return nil
}

// markReader tells the streams of a spool apart, from some byte on.
type markReader struct {
	folder string

	file   *os.File
	piece  int64
	unread []byte
	stream Stream
	// began is where the present run does, end where it ends; noEnd while the
	// marks do not say, so that all there is belongs to it.
	began, end int64
}

const noEnd = -1

// run says of which stream the output at an offset is, and how many of n bytes
// from there on are. They are of one piece, have been read, and no offset is
// before one asked for earlier.
func (r *markReader) run(offset int64, n int) (Stream, int, error) {
	if err := r.open(offset / pieceSize); err != nil {
		return 0, 0, err
	}
	for {
		if r.end == noEnd {
			if err := r.look(); err != nil {
				return 0, 0, err
			}
		}
		switch {
		case r.end == noEnd || r.end >= offset+int64(n):
			return r.stream, n, nil
		case r.end > offset:
			return r.stream, int(r.end - offset), nil
		}
		r.stream, r.began, r.end = r.stream.other(), r.end, noEnd
	}
}

// open goes to the marks of a piece.
func (r *markReader) open(piece int64) error {
	if r.file != nil && r.piece == piece {
		return nil
	}
	r.close()
	file, err := os.Open(marksPath(r.folder, piece))
	if err != nil {
		return err
	}
	var first [1]byte
	if _, err := io.ReadFull(file, first[:]); err != nil {
		return errors.Join(err, file.Close())
	}
	*r = markReader{folder: r.folder, file: file, piece: piece, stream: Stream(first[0]), began: piece * pieceSize, end: noEnd}
	return nil
}

func (r *markReader) close() {
	if r.file != nil {
		_ = r.file.Close()
		r.file = nil
	}
}

// look reads the end of the present run, if it has one by now.
func (r *markReader) look() error {
	length, size := cutRun(r.unread)
	if size == 0 {
		more := make([]byte, 4096)
		n, err := r.file.Read(more)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		r.unread = append(r.unread, more[:n]...)
		if length, size = cutRun(r.unread); size == 0 {
			return nil
		}
	}
	r.unread = r.unread[size:]
	r.end = r.began + length
	return nil
}

func appendRun(b []byte, length int64) []byte {
	for ; length >= 0x80; length >>= 7 {
		b = append(b, byte(length)|0x80)
	}
	return append(b, byte(length))
}

// cutRun reads a length; size is 0 where b does not hold a whole one.
func cutRun(b []byte) (length int64, size int) {
	for i, c := range b {
		length |= int64(c&0x7f) << (7 * i)
		if c < 0x80 {
			return length, i + 1
		}
	}
	return 0, 0
}
