package owner

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Life is what is known of an owner.
type Life int

const (
	// Unknown is an owner on another host, or one that cannot be looked at.
	Unknown Life = iota
	// Alive is an owner whose job may go on.
	Alive
	// Gone is a runner that is proven dead.
	Gone
	// Over is a runner that lives and has finished with the attempt.
	Over
)

// Life looks at the owner of something that was made at a time. Self is the
// owner of the present process, nil where there is none.
func (h Host) Life(o Owner, made time.Time, self *Owner) Life {
	if h.Identity == "" || o.Host != h.Identity {
		return Unknown
	}
	boot, since, err := h.boot()
	if err != nil {
		return Unknown
	}
	if o.Boot != boot {
		if made.Before(since) {
			return Gone
		}
		// It was made in another boot while this one lasted: by another
		// machine that goes by the same names.
		return Unknown
	}
	space, err := h.space()
	if err != nil {
		return Unknown
	}
	if space != o.Space {
		if o.Container != "" && o.Container == h.container() {
			return Gone // with the container that was started before this one
		}
		return Unknown
	}
	if !h.lives(o) {
		return Gone
	}
	if h.over(o, self) && h.lives(o) {
		return Over
	}
	return Alive
}

// lives says whether the very process is there. One that cannot be looked at
// counts as living: /proc may hide the processes of others, kill(2) does not.
func (h Host) lives(o Owner) bool {
	if errors.Is(h.Signal(o.PID, 0), syscall.ESRCH) {
		return false
	}
	p, err := h.process(o.PID)
	if err != nil {
		return true
	}
	const zombie, dead = "Z", "X"
	return p.start == o.Start && p.state != zombie && p.state != dead
}

// over reports whether the runner has finished with its attempt: then it has
// removed the attempt's folder, after cleanup (executors/custom/custom.go:358),
// however that ended. A process of another runner may see another /tmp, so it
// looks through the eyes of the owner; one that may not learns nothing.
func (h Host) over(o Owner, self *Owner) bool {
	if !filepath.IsAbs(o.Attempt) {
		return false
	}
	if self != nil && self.process() == o.process() {
		_, err := os.Stat(o.Attempt)
		return errors.Is(err, fs.ErrNotExist)
	}
	// Links of the owner's must not lead to files of ours.
	root, err := os.OpenRoot(filepath.Join(h.Proc, strconv.Itoa(o.PID), "root"))
	if err != nil {
		return false
	}
	defer root.Close() //nolint:errcheck // it was only looked at
	_, err = root.Stat(strings.TrimPrefix(filepath.Clean(o.Attempt), "/"))
	return errors.Is(err, fs.ErrNotExist)
}
