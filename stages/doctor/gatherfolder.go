package doctor

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

func lookState(_ context.Context, p *patient) Result {
	f := folderFacts{path: p.settings.State.Dir}
	f.info, f.err = os.Stat(f.path)
	switch {
	case errors.Is(f.err, fs.ErrNotExist):
		f.writeErr = tryMake(existing(f.path))
	case f.err == nil && f.info.IsDir():
		f.writeErr = tryWrite(f.path)
		f.foreign = foreign(f.info, os.Geteuid())
		f.network = networkFileSystem(f.path)
	}
	return judgeState(f)
}

// existing is the nearest folder above path that is there.
func existing(path string) string {
	for path != "/" {
		path = filepath.Dir(path)
		if _, err := os.Stat(path); err == nil {
			break
		}
	}
	return path
}

// foreign is whose a file is, "" for root and for the owner.
func foreign(info fs.FileInfo, self int) string {
	stat, known := info.Sys().(*syscall.Stat_t)
	if !known || self == 0 || int(stat.Uid) == self {
		return ""
	}
	return strconv.Itoa(int(stat.Uid))
}

// tryMake makes a folder in another and removes it: some file systems take none,
// whatever their modes say.
func tryMake(folder string) error {
	made, err := os.MkdirTemp(folder, ".new-doctor-*")
	if err != nil {
		return err
	}
	return os.Remove(made)
}

// tryWrite writes a file into a folder and removes it: a full disk is told by
// nothing else.
func tryWrite(folder string) error {
	file, err := os.CreateTemp(folder, ".new-doctor-*")
	if err != nil {
		return err
	}
	_, err = file.WriteString("doctor\n")
	return errors.Join(err, file.Close(), os.Remove(file.Name()))
}
