package atomicfile_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/socialweb-computer/tenant-executor/stages/atomicfile"
)

func TestWrite(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.txt")
	for i, f := range []atomicfile.File{
		{Path: path, Mode: 0o600, New: true},
		{Path: path, Mode: 0o600},
		{Path: path, Mode: 0o640, Safe: true},
	} {
		text := string(rune('a' + i))
		if err := f.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		got, rerr := os.ReadFile(path)
		if errors.Join(err, rerr) != nil || string(got) != text || info.Mode().Perm() != f.Mode {
			t.Errorf("%+v: %q, %v, %v %v", f, got, info.Mode(), err, rerr)
		}
	}
	alone(t, path)
}

// What cannot be written leaves the old file, and nothing beside it.
func TestWriteFails(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.txt")
	if err := (atomicfile.File{Path: path, Mode: 0o600}).Write([]byte("old")); err != nil {
		t.Fatal(err)
	}
	full := errors.New("full")
	for want, f := range map[error]atomicfile.File{
		fs.ErrExist: {Path: path, Mode: 0o600, New: true},
		full:        {Path: path, Mode: 0o600, Made: func(*os.File) error { return full }},
		// A closed file is one that cannot be written to.
		os.ErrClosed: {Path: path, Mode: 0o600, Made: (*os.File).Close},
	} {
		if err := f.Write([]byte("new")); !errors.Is(err, want) {
			t.Errorf("got %v, want %v", err, want)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != "old" {
			t.Errorf("after %v: %q, %v", want, got, err)
		}
	}
	alone(t, path)
	if err := (atomicfile.File{Path: "/nowhere/a"}).Write(nil); !errors.Is(err, syscall.ENOENT) {
		t.Errorf("got %v", err)
	}
}

// alone looks whether a file is alone in its folder.
func alone(t *testing.T, path string) {
	t.Helper()
	all, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(all) != 1 {
		t.Errorf("left: %v, %v", all, err)
	}
}
