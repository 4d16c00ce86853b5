package state_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/socialweb-computer/tenant-executor/stages/state"
)

func open(t *testing.T) *state.Folder {
	t.Helper()
	f, err := state.Open(filepath.Join(t.TempDir(), "state"))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestFilesComeAndGo(t *testing.T) {
	f := open(t)
	if _, err := f.ReadFile("a"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("reading a file that is not there: %v", err)
	}
	for _, text := range []string{"one", "two, longer", ""} {
		if err := f.WriteFile("a", []byte(text)); err != nil {
			t.Fatal(err)
		}
		if got, err := f.ReadFile("a"); err != nil || string(got) != text {
			t.Errorf("read %q, %v; want %q", got, err, text)
		}
	}
	if err := f.Create("a", []byte("late")); !errors.Is(err, fs.ErrExist) {
		t.Errorf("creating a file that is there: %v", err)
	}
	if err := f.Create("b", []byte("first")); err != nil {
		t.Error(err)
	}
	names, err := f.List("")
	if diff := cmp.Diff([]string{"a", "b"}, names); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	for range 2 {
		if err := f.Remove("a"); err != nil {
			t.Error(err)
		}
	}
	if names, err := f.List("a"); len(names) != 0 || err != nil {
		t.Errorf("left: %v, %v", names, err)
	}
	entries, err := os.ReadDir(f.Path())
	if err != nil || len(entries) != 1 {
		t.Errorf("the folder holds %v, %v", entries, err)
	}
}

func TestNobodyElseReadsTheState(t *testing.T) {
	f := open(t)
	if err := f.WriteFile("a", nil); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]fs.FileMode{f.Path(): 0o700, filepath.Join(f.Path(), "a"): 0o600} {
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%s has mode %v (%v), want %v", path, info.Mode().Perm(), err, want)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	shared := filepath.Join(dir, "shared")
	if err := errors.Join(os.WriteFile(file, nil, 0o600), os.Mkdir(shared, 0o700), os.Chmod(shared, 0o1777)); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]error{file: nil, filepath.Join(file, "below"): nil, shared: state.ErrOpen} {
		_, err := state.Open(path)
		if err == nil || want != nil && !errors.Is(err, want) || !strings.Contains(err.Error(), file) && !strings.Contains(err.Error(), shared) {
			t.Errorf("opening %s: %v", path, err)
		}
	}
	if info, err := os.Stat(shared); err != nil || info.Mode().Perm() != 0o777 {
		t.Errorf("a folder of others was changed: %v, %v", info.Mode(), err)
	}
}

func TestNamesAreFileNames(t *testing.T) {
	f := open(t)
	for _, name := range []string{"", ".", "..", ".hidden", "a/b", "../a", "a\x00b", strings.Repeat("a", 300)} {
		_, read := f.ReadFile(name)
		for _, err := range []error{f.WriteFile(name, nil), f.Create(name, nil), f.Remove(name), read} {
			if !errors.Is(err, state.ErrName) {
				t.Errorf("name %q: %v", name, err)
			}
		}
	}
}

func TestTheFolderIsBounded(t *testing.T) {
	f := open(t)
	if err := f.WriteFile("big", make([]byte, state.MaxFile+1)); !errors.Is(err, state.ErrTooLarge) {
		t.Errorf("a file that is too large: %v", err)
	}
	for i := range state.MaxFiles {
		if err := os.WriteFile(filepath.Join(f.Path(), fmt.Sprint("f", i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.WriteFile("more", nil); !errors.Is(err, state.ErrFull) {
		t.Errorf("one file too many: %v", err)
	}
	if err := f.WriteFile("f7", []byte("new")); err != nil {
		t.Errorf("a file in place of another: %v", err)
	}
}

// Others may put anything into a file: reading it has a bound too.
func TestReadingIsBounded(t *testing.T) {
	f := open(t)
	if err := os.WriteFile(filepath.Join(f.Path(), "a"), bytes.Repeat([]byte("x"), state.MaxFile+1), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := f.ReadFile("a"); !errors.Is(err, state.ErrTooLarge) {
		t.Error(err)
	}
}

// What a killed process was writing is no file, and goes after a while. What
// somebody may still be writing stays.
func TestWhatKilledWritersLeave(t *testing.T) {
	f := open(t)
	fresh, stale := filepath.Join(f.Path(), ".tmp-1"), filepath.Join(f.Path(), ".tmp-2")
	old := time.Now().Add(-2 * time.Hour)
	if err := errors.Join(os.WriteFile(fresh, nil, 0o600), os.WriteFile(stale, nil, 0o600), os.Chtimes(stale, old, old)); err != nil {
		t.Fatal(err)
	}
	if err := f.WriteFile("a", nil); err != nil {
		t.Fatal(err)
	}
	names, err := f.List("")
	if diff := cmp.Diff([]string{"a"}, names); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if _, err := os.Stat(fresh); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(stale); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the old one is still there: %v", err)
	}
}
