package agent

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Front is one connection to a stage: it starts the stage or attaches to it,
// and sends its output and its end.
type Front struct {
	// Root is the folder of all stages.
	Root string
	// In and Out are the connection.
	In  io.Reader
	Out io.Writer
	// Spawn starts a supervisor for a stage's folder, apart from this
	// process, with the lock as its file 3.
	Spawn func(folder string, lock *os.File) error

	folder  stageFolder
	request Request
	spawned int
	sending sync.Mutex
	owner   *os.File
	began   time.Time
	heard   atomic.Int64 // when a frame last came, in nanoseconds since began
}

// errSilent ends a connection whose other side is gone.
var errSilent = errors.New("nothing was heard of the driver")

// Run serves the connection to its end.
func (f *Front) Run() error {
	defer f.disown()
	frames := NewReader(f.In)
	first, err := frames.Next()
	if err != nil {
		return err
	}
	if first.Kind != KindStart {
		return f.refuse(errors.New("the first frame does not start a stage"))
	}
	if f.request, err = ParseRequest(first.Payload); err != nil {
		return f.refuse(err)
	}
	offset := int64(first.Offset)
	f.folder = folderOf(f.Root, f.request.Stage)
	if f.request.Sum != "" && !f.folder.hasBegun() {
		if err := f.endLeft(); err != nil {
			return f.refuse(err)
		}
	}
	switch known := f.folder.exists(); {
	case !known && f.request.Sum == "":
		return f.send(Frame{Kind: KindMissing})
	case !known:
		script := &scriptReader{frames: frames, left: f.request.Size}
		if err := f.folder.create(f.request, script); script.lost != nil {
			return script.lost // not a matter of this stage: the next connection may do better
		} else if noRoom(err) {
			return f.unstarted(Status{Exit: 1, Trouble: TroubleNoRoom, Detail: err.Error()})
		} else if err != nil {
			return f.refuse(err)
		}
	}
	if err := errors.Join(f.own(), f.ensureSupervisor()); err != nil {
		return f.fail(err)
	}
	// Where the output is to go on, it has been printed until then. The
	// connection before this one may have broken before it could say so.
	if err := f.acknowledge(offset); err != nil {
		return f.fail(err)
	}
	from, err := available(string(f.folder))
	if err != nil {
		return f.fail(err)
	}
	from = max(from, offset)
	apart, err := f.folder.apart()
	if err != nil {
		return f.fail(err)
	}
	begun := Frame{Kind: KindBegun, Offset: uint64(from)}
	if apart {
		begun.Payload = []byte("apart")
	}
	if err := f.send(begun); err != nil {
		return err
	}
	return f.follow(frames, from, apart)
}

// ensureSupervisor starts the stage unless it has begun, and is called again
// while the stage runs. A stage whose supervisor died after the beginning is
// over: its script is never run again.
func (f *Front) ensureSupervisor() error {
	lock, free, err := f.folder.lock()
	if err != nil || !free {
		return err
	}
	defer lock.Close() //nolint:errcheck // the supervisor has its own
	_, _, ended, err := f.folder.status()
	if err != nil || ended {
		return err
	}
	if f.folder.hasBegun() {
		if session, err := f.folder.readNumber("shell"); err == nil {
			endSession(session)
		}
		return f.folder.finish(f.written(), Status{Exit: 1, Trouble: TroubleLost, Detail: "the stage's supervisor is gone"})
	}
	if f.spawned++; f.spawned > maxSpawns {
		return errors.New("the stage's supervisor does not start: " + f.folder.lastWords())
	}
	return f.Spawn(string(f.folder), lock)
}

// maxSpawns is how often one connection starts a supervisor. One that dies
// before the script begins may be started again; one that always dies may not.
const maxSpawns = 3

// written is how much output there is.
func (f *Front) written() int64 {
	r := &spoolReader{folder: string(f.folder)}
	first, err := available(string(f.folder))
	if err != nil {
		return 0
	}
	r.offset = first
	_, _ = io.Copy(io.Discard, r)
	return r.offset
}

// follow sends the output as it comes, and the end.
func (f *Front) follow(frames *Reader, offset int64, apart bool) error {
	f.began = time.Now()
	over := make(chan error, 2)
	go func() { over <- f.listen(frames) }()
	go func() { over <- f.stayAlive() }()
	done := make(chan error, 1)
	go func() { done <- f.sendOutput(offset, f.output(apart)) }()
	select {
	case err := <-over:
		return err
	case err := <-done:
		return err
	}
}

// listen takes the driver's frames until the connection ends.
func (f *Front) listen(frames *Reader) error {
	for {
		frame, err := frames.Next()
		if err != nil {
			return err
		}
		f.heard.Store(int64(time.Since(f.began)))
		switch frame.Kind {
		case KindAck:
			if err := f.acknowledge(int64(frame.Offset)); err != nil {
				return err
			}
		case KindStop:
			if err := f.stop(int64(frame.Offset)); err != nil {
				return err
			}
		case KindAlive, KindScript:
			// A script that follows although the stage was there already.
		default:
			return ErrCorrupt
		}
	}
}

// acknowledge notes that the output below offset has been printed. The supervisor
// frees it as it needs room; once the stage has ended, nobody else does.
func (f *Front) acknowledge(offset int64) error {
	if f.request.Look || offset <= readAck(string(f.folder)) {
		return nil
	}
	if err := writeAck(string(f.folder), offset); err != nil {
		return err
	}
	if _, _, ended, err := f.folder.status(); err != nil || !ended {
		return err
	}
	first, err := available(string(f.folder))
	if err != nil {
		return err
	}
	return freePieces(string(f.folder), first, offset)
}

// stop asks the supervisor to end the stage's processes.
func (f *Front) stop(milliseconds int64) error {
	lock, free, err := f.folder.lock()
	if err != nil {
		return err
	}
	if free {
		return lock.Close() // no supervisor, nothing to stop
	}
	// A stop that cannot be written leaves no grace, and is a stop all the same.
	_ = f.folder.askStop(milliseconds)
	pid, err := f.folder.readNumber("pid")
	if errors.Is(err, fs.ErrNotExist) {
		return nil // the supervisor looks for the stop once it is ready for TERM
	}
	if err != nil {
		return err
	}
	if err := syscall.Kill(pid, syscall.SIGTERM); err != syscall.ESRCH { // it may have ended since
		return err
	}
	return nil
}

// stayAlive tells the driver that the stage lives, and notices when the driver
// does not. A third of the silence leaves room for two lost ones.
func (f *Front) stayAlive() error {
	silence := time.Duration(f.request.Silence) * time.Second
	for {
		time.Sleep(silence / 3)
		// The clock of a fresh machine may be set meanwhile: only times since are
		// compared.
		if time.Since(f.began)-time.Duration(f.heard.Load()) > silence {
			return errSilent
		}
		// The send may wait for a slow reader; then its frames are the sign of
		// life, and silence is judged by what the driver sends.
		if f.sending.TryLock() {
			err := Frame{Kind: KindAlive}.Write(f.Out)
			f.sending.Unlock()
			if err != nil {
				return err
			}
		}
	}
}

// Pauses between two looks at a spool that has nothing new: short at first, so
// that short stages end at once, longer when the script is silent.
const (
	shortestLook = time.Millisecond
	longestLook  = 25 * time.Millisecond
)

// sendOutput sends the output from an offset on, each part by send, and the end.
func (f *Front) sendOutput(offset int64, send func(at int64, part []byte) error) error {
	spool := &spoolReader{folder: string(f.folder), offset: offset}
	buffer := make([]byte, MaxPayload)
	look := shortestLook
	for {
		total, status, ended, err := f.folder.status()
		if err != nil {
			return f.fail(err)
		}
		at := spool.offset
		n, err := spool.Read(buffer)
		switch {
		case n > 0:
			look = shortestLook
			if err := send(at, buffer[:n]); err != nil {
				return err
			}
		case err != nil && !errors.Is(err, io.EOF):
			return f.fail(err)
		case f.request.Look && f.overtaken(spool.offset):
			return errOvertaken
		case ended && spool.offset >= total:
			return f.send(Frame{Kind: KindEnd, Offset: uint64(total), Payload: status.Bytes()})
		case ended:
			return f.fail(errors.New("output of the stage is missing"))
		case f.request.Now:
			return f.send(Frame{Kind: KindSoFar, Offset: uint64(spool.offset)})
		default:
			if look == longestLook {
				if err := f.ensureSupervisor(); err != nil {
					return f.fail(err)
				}
			}
			time.Sleep(look)
			look = min(2*look, longestLook)
		}
	}
}

// output gives what sends a part of the output, of a stage that keeps the
// streams apart or does not.
func (f *Front) output(apart bool) func(at int64, part []byte) error {
	if !apart {
		return func(at int64, part []byte) error {
			return f.send(Frame{Kind: KindData, Offset: uint64(at), Payload: part})
		}
	}
	marks := &markReader{folder: string(f.folder)}
	return func(at int64, part []byte) error {
		for len(part) > 0 {
			stream, n, err := marks.run(at, len(part))
			switch {
			case f.request.Look && errors.Is(err, fs.ErrNotExist):
				return errOvertaken // freed since the part was read
			case err != nil:
				return f.fail(err)
			}
			kind := KindData
			if stream == Stderr {
				kind = KindErrors
			}
			if err := f.send(Frame{Kind: kind, Offset: uint64(at), Payload: part[:n]}); err != nil {
				return err
			}
			at, part = at+int64(n), part[n:]
		}
		return nil
	}
}

// errOvertaken ends the session of somebody who looks more slowly than the
// driver prints. The next one goes on with what there is.
var errOvertaken = errors.New("the output that comes next has been printed and freed")

// overtaken says whether the output at an offset is gone.
func (f *Front) overtaken(offset int64) bool {
	first, err := available(string(f.folder))
	return err == nil && first > offset
}

func (f *Front) send(frame Frame) error {
	f.sending.Lock()
	defer f.sending.Unlock()
	return frame.Write(f.Out)
}

// fail tells the driver why the stage cannot be followed any more: one of its files
// is gone, as all may be in a moment, which the job can do to itself; or something
// else.
func (f *Front) fail(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return errors.Join(err, f.send(Frame{Kind: KindMissing}))
	}
	return f.refuse(err)
}

// unstarted tells the driver that the stage was not made, and has not begun.
func (f *Front) unstarted(status Status) error {
	status.Detail = status.Detail[:min(len(status.Detail), maxDetail)]
	return errors.Join(errors.New(status.Detail), f.send(Frame{Kind: KindUnstarted, Payload: status.Bytes()}))
}

// refuse tells the driver why the connection is of no use, and gives the same
// error.
func (f *Front) refuse(err error) error {
	text := err.Error()
	if len(text) > maxDetail {
		text = text[:maxDetail]
	}
	return errors.Join(err, f.send(Frame{Kind: KindRefused, Payload: []byte(text)}))
}
