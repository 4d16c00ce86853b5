// Package atomicfile writes files as a whole.
package atomicfile

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Unfinished begins the names of files that are being written, in the folder of
// those that they become.
const Unfinished = ".new-"

// File is a file to be written. Whoever reads it finds the old content or the
// new; when it cannot be written, the old file stays and nothing is left beside
// it.
type File struct {
	Path string
	// Mode is the mode, of which the umask takes its part.
	Mode fs.FileMode
	// New is for a file that is not there yet. Of several that write it one
	// succeeds; the others' error is fs.ErrExist.
	New bool
	// Safe has the content outlast a crash of the machine.
	Safe bool
	// Made, unless it is nil, is called with the file before it has its name.
	Made func(*os.File) error
}

// Pattern is what Write calls the unfinished files of a path, for
// filepath.Glob.
func Pattern(path string) string {
	return filepath.Join(filepath.Dir(path), Unfinished+filepath.Base(path)+"-*")
}

// Write writes the file.
func (f File) Write(data []byte) (err error) {
	made, err := os.OpenFile(filepath.Join(filepath.Dir(f.Path), Unfinished+filepath.Base(f.Path)+"-"+rand.Text()), os.O_WRONLY|os.O_CREATE|os.O_EXCL, f.Mode)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil || f.New {
			_ = os.Remove(made.Name())
		}
	}()
	if f.Made != nil {
		err = f.Made(made)
	}
	if err == nil {
		_, err = made.Write(data)
	}
	if err == nil && f.Safe {
		err = made.Sync()
	}
	if err = errors.Join(err, made.Close()); err != nil {
		return err
	}
	if f.New {
		err = os.Link(made.Name(), f.Path)
	} else {
		err = os.Rename(made.Name(), f.Path)
	}
	if err != nil || !f.Safe {
		return err
	}
	return syncFolder(filepath.Dir(f.Path))
}

// syncFolder makes a name last.
func syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}
