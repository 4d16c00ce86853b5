// Package agent is the program that runs a stage inside the Pod, and the
// protocol by which the driver talks to it.
//
// The stage runs apart from the connection: a supervisor, in a session of its
// own, keeps the stage's output in files; a front, the process that an exec
// starts, follows these files and sends them as frames. When the connection
// breaks only the front dies, and the next one goes on from the byte that the
// driver names. The package knows neither Kubernetes nor GitLab, and uses
// little of the standard library so that the program stays small.
package agent

import (
	"bufio"
	"errors"
	"hash/crc32"
	"io"
)

// Kind says what a frame is for.
type Kind byte

// The kinds of frames. Offsets are bytes of the stage's output unless said
// otherwise.
const (
	// KindStart opens a session: the payload is a Request, the offset where
	// the output is to go on.
	KindStart Kind = 'S'
	// KindScript holds a part of the script; the offset is its place in it.
	KindScript Kind = 'C'
	// KindAck says that all output below the offset has been printed.
	KindAck Kind = 'A'
	// KindStop ends the stage's processes; the offset is the grace in
	// milliseconds.
	KindStop Kind = 'K'
	// KindAlive says that the sender is there. Both sides send it.
	KindAlive Kind = 'P'

	// KindBegun answers KindStart: the stage runs or has run, and its output goes
	// on at the offset. With a payload it keeps the streams apart.
	KindBegun Kind = 'B'
	// KindMissing answers a KindStart without script: there is no such stage.
	KindMissing Kind = 'N'
	// KindUnstarted answers a KindStart with a script: the stage could not be made
	// and has not begun. The payload is a Status that names the trouble.
	KindUnstarted Kind = 'U'
	// KindRefused answers what cannot be done; the payload says why.
	KindRefused Kind = 'X'
	// KindData is output from the offset on.
	KindData Kind = 'D'
	// KindErrors is output from the offset on that was written to stderr, of a
	// stage that keeps the streams apart; KindData then is that of stdout.
	KindErrors Kind = 'R'
	// KindEnd is the stage's end: the payload is a Status, the offset the
	// length of all output.
	KindEnd Kind = 'E'
	// KindSoFar is the present end of the output of a stage that goes on, for a
	// session that ends there; the offset is the length of the output so far.
	KindSoFar Kind = 'F'
)

// Frame is one message.
type Frame struct {
	Kind    Kind
	Offset  uint64
	Payload []byte
}

// Sizes on the wire, in bytes: kind 1, payload length 4, offset 8, checksum 4,
// then the payload. Numbers are big-endian.
const (
	headerSize = 1 + 4 + 8 + 4
	// MaxPayload is the longest payload of a frame.
	MaxPayload = 64 << 10
	// maxOffset is the largest offset: what lies behind a frame there is still a
	// number of bytes as both sides count them, in an int64.
	maxOffset = 1<<63 - 1 - MaxPayload
)

// ErrCorrupt says that what arrived is not what was sent: bytes are missing,
// changed or added. The connection cannot be used any more.
var ErrCorrupt = errors.New("the stream of frames is damaged")

// castagnoli is the polynomial for which processors have an instruction.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Append adds the frame to b as it goes over the wire.
func (f Frame) Append(b []byte) []byte {
	start := len(b)
	b = append(b, byte(f.Kind))
	b = appendNumber(b, 4, uint64(len(f.Payload)))
	b = appendNumber(b, 8, f.Offset)
	sum := crc32.Checksum(b[start:], castagnoli)
	sum = crc32.Update(sum, castagnoli, f.Payload)
	b = appendNumber(b, 4, uint64(sum))
	return append(b, f.Payload...)
}

// Write sends the frame in one Write.
func (f Frame) Write(w io.Writer) error {
	if len(f.Payload) > MaxPayload {
		return errors.New("a frame's payload is too long")
	}
	_, err := w.Write(f.Append(make([]byte, 0, headerSize+len(f.Payload))))
	return err
}

// Reader takes frames off a stream. The payload of a frame is valid until the
// next one is read.
type Reader struct {
	r       *bufio.Reader
	header  [headerSize]byte
	payload []byte
}

// NewReader reads frames from r.
func NewReader(r io.Reader) *Reader {
	return &Reader{r: bufio.NewReaderSize(r, headerSize+MaxPayload)}
}

// Next is the next frame. At the end of the stream between two frames the
// error is io.EOF, within one io.ErrUnexpectedEOF; damage is ErrCorrupt.
func (r *Reader) Next() (Frame, error) {
	if _, err := io.ReadFull(r.r, r.header[:]); err != nil {
		return Frame{}, err
	}
	h := r.header[:]
	length := number(h[1:5])
	if length > MaxPayload {
		return Frame{}, ErrCorrupt
	}
	if cap(r.payload) < int(length) {
		r.payload = make([]byte, MaxPayload)
	}
	payload := r.payload[:length]
	if _, err := io.ReadFull(r.r, payload); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return Frame{}, err
	}
	sum := crc32.Checksum(h[:13], castagnoli)
	if uint64(crc32.Update(sum, castagnoli, payload)) != number(h[13:17]) {
		return Frame{}, ErrCorrupt
	}
	f := Frame{Kind: Kind(h[0]), Offset: number(h[5:13]), Payload: payload}
	if f.Offset > maxOffset {
		return Frame{}, ErrCorrupt // the sum is right: somebody has made it up
	}
	return f, nil
}

// appendNumber and number are encoding/binary's big-endian numbers, without
// the reflection that the package would bring into the program.
func appendNumber(b []byte, size int, n uint64) []byte {
	for shift := 8 * (size - 1); shift >= 0; shift -= 8 {
		b = append(b, byte(n>>shift))
	}
	return b
}

func number(b []byte) uint64 {
	var n uint64
	for _, c := range b {
		n = n<<8 | uint64(c)
	}
	return n
}
