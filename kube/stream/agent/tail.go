package agent

import (
	"os"
	"strconv"
	"syscall"
	"time"
)

// The tail of a stage is what is written after the shell's end, by processes
// that outlive it: a filter of the output ("exec > >(tee log)"), which is a
// little late, or a server that is to stay. The first has to be read to its end,
// the second must not hold the stage. The pipe ends with the last process that
// holds it; until then these limits hold.
const (
	// tailLook is the time between two looks at the tail.
	tailLook = 50 * time.Millisecond
	// tailQuiet ends a tail in which nothing has come for so long, and nobody is
	// at work on it.
	tailQuiet = time.Second
	// tailLimit and tailBytes end one that goes on and on.
	tailLimit = 10 * time.Second
	tailBytes = 32 << 20
	// filterLimit is for one of filters whose own input has ended: these end by
	// themselves.
	filterLimit = time.Minute
)

// tail judges how long a tail is waited for. Its times are sums of looks and
// not read from a clock, so that a machine that stood still has not used them up.
type tail struct {
	quiet, passed time.Duration
	bytes         int64
}

// look takes in the time since the last look: how many bytes have come, and
// whether a full spool has held them up, which is no fault of the writers.
func (t *tail) look(bytes int64, held bool) {
	t.bytes += bytes
	if !held {
		t.passed += tailLook
	}
	t.quiet += tailLook
	if held || bytes > 0 {
		t.quiet = 0
	}
}

// asks reports whether it is time to see who holds the pipe.
func (t *tail) asks() bool {
	return t.quiet > 0 && t.quiet%(tailQuiet/2) == 0 || t.passed >= tailLimit && t.passed%tailQuiet == 0 || t.bytes >= tailBytes
}

// over reports whether the tail has ended, as far as the stage waits for it.
func (t *tail) over(by writers) bool {
	if by.atWork {
		t.quiet = 0
	}
	switch {
	case t.quiet >= tailQuiet, t.passed >= filterLimit:
		return true
	case by.ending:
		return false
	}
	return t.passed >= tailLimit || t.bytes >= tailBytes
}

// finish takes the tail of the outputs, and whatever is in the pipes in the end.
func (v *supervisor) finish(outputs []output, copied <-chan error) error {
	var t tail
	seen := newSight(outputs)
	bytes, pauses := v.taken.Load(), v.pauses.Load()
	for over := false; !over; {
		select {
		case err := <-copied:
			return err
		case <-time.After(tailLook):
		}
		nowBytes, nowPauses := v.taken.Load(), v.pauses.Load()
		t.look(nowBytes-bytes, nowPauses != pauses)
		bytes, pauses = nowBytes, nowPauses
		over = t.asks() && t.over(seen.look())
	}
	return v.drain(outputs, copied)
}

// writers is what is known of the processes that hold the pipes of a stage whose
// shell has ended.
type writers struct {
	// ending is true where one of them is a filter whose own input has ended.
	ending bool
	// atWork is true where a process of the stage computes, or reads the disk.
	atWork bool
}

// sight looks at the processes of a stage, as /proc shows them. Those of another
// user may not be seen.
type sight struct {
	root    int
	outputs map[pipeID]bool
	used    map[int]int64 // the processor's time that each had used
}

// pipeID identifies a pipe, named or not.
type pipeID struct{ device, inode uint64 }

func newSight(outputs []output) *sight {
	s := &sight{root: os.Getpid(), outputs: map[pipeID]bool{}}
	for _, o := range outputs {
		var stat syscall.Stat_t
		raw, err := o.reader.SyscallConn()
		if err != nil {
			continue
		}
		if err := raw.Control(func(fd uintptr) { err = syscall.Fstat(int(fd), &stat) }); err == nil {
			s.outputs[pipeID{stat.Dev, stat.Ino}] = true
		}
	}
	return s
}

func (s *sight) look() writers {
	found, err := descendants(s.root)
	if err != nil {
		return writers{}
	}
	var w writers
	ends := make(map[int]processPipes, len(found))
	used := make(map[int]int64, len(found))
	for _, pid := range found {
		p, err := readProcess(pid)
		if err != nil {
			continue
		}
		before, known := s.used[pid]
		w.atWork = w.atWork || p.busy || known && p.used != before
		used[pid] = p.used
		ends[pid] = readPipes(pid)
	}
	s.used = used
	w.ending = anyEnding(ends, s.outputs)
	return w
}

// processPipes is which pipes a process writes to, and which is its input.
type processPipes struct {
	writes map[pipeID]bool
	stdin  pipeID // zero where that is no pipe
}

// readPipes lists a process's pipes by /proc/PID/fd, of which each entry leads to
// the open file and has for its own mode what it was opened for (proc(5)).
func readPipes(pid int) processPipes {
	p := processPipes{writes: map[pipeID]bool{}}
	folder := "/proc/" + strconv.Itoa(pid) + "/fd"
	entries, err := os.ReadDir(folder)
	if err != nil {
		return p
	}
	for _, entry := range entries {
		path := folder + "/" + entry.Name()
		var file syscall.Stat_t
		if syscall.Stat(path, &file) != nil || file.Mode&syscall.S_IFMT != syscall.S_IFIFO {
			continue
		}
		link, err := os.Lstat(path)
		if err != nil {
			continue
		}
		id := pipeID{file.Dev, file.Ino}
		if link.Mode()&0o200 != 0 {
			p.writes[id] = true
		}
		if entry.Name() == "0" {
			p.stdin = id
		}
	}
	return p
}

// anyEnding reports whether a process that writes to one of the outputs is a
// filter that ends by itself: nobody writes to its input any more, or only
// filters that end by themselves.
func anyEnding(all map[int]processPipes, outputs map[pipeID]bool) bool {
	asked := map[int]bool{} // a ring of filters has no end
	var ends func(pid int) bool
	ends = func(pid int) bool {
		input := all[pid].stdin
		if asked[pid] || input == (pipeID{}) || outputs[input] {
			return false
		}
		asked[pid] = true
		defer delete(asked, pid)
		for other, pipes := range all {
			if pipes.writes[input] && !ends(other) {
				return false
			}
		}
		return true
	}
	for pid, pipes := range all {
		for output := range outputs {
			if pipes.writes[output] && ends(pid) {
				return true
			}
		}
	}
	return false
}
