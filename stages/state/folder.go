// Package state is the driver's folder on its host. It holds the little that
// must outlive a stage and that the cluster cannot hold. Every stage of every
// job of every runner on the host may use it at once: there is no lock, each
// file is replaced as a whole or not at all.
package state

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Bounds of the folder. It cannot grow beyond their product.
const (
	// MaxFile is the largest file, in bytes.
	MaxFile = 64 << 10
	// MaxFiles is the largest number of files.
	MaxFiles = 1024
)

// Modes of the folder. Files are made with mode 0600 (os.CreateTemp).
const (
	folderMode  = 0o700
	othersWrite = 0o022
)

// Errors of the folder.
var (
	// ErrName is the error for a name that no file here may have.
	ErrName = errors.New("not a name for a state file")
	// ErrTooLarge is the error for a file above MaxFile.
	ErrTooLarge = errors.New("too large for a state file")
	// ErrOpen is the error for a folder in which others could put files.
	ErrOpen = errors.New("other users can write to it; make it the runner's own (chmod 700)")
	// ErrFull is the error where the folder holds MaxFiles already.
	ErrFull = errors.New("the state folder is full")
)

// Folder is the state folder. Make it with Open.
type Folder struct{ dir string }

// Open makes the folder if it is not there yet, open to its owner alone. It
// refuses a folder that other users can write to.
func Open(dir string) (*Folder, error) {
	if err := os.MkdirAll(dir, folderMode); err != nil {
		return nil, fmt.Errorf("making the state folder: %w", err)
	}
	info, err := os.Stat(dir)
	if err != nil {
		return nil, fmt.Errorf("looking at the state folder: %w", err)
	}
	switch {
	case !info.IsDir():
		return nil, fmt.Errorf("the state folder %s: %w", dir, syscall.ENOTDIR)
	case info.Mode().Perm()&othersWrite != 0:
		return nil, fmt.Errorf("the state folder %s has mode %04o: %w", dir, info.Mode().Perm(), ErrOpen)
	}
	return &Folder{dir: dir}, nil
}

// Path is the folder's place.
func (f *Folder) Path() string { return f.dir }

// path checks a name. A name is a plain file name, and does not begin with a
// dot: files that are being written do.
func (f *Folder) path(name string) (string, error) {
	if name == "" || strings.HasPrefix(name, ".") || strings.ContainsAny(name, "/\x00") || len(name) > 200 {
		return "", fmt.Errorf("%q: %w", name, ErrName)
	}
	return filepath.Join(f.dir, name), nil
}

// WriteFile writes a file or replaces it. Readers see the old content or the
// new one, also when the machine stops in the middle.
func (f *Folder) WriteFile(name string, data []byte) error {
	return f.write(name, data, os.Rename)
}

// Create writes a file that is not there yet. Of several that create the same
// file one succeeds; the others' error is fs.ErrExist.
func (f *Folder) Create(name string, data []byte) error {
	return f.write(name, data, func(temporary, path string) error {
		if err := os.Link(temporary, path); err != nil {
			return err
		}
		return os.Remove(temporary)
	})
}

// write writes a temporary file and puts it in place.
func (f *Folder) write(name string, data []byte, place func(temporary, path string) error) error {
	path, err := f.path(name)
	if err != nil {
		return err
	}
	if len(data) > MaxFile {
		return fmt.Errorf("%s: %d bytes: %w", path, len(data), ErrTooLarge)
	}
	if err := f.room(path); err != nil {
		return err
	}
	temporary, err := f.temporary(data)
	if err == nil {
		err = place(temporary, path)
	}
	if err == nil {
		err = f.sync()
	}
	if err != nil {
		if temporary != "" {
			_ = os.Remove(temporary) // the first error tells more
		}
		return fmt.Errorf("writing state file %s: %w", path, err)
	}
	return nil
}

// temporary writes data to a file under a name of its own, and to the disk. It
// gives the name also on an error, once there is a file.
func (f *Folder) temporary(data []byte) (string, error) {
	file, err := os.CreateTemp(f.dir, temporaryPrefix)
	if err != nil {
		return "", err
	}
	_, err = file.Write(data)
	err = errors.Join(err, file.Sync(), file.Close())
	return file.Name(), err
}

// sync has the disk take in the change of names.
func (f *Folder) sync() error {
	dir, err := os.Open(f.dir)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// ReadFile reads a file. The error is fs.ErrNotExist where there is none.
func (f *Folder) ReadFile(name string) ([]byte, error) {
	path, err := f.path(name)
	if err != nil {
		return nil, err
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("reading the state: %w", err)
	}
	defer file.Close() //nolint:errcheck // nothing was written
	data, err := io.ReadAll(io.LimitReader(file, MaxFile+1))
	if err != nil {
		return nil, fmt.Errorf("reading state file %s: %w", path, err)
	}
	if len(data) > MaxFile {
		return nil, fmt.Errorf("%s: %w", path, ErrTooLarge)
	}
	return data, nil
}

// List gives the names of the files that begin with prefix, sorted.
func (f *Folder) List(prefix string) ([]string, error) {
	entries, err := os.ReadDir(f.dir)
	if err != nil {
		return nil, fmt.Errorf("listing the state folder: %w", err)
	}
	var names []string
	for _, entry := range entries {
		if name := entry.Name(); !strings.HasPrefix(name, ".") && strings.HasPrefix(name, prefix) && entry.Type().IsRegular() {
			names = append(names, name)
		}
	}
	return names, nil
}

// Remove removes a file. A file that is not there counts as removed.
func (f *Folder) Remove(name string) error {
	path, err := f.path(name)
	if err != nil {
		return err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing a state file: %w", err)
	}
	return nil
}

// Temporary files. A process that is killed leaves its own behind; after an
// hour nobody can be writing it any more.
const (
	temporaryPrefix = ".tmp-"
	temporaryLife   = time.Hour
)

// room refuses a further file where there are too many, and removes temporary
// files that were left behind.
func (f *Folder) room(path string) error {
	entries, err := os.ReadDir(f.dir)
	if err != nil {
		return fmt.Errorf("listing the state folder: %w", err)
	}
	files := 0
	for _, entry := range entries {
		switch {
		case strings.HasPrefix(entry.Name(), temporaryPrefix):
			f.removeStale(entry)
		default:
			files++
		}
	}
	if files < MaxFiles {
		return nil
	}
	if _, err := os.Lstat(path); err == nil {
		return nil // it takes the place of one
	}
	return fmt.Errorf("%s holds %d files: %w", f.dir, files, ErrFull)
}

// removeStale goes by the file's own time: the folder's only clock is that of
// its file system. What cannot be removed is another's, or gone.
func (f *Folder) removeStale(entry fs.DirEntry) {
	info, err := entry.Info()
	if err == nil && time.Since(info.ModTime()) > temporaryLife {
		_ = os.Remove(filepath.Join(f.dir, entry.Name()))
	}
}
