package agent

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// The spool of a stage is its output, byte for byte, in files of pieceSize
// bytes each. Output that the driver has printed is freed a file at a time,
// which works on every file system.
const pieceSize = 4 << 20

// Mode of the files and folders of a stage: they hold what the job prints.
const (
	fileMode   = 0o600
	folderMode = 0o700
)

func piecePath(folder string, offset int64) string {
	return filepath.Join(folder, "out."+strconv.FormatInt(offset/pieceSize, 10))
}

// spoolWriter appends to a spool.
type spoolWriter struct {
	folder string
	limit  int64
	offset int64
	acked  int64 // as last read; the file may say more by now
	freed  int64 // everything below is deleted
	piece  *os.File
	// apart has the streams marked, in the present piece by marks.
	apart bool
	marks *markWriter
	// pause is called while the spool is full; it says whether to go on
	// waiting.
	pause func() bool
}

// errAbandoned is the error of a write that waited for the driver in vain.
var errAbandoned = errors.New("the wait for the driver was given up")

// put writes output of a stream. It waits while the spool is full.
func (w *spoolWriter) put(stream Stream, p []byte) (int, error) {
	written := 0
	for written < len(p) {
		if err := w.makeRoom(); err != nil {
			return written, err
		}
		room := pieceSize - w.offset%pieceSize
		part := p[written:min(int64(len(p)), int64(written)+room)]
		if w.piece == nil {
			if err := w.next(stream); err != nil {
				return written, err
			}
		}
		if w.marks != nil {
			if err := w.marks.turn(stream, w.offset); err != nil {
				return written, err
			}
		}
		n, err := w.piece.Write(part)
		written += n
		w.offset += int64(n)
		if err != nil {
			return written, err
		}
		if w.offset%pieceSize == 0 {
			if err := w.close(); err != nil {
				return written, err
			}
		}
	}
	return written, nil
}

// makeRoom waits until the spool is below its limit.
func (w *spoolWriter) makeRoom() error {
	for w.offset-w.acked >= w.limit {
		if w.acked = readAck(w.folder); w.offset-w.acked < w.limit {
			break
		}
		if !w.pause() {
			return errAbandoned
		}
	}
	return nil
}

// next opens the next piece, which begins with output of the stream, and frees
// those that are printed.
func (w *spoolWriter) next(stream Stream) error {
	if w.apart {
		marks, err := newMarks(w.folder, w.offset, stream)
		if err != nil {
			return err
		}
		w.marks = marks
	}
	piece, err := os.OpenFile(piecePath(w.folder, w.offset), os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
	if err != nil {
		return err
	}
	w.piece = piece
	for w.acked = readAck(w.folder); w.freed+pieceSize <= w.acked; w.freed += pieceSize {
		for _, path := range []string{piecePath(w.folder, w.freed), marksPath(w.folder, w.freed/pieceSize)} {
			if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	return nil
}

func (w *spoolWriter) close() error {
	if w.piece == nil {
		return nil
	}
	err := w.piece.Close()
	w.piece = nil
	if w.marks != nil {
		err = errors.Join(err, w.marks.file.Close())
		w.marks = nil
	}
	return err
}

// spoolReader reads a spool from some byte on, while it grows.
type spoolReader struct {
	folder string
	offset int64
	piece  *os.File
}

// Read gives what is there; at the present end of the spool it gives io.EOF
// and may be called again.
func (r *spoolReader) Read(p []byte) (int, error) {
	if r.piece == nil {
		piece, err := os.Open(piecePath(r.folder, r.offset))
		if errors.Is(err, fs.ErrNotExist) {
			return 0, io.EOF
		}
		if err != nil {
			return 0, err
		}
		if _, err := piece.Seek(r.offset%pieceSize, io.SeekStart); err != nil {
			_ = piece.Close()
			return 0, err
		}
		r.piece = piece
	}
	n, err := r.piece.Read(p)
	r.offset += int64(n)
	if n > 0 && r.offset%pieceSize == 0 {
		_ = r.piece.Close()
		r.piece = nil
	}
	if n > 0 {
		return n, nil
	}
	return 0, err
}

// available is the first byte that the spool still has.
func available(folder string) (int64, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return 0, err
	}
	first := int64(-1)
	for _, entry := range entries {
		number, isPiece := strings.CutPrefix(entry.Name(), "out.")
		if !isPiece {
			continue
		}
		if index, err := strconv.ParseInt(number, 10, 64); err == nil && (first < 0 || index < first) {
			first = index
		}
	}
	return max(first, 0) * pieceSize, nil
}

// The acknowledgement is written by the front and read by the supervisor.
const ackName = "ack"

func writeAck(folder string, offset int64) error {
	return writePlace(filepath.Join(folder, ackName), offset)
}

func readAck(folder string) int64 { return readPlace(filepath.Join(folder, ackName)) }

// writePlace writes a number in place, into a file of eight bytes that is there.
func writePlace(path string, n int64) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // the write below is what counts
	_, err = f.WriteAt(appendNumber(nil, 8, uint64(n)), 0)
	return err
}

// readPlace reads what writePlace wrote; 0 where nothing is.
func readPlace(path string) int64 {
	b, err := os.ReadFile(path)
	if err != nil || len(b) != 8 {
		return 0
	}
	return int64(number(b))
}

// fullPause is how long a full spool waits before it looks again.
const fullPause = 20 * time.Millisecond
