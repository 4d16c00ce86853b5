package course

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/socialweb-computer/tenant-executor/stages/owner"
	"github.com/socialweb-computer/tenant-executor/stages/state"
)

// Most is how many courses are kept. The oldest give way.
const Most = 500

// folderName is the courses' own folder in the state folder: they must not take
// the room of what is to be done.
const folderName = "jobs"

// prefix begins the names of the files; behind it stand the time in milliseconds,
// the job's key and the attempt. So the names alone tell the order.
const prefix = "job-"

// Book is the folder with the courses. Many processes use it at once, without a
// lock: a file changes as a whole, and the stages of an attempt follow one
// another. A nil Book is empty and takes nothing.
type Book struct {
	folder *state.Folder
	over   Over
}

// Over is why the owner of something that was made at a time is proven to be done
// with it, in the words of reap; "" while it may not be.
type Over func(of owner.Owner, made time.Time) string

// Judge has the book take an attempt for closed whose owner is over. What it
// reads from then on says so; Settle writes it down.
func (b *Book) Judge(over Over) *Book {
	if b != nil {
		b.over = over
	}
	return b
}

// Open opens the book in a state folder.
func Open(stateDir string) (*Book, error) {
	folder, err := state.Open(filepath.Join(stateDir, folderName))
	if err != nil {
		return nil, err
	}
	return &Book{folder: folder}, nil
}

// Look is Open for one who only reads: nothing is made, and a book that is not
// there is a nil Book. Who made the folder as another user than the runner's
// would keep the runner's jobs from it.
func Look(stateDir string) (*Book, error) {
	_, err := os.Stat(filepath.Join(stateDir, folderName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("looking for the courses of jobs: %w", err)
	}
	return Open(stateDir)
}

// Folder is where the book is, nil for a nil Book.
func (b *Book) Folder() *state.Folder {
	if b == nil {
		return nil
	}
	return b.folder
}

// name is the name of a course's file.
func (c Course) name() string {
	return fmt.Sprintf("%s%013d-%s-%s", prefix, c.Begun.UnixMilli(), c.Key, c.Attempt)
}

// parsed are the parts of a file's name.
type parsed struct {
	begun        time.Time
	key, attempt string
}

func parseName(name string) (parsed, bool) {
	rest, ours := strings.CutPrefix(name, prefix)
	parts := strings.Split(rest, "-")
	if !ours || len(parts) != 3 || parts[1] == "" || parts[2] == "" {
		return parsed{}, false
	}
	ms, err := strconv.ParseInt(parts[0], 10, 64)
	return parsed{time.UnixMilli(ms).UTC(), parts[1], parts[2]}, err == nil
}

// Names are the files of the courses, oldest first.
func (b *Book) Names() ([]string, error) {
	if b == nil {
		return nil, nil
	}
	names, err := b.folder.List(prefix)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(names, func(name string) bool {
		_, valid := parseName(name)
		return !valid
	}), nil
}

// Read reads one course. A file that was cut off by a crash of the machine is
// an error.
func (b *Book) Read(name string) (Course, error) {
	c, err := b.read(name)
	if err != nil || c.Finished() || c.Owner == nil || b.over == nil {
		return c, err
	}
	if why := b.over(*c.Owner, c.Begun); why != "" {
		c.Ended, c.Closed = c.Last(), why
	}
	return c, nil
}

// read reads one course as it was written.
func (b *Book) read(name string) (Course, error) {
	text, err := b.Folder().ReadFile(name)
	if err != nil {
		return Course{}, err
	}
	var c Course
	if err := json.Unmarshal(text, &c); err != nil {
		return Course{}, fmt.Errorf("the course %s: %w", name, err)
	}
	return c, nil
}

// Close closes the attempt with this name, or with this Pod: the Pod has been
// removed. What its own cleanup has ended is left as it is.
func (b *Book) Close(key, attempt, pod string, now time.Time, why string) error {
	names, err := b.Names()
	if err != nil {
		return err
	}
	for _, name := range slices.Backward(names) {
		if p, _ := parseName(name); p.key != key {
			continue
		}
		c, err := b.read(name)
		if err != nil || c.Finished() && c.Closed == "" || c.Attempt != attempt && (pod == "" || c.Pod != pod) {
			continue
		}
		c.Ended, c.Closed = stamp(now), why
		return b.write(c)
	}
	return nil
}

// settled is how many of the newest attempts Settle looks at.
const settled = 100

// Settle writes down which attempts are over by their owners.
func (b *Book) Settle() error {
	names, err := b.Names()
	if err != nil {
		return err
	}
	for _, name := range names[max(0, len(names)-settled):] {
		was, err := b.read(name)
		if err != nil || was.Finished() {
			continue
		}
		if c, err := b.Read(name); err == nil && c.Finished() {
			if err := b.write(c); err != nil {
				return err
			}
		}
	}
	return nil
}

// Courses are the newest courses, at most so many, oldest first. Those that
// cannot be read are left out.
func (b *Book) Courses(most int) ([]Course, error) {
	names, err := b.Names()
	if err != nil {
		return nil, err
	}
	var all []Course
	for _, name := range slices.Backward(names) {
		if len(all) == most {
			break
		}
		if c, err := b.Read(name); err == nil {
			all = append(all, c)
		}
	}
	slices.Reverse(all)
	return all, nil
}

// find is the newest course of an attempt, or of a job where attempt is "", that
// has not ended.
func (b *Book) find(key, attempt string) (Course, bool) {
	names, err := b.Names()
	if err != nil {
		return Course{}, false
	}
	for _, name := range slices.Backward(names) {
		p, _ := parseName(name)
		if p.key != key || attempt != "" && p.attempt != attempt {
			continue
		}
		if c, err := b.read(name); err == nil && !c.Finished() {
			return c, true
		}
	}
	return Course{}, false
}

// write writes a course. Its file is not forced to the disk: that would cost a
// stage more than the course is worth.
func (b *Book) write(c Course) error {
	text, err := json.Marshal(c)
	if err != nil {
		return fmt.Errorf("writing down a job's course: %w", err)
	}
	return b.folder.WriteLight(c.name(), append(text, '\n'))
}

// makeRoom removes the oldest courses, so that one more has room.
func (b *Book) makeRoom() {
	names, err := b.Names()
	if err != nil {
		return
	}
	for len(names) >= Most {
		if b.folder.Remove(names[0]) != nil {
			return // the folder's own bound holds
		}
		names = names[1:]
	}
}
