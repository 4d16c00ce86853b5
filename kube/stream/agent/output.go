package agent

import (
	"errors"
	"io"
	"os"
	"syscall"
	"time"
)

// output is the supervisor's end of a pipe that a script writes to.
type output struct {
	stream Stream
	reader *os.File
}

// Sizes of the pipe, in bytes.
const (
	setPipeSize = 1031 // F_SETPIPE_SZ
	pipeSize    = 1 << 20
	copySize    = 256 << 10
)

// openOutput makes a pipe and gives the script's end beside.
func openOutput(stream Stream) (output, *os.File, error) {
	reader, writer, err := os.Pipe()
	if err != nil {
		return output{}, nil, err
	}
	// A large pipe lets the script run on while the disk is slow. Where it
	// may not be enlarged it stays as it is.
	_, _, _ = syscall.Syscall(syscall.SYS_FCNTL, writer.Fd(), setPipeSize, pipeSize)
	// The shell's end has to block like any pipe; Go's own ends do not.
	if err := syscall.SetNonblock(int(writer.Fd()), false); err != nil {
		return output{}, nil, err
	}
	return output{stream, reader}, writer, nil
}

// keep writes output down, unless nobody is to see it any more.
func (v *supervisor) keep(stream Stream, p []byte) error {
	v.keeping.Lock()
	defer v.keeping.Unlock()
	if v.muted.Load() {
		return nil
	}
	_, err := v.spool.put(stream, p)
	if errors.Is(err, errAbandoned) {
		v.muted.Store(true) // what is left out is the end, and never a part before it
		return nil
	}
	return err
}

// copyAll moves the outputs into the spool until all of them end, or one cannot
// be kept.
func (v *supervisor) copyAll(outputs []output) error {
	copied := make(chan error, len(outputs))
	for _, o := range outputs {
		go func() { copied <- v.copy(o) }()
	}
	for range outputs {
		if err := <-copied; err != nil {
			return err
		}
	}
	return nil
}

// copy moves an output from its pipe into the spool until the pipe ends or its
// deadline passes.
func (v *supervisor) copy(o output) error {
	buffer := make([]byte, copySize)
	for {
		n, err := o.reader.Read(buffer)
		if n > 0 {
			v.taken.Add(int64(n))
			if err := v.keep(o.stream, buffer[:n]); err != nil {
				return err
			}
		}
		if err != nil {
			return nil
		}
	}
}

// drain takes what is left in the pipes. Other processes may hold them open and
// go on writing; the stage does not wait for them.
func (v *supervisor) drain(outputs []output, copied <-chan error) error {
	for _, o := range outputs {
		if err := o.reader.SetReadDeadline(time.Now()); err != nil {
			return err
		}
	}
	if err := <-copied; err != nil {
		return err
	}
	for _, o := range outputs {
		if err := v.drainOne(o); err != nil {
			return err
		}
	}
	return nil
}

func (v *supervisor) drainOne(o output) error {
	raw, err := o.reader.SyscallConn()
	if err != nil {
		return err
	}
	buffer := make([]byte, copySize)
	for taken := 0; taken < 2*pipeSize; {
		n := 0
		// One try without waiting: an empty pipe ends the drain.
		err := raw.Control(func(fd uintptr) { n, _ = syscall.Read(int(fd), buffer) })
		if err != nil || n <= 0 {
			break
		}
		taken += n
		if err := v.keep(o.stream, buffer[:n]); err != nil {
			return err
		}
	}
	return nil
}

// linger keeps reading for processes that the script left behind: a daemon
// that logs to its stdout would die of a broken pipe otherwise, and
// after_script may need it. It ends with the last of them.
func linger(outputs []output) error {
	ended := make(chan error, len(outputs))
	for _, o := range outputs {
		if err := o.reader.SetReadDeadline(time.Time{}); err != nil {
			return err
		}
		go func() {
			_, err := io.Copy(io.Discard, o.reader)
			ended <- err
		}()
	}
	var all []error
	for range outputs {
		all = append(all, <-ended)
	}
	return errors.Join(all...)
}
