package agent

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
)

// However output and looks at it mix, each byte is of the stream that it was
// written to: in runs of all lengths, over the ends of pieces, and from
// wherever a reader begins.
func TestMarksAreExact(t *testing.T) {
	t.Parallel()
	for seed := range uint64(6) {
		random := rand.New(rand.NewPCG(seed, 1))
		dir := t.TempDir()
		w := &spoolWriter{folder: dir, limit: 1 << 40, apart: true, pause: func() bool { return false }}
		// What was written: the streams' bytes are their numbers.
		var readers []*lookalong
		for w.offset < 2*pieceSize+1000 {
			if random.IntN(60) == 0 {
				readers = append(readers, newLookalong(t, dir, w.offset-random.Int64N(w.offset+1)))
			}
			size := []int{1, 1, 100, 5000, 300_000}[random.IntN(5)]
			stream := Stream(random.IntN(2))
			p := make([]byte, 1+random.IntN(size))
			for i := range p {
				p[i] = byte(stream)
			}
			if _, err := w.put(stream, p); err != nil {
				t.Fatal(err)
			}
			for _, r := range readers {
				if random.IntN(20) == 0 {
					r.look(random.IntN(70_000) + 1)
				}
			}
		}
		for _, r := range append(readers, newLookalong(t, dir, 0)) {
			for r.spool.offset < w.offset {
				r.look(MaxPayload)
			}
		}
		if err := w.close(); err != nil {
			t.Fatal(err)
		}
	}
}

// lookalong reads a spool whose bytes are the numbers of their streams.
type lookalong struct {
	t     *testing.T
	spool *spoolReader
	marks *markReader
}

func newLookalong(t *testing.T, dir string, offset int64) *lookalong {
	return &lookalong{t, &spoolReader{folder: dir, offset: offset}, &markReader{folder: dir}}
}

func (l *lookalong) look(most int) {
	l.t.Helper()
	buffer := make([]byte, most)
	at := l.spool.offset
	n, _ := l.spool.Read(buffer) // the present end is none
	for part := buffer[:n]; len(part) > 0; {
		stream, run, err := l.marks.run(at, len(part))
		if err != nil || run < 1 || run > len(part) {
			l.t.Fatalf("at %d: a run of %d bytes, %v", at, run, err)
		}
		for i, b := range part[:run] {
			if Stream(b) != stream {
				l.t.Fatalf("byte %d is of stream %d, and said to be of %d", at+int64(i), b, stream)
			}
		}
		at, part = at+int64(run), part[run:]
	}
}

// Marks go with the output that they are about, and take no more room than it.
func TestMarksAreFreed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, ackName), make([]byte, 8), fileMode); err != nil {
		t.Fatal(err)
	}
	w := &spoolWriter{folder: dir, limit: 1 << 40, apart: true, pause: func() bool { return false }}
	put := func(stream Stream, size int) {
		t.Helper()
		if _, err := w.put(stream, make([]byte, size)); err != nil {
			t.Fatal(err)
		}
	}
	const short = 1000
	for range short / 2 {
		put(Stdout, 1)
		put(Stderr, 1)
	}
	if marks, err := os.Stat(marksPath(dir, 0)); err != nil || marks.Size() != short {
		t.Fatalf("the marks of %d runs of a byte: %v, %v", short, marks, err)
	}
	put(Stdout, pieceSize)
	if err := writeAck(dir, pieceSize); err != nil {
		t.Fatal(err)
	}
	put(Stderr, pieceSize)
	if left, _ := filepath.Glob(filepath.Join(dir, "*.0")); len(left) > 0 {
		t.Errorf("%v are left of a piece that was printed", left)
	}
	if there, _ := filepath.Glob(filepath.Join(dir, "marks.*")); len(there) != 2 {
		t.Errorf("marks of the pieces that wait: %v", there)
	}
}
