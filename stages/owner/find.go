package owner

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
)

// ErrUnknown is the error where the runner's process cannot be told.
var ErrUnknown = errors.New("the runner's process cannot be told")

// mostAncestors bounds the search: a driver is called by its runner, or by a
// wrapper or two.
const mostAncestors = 16

// Find finds the runner that called the process pid: the nearest ancestor that
// was not itself handed the job. Wrappers between the runner and the driver,
// such as a shell script in prepare_exec, inherit variable=value from the
// runner, which never has it in its own environment. The value is the file with
// the job, which becomes the owner's Attempt.
//
// An ancestor of another session is not the runner (it starts the driver in
// its own, helpers/process/job_unix.go): the runner has died, and the system
// has taken its children over.
func (h Host) Find(pid int, variable, value string) (Owner, error) {
	if h.Identity == "" || value == "" {
		return Owner{}, ErrUnknown
	}
	boot, _, err := h.boot()
	if err != nil {
		return Owner{}, fmt.Errorf("%w: %w", ErrUnknown, err)
	}
	space, err := h.space()
	if err != nil {
		return Owner{}, fmt.Errorf("%w: %w", ErrUnknown, err)
	}
	found, start, err := h.search(pid, []byte(variable+"="+value))
	if err != nil {
		return Owner{}, fmt.Errorf("%w: %w", ErrUnknown, err)
	}
	return Owner{Host: h.Identity, Hostname: h.Hostname, Boot: boot, Space: space, Container: h.container(), PID: found, Start: start, Attempt: value}, nil
}

var errOrphaned = errors.New("the driver's caller has ended")

func (h Host) search(pid int, entry []byte) (found int, start uint64, err error) {
	self, err := h.process(pid)
	if err != nil {
		return 0, 0, err
	}
	ancestor := self.parent
	for range mostAncestors {
		if ancestor < 1 {
			break
		}
		p, err := h.process(ancestor)
		if err != nil {
			return 0, 0, err
		}
		handed, err := h.handed(ancestor, entry)
		switch {
		case err != nil:
			return 0, 0, err
		case handed:
			ancestor = p.parent
		case p.session != self.session:
			return 0, 0, errOrphaned
		default:
			return ancestor, p.start, nil
		}
	}
	return 0, 0, errOrphaned
}

// handed says whether a process has the entry in its environment.
func (h Host) handed(pid int, entry []byte) (bool, error) {
	environment, err := h.read(strconv.Itoa(pid) + "/environ")
	if err != nil {
		return false, err
	}
	for one := range bytes.SplitSeq(environment, []byte{0}) {
		if bytes.Equal(one, entry) {
			return true, nil
		}
	}
	return false, nil
}
