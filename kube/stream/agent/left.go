package agent

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// A container runs one stage at a time. A driver that died may have left one that
// goes on: before the next one begins it is ended, with its whole tree. Otherwise
// two tries of one stage would work in one folder, such as two clones.
//
// That its driver is gone is told by the stage's owner file, which each session of
// that driver holds: the kernel lets go of it with the session's process. A driver
// that has only lost its connection is back within a few seconds; while one is
// there the stage is left alone, as a stage that a person runs by hand.

// Times of looking at stages that are left.
const (
	leftLook = 100 * time.Millisecond
	// leftAfter is how long no session of the driver has to be there, or one has
	// to be, until that is believed. It is longer than a driver's pause between two
	// tries to connect.
	leftAfter = 5 * time.Second
	// leftGrace is what the processes of such a stage have between TERM and KILL.
	leftGrace = 2 * time.Second
	// leftLimit bounds it all: processes may hang in the kernel.
	leftLimit = 30 * time.Second
	// leftSign is how often the driver, which waits, is shown that the agent lives.
	leftSign = time.Second
)

// own takes hold of the stage's owner file until the process ends, where the
// session is that of the stage's driver.
func (f *Front) own() error {
	if !f.request.Owner || f.owner != nil {
		return nil
	}
	file, err := os.Open(f.folder.path("owner"))
	if err != nil {
		return err
	}
	f.owner = file
	for {
		// Whoever asks holds it for a moment.
		if err := syscall.Flock(int(file.Fd()), syscall.LOCK_SH); err != syscall.EINTR {
			return err
		}
	}
}

// disown lets go of it.
func (f *Front) disown() {
	if f.owner != nil {
		_ = f.owner.Close()
	}
}

// owned reports whether a session of the stage's driver is there.
func (s stageFolder) owned() bool {
	file, err := os.Open(s.path("owner"))
	if err != nil {
		return false
	}
	defer file.Close() //nolint:errcheck // only locked
	return syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil
}

// running lists the other stages of this container that have begun and have not
// ended, as far as this user may see them.
func (f *Front) running() []stageFolder {
	entries, err := os.ReadDir(filepath.Dir(string(f.folder)))
	if err != nil {
		return nil
	}
	var found []stageFolder
	for _, entry := range entries {
		s := folderOf(f.Root, entry.Name())
		if s == f.folder || strings.HasPrefix(entry.Name(), halfMade) || !s.hasBegun() {
			continue
		}
		if _, _, ended, err := s.status(); err == nil && !ended {
			found = append(found, s)
		}
	}
	return found
}

// endLeft ends the stages of this container whose drivers are gone.
func (f *Front) endLeft() error {
	// since is from when on a stage is known as owned, or as not.
	type sight struct {
		owned bool
		since time.Time
	}
	seen := map[stageFolder]sight{}
	asked := map[stageFolder]bool{}
	began := time.Now()
	signed := began
	for time.Since(began) < leftLimit {
		waits := false
		for _, s := range f.running() {
			owned := s.owned()
			last, known := seen[s]
			if !known || last.owned != owned {
				last = sight{owned, time.Now()}
				seen[s] = last
			}
			switch settled := time.Since(last.since) >= leftAfter; {
			case !settled, asked[s]:
				waits = true
			case !owned:
				waits, asked[s] = true, true
				if err := (&Front{Root: f.Root, folder: s}).stop(leftGrace.Milliseconds()); err != nil {
					return err
				}
			}
			if asked[s] {
				// One without a supervisor is over, too; its shell may live.
				if err := (&Front{Root: f.Root, folder: s, Spawn: neverSpawn}).ensureSupervisor(); err != nil {
					return err
				}
			}
		}
		if !waits {
			return nil
		}
		if time.Since(signed) >= leftSign {
			signed = time.Now()
			if err := f.send(Frame{Kind: KindAlive}); err != nil {
				return err
			}
		}
		time.Sleep(leftLook)
	}
	return errLeft
}

// neverSpawn is for stages that have begun: these are never started again.
func neverSpawn(string, *os.File) error { return errLeft }

// errLeft says that what a driver has left could not be ended.
var errLeft = errors.New("an earlier stage, of a driver that is gone, goes on and cannot be ended")
