// Package state is the driver's small folder on the runner's host. It holds
// only what the cluster cannot: where the cluster was last, what is to be done
// later. Nothing in it is needed for a job to run; whoever reads it has to get
// along without.
package state

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/socialweb-computer/tenant-executor/stages/atomicfile"
)

// Bounds of the folder.
const (
	// MaxFileSize is how many bytes a file holds at most.
	MaxFileSize = 64 << 10
	// MaxFiles is how many files there are at most.
	MaxFiles = 1000
	// longestName leaves room for the suffix of a file that is being written.
	longestName = 200
)

const (
	folderMode = 0o700
	fileMode   = 0o600
	// abandonedAfter is when such a file is one whose writer has died.
	abandonedAfter = time.Hour
)

// ErrFull says that the folder holds as many files as it may.
var ErrFull = errors.New("the state folder is full")

// ErrNone says that there is no folder to write to.
var ErrNone = errors.New("there is no state folder")

// Folder is the folder. Many processes use it at once without a lock: a file
// changes as a whole. A nil Folder is empty and takes nothing.
type Folder struct {
	dir string
	// heir is to whom files are given that are made here, nil for nobody.
	heir *syscall.Stat_t
}

// Open makes the folder if it is not there. It has to be this user's own, and
// others must not be able to write to it: what it says decides which cluster the
// driver asks.
func Open(dir string) (*Folder, error) { return open(dir, os.Geteuid()) }

// Visit is Open for a person, who may be root where the runner is not: what root
// makes there belongs to the folder's owner.
func Visit(dir string) (*Folder, error) {
	self := os.Geteuid()
	if self != 0 {
		return open(dir, self)
	}
	f, err := open(dir, anybody)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(dir)
	if err != nil {
		return nil, fmt.Errorf("opening the state folder: %w", err)
	}
	if stat, known := info.Sys().(*syscall.Stat_t); known && stat.Uid != 0 {
		f.heir = stat
	}
	return f, nil
}

// anybody stands for every user.
const anybody = -1

// open opens a folder that belongs to a user.
func open(dir string, user int) (*Folder, error) {
	if err := os.MkdirAll(dir, folderMode); err != nil {
		return nil, fmt.Errorf("making the state folder: %w", err)
	}
	info, err := os.Stat(dir)
	if err != nil {
		return nil, fmt.Errorf("opening the state folder: %w", err)
	}
	if mode := info.Mode().Perm(); mode&0o022 != 0 {
		return nil, fmt.Errorf("the state folder %s has mode %04o, so that others can write to it: chmod 700 it, or name a folder in it by state.dir, which the driver makes for itself", dir, mode)
	}
	if stat, known := info.Sys().(*syscall.Stat_t); known && user != anybody && int(stat.Uid) != user {
		return nil, fmt.Errorf("the state folder %s belongs to user %d, and this is user %d: give it to the runner's user, or name another by state.dir", dir, stat.Uid, user)
	}
	return &Folder{dir: dir}, nil
}

// WriteFile replaces a file as a whole: whoever reads it, also after a crash,
// finds the old data or the new. Data that is there already is not written
// again.
func (f *Folder) WriteFile(name string, data []byte) error {
	if f == nil {
		return ErrNone
	}
	if err := f.check(name, data); err != nil {
		return err
	}
	if old, err := f.ReadFile(name); err == nil && bytes.Equal(old, data) {
		return nil
	}
	if err := f.place(name, data, atomicfile.File{Safe: true}); err != nil {
		return fmt.Errorf("writing %s: %w", filepath.Join(f.dir, name), err)
	}
	return nil
}

// WriteLight is WriteFile for what may be lost when the machine crashes, and
// must cost little: nothing is forced to the disk. Other processes, and those
// after a crash of this one, find the old data or the new; after a crash of the
// machine the file may be empty or cut off.
func (f *Folder) WriteLight(name string, data []byte) error {
	if f == nil {
		return ErrNone
	}
	if err := f.check(name, data); err != nil {
		return err
	}
	if err := f.place(name, data, atomicfile.File{}); err != nil {
		return fmt.Errorf("writing %s: %w", filepath.Join(f.dir, name), err)
	}
	return nil
}

// Create writes a file that is not there yet. Of several that create the same
// file one succeeds; the others' error is fs.ErrExist.
func (f *Folder) Create(name string, data []byte) error {
	if f == nil {
		return ErrNone
	}
	if err := f.check(name, data); err != nil {
		return err
	}
	err := f.place(name, data, atomicfile.File{Safe: true, New: true})
	if err != nil {
		return fmt.Errorf("making %s: %w", filepath.Join(f.dir, name), err)
	}
	return nil
}

func (f *Folder) check(name string, data []byte) error {
	if !validName(name) {
		return fmt.Errorf("%q is no name of a state file: letters, digits, -, _ and . are allowed, a dot not as the first", name)
	}
	if len(data) > MaxFileSize {
		return fmt.Errorf("the state file %s would have %d bytes, more than %d", name, len(data), MaxFileSize)
	}
	return nil
}

func validName(name string) bool {
	if name == "" || name[0] == '.' || len(name) > longestName {
		return false
	}
	return !strings.ContainsFunc(name, func(r rune) bool {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		return !letter && !strings.ContainsRune("-_.", r)
	})
}

// place writes a file in one of the ways that there are.
func (f *Folder) place(name string, data []byte, way atomicfile.File) error {
	way.Path, way.Mode = filepath.Join(f.dir, name), fileMode
	way.Made = func(made *os.File) error {
		if f.heir != nil {
			if err := made.Chown(int(f.heir.Uid), int(f.heir.Gid)); err != nil {
				return err
			}
		}
		return f.makeRoom(name, made)
	}
	return way.Write(data)
}

// makeRoom removes what dead writers have left, and refuses one file too many.
// What "old" means is told by the file that was made just now: both times are
// the file system's.
func (f *Folder) makeRoom(name string, made *os.File) error {
	info, err := made.Stat()
	if err != nil {
		return err
	}
	entries, err := os.ReadDir(f.dir)
	if err != nil {
		return err
	}
	others := 0
	for _, e := range entries {
		switch {
		case strings.HasPrefix(e.Name(), atomicfile.Unfinished):
			if old, err := e.Info(); err == nil && info.ModTime().Sub(old.ModTime()) > abandonedAfter {
				_ = os.Remove(filepath.Join(f.dir, e.Name()))
			}
		case validName(e.Name()) && e.Name() != name:
			others++
		}
	}
	if others >= MaxFiles {
		return ErrFull
	}
	return nil
}

// ReadFile gives a file's data. The error is fs.ErrNotExist where there is no
// such file.
func (f *Folder) ReadFile(name string) ([]byte, error) {
	if f == nil || !validName(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	file, err := os.Open(filepath.Join(f.dir, name))
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // it was only read
	data, err := io.ReadAll(io.LimitReader(file, MaxFileSize+1))
	if err == nil && len(data) > MaxFileSize {
		err = fmt.Errorf("%s has more than %d bytes: the driver has not written it", file.Name(), MaxFileSize)
	}
	if err != nil {
		return nil, err
	}
	return data, nil
}

// List gives the names of the files whose names begin with prefix, in order.
func (f *Folder) List(prefix string) ([]string, error) {
	if f == nil {
		return nil, nil
	}
	entries, err := os.ReadDir(f.dir)
	if err != nil {
		return nil, fmt.Errorf("reading the state folder: %w", err)
	}
	var names []string
	for _, e := range entries {
		if validName(e.Name()) && strings.HasPrefix(e.Name(), prefix) && e.Type().IsRegular() {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return names, nil
}

// Remove removes a file; one that is not there is removed already.
func (f *Folder) Remove(name string) error {
	if f == nil || !validName(name) {
		return nil
	}
	if err := os.Remove(filepath.Join(f.dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing a state file: %w", err)
	}
	return nil
}
