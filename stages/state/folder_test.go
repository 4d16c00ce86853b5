package state_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/socialweb-computer/tenant-executor/stages/state"
)

func open(t *testing.T) (*state.Folder, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "lib", "state")
	f, err := state.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return f, dir
}

func TestFolder(t *testing.T) {
	t.Parallel()
	f, dir := open(t)
	for _, text := range []string{"one", "two", "two", ""} {
		if err := f.WriteFile("a", []byte(text)); err != nil {
			t.Fatal(err)
		}
		if got, err := f.ReadFile("a"); err != nil || string(got) != text {
			t.Errorf("read %q, %v; want %q", got, err, text)
		}
	}
	if err := f.Create("a", nil); !errors.Is(err, fs.ErrExist) {
		t.Errorf("creating a file that is there: %v", err)
	}
	if err := f.Create("undone-7", nil); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		prefix string
		want   []string
	}{{"", []string{"a", "undone-7"}}, {"undone-", []string{"undone-7"}}, {"z", nil}} {
		if got, err := f.List(test.prefix); err != nil || !cmp.Equal(got, test.want) {
			t.Errorf("List(%q) = %q, %v; want %q", test.prefix, got, err, test.want)
		}
	}
	for range 2 {
		if err := f.Remove("a"); err != nil {
			t.Error(err)
		}
	}
	if _, err := f.ReadFile("a"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the removed file: %v", err)
	}
	for path, want := range map[string]fs.FileMode{dir: 0o700, filepath.Join(dir, "undone-7"): 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: mode %v, %v; want %v", path, info.Mode().Perm(), err, want)
		}
	}
}

// A nil Folder is what a driver has whose folder cannot be made.
func TestNoFolder(t *testing.T) {
	t.Parallel()
	var f *state.Folder
	if _, err := f.ReadFile("a"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("ReadFile: %v", err)
	}
	if err := f.WriteFile("a", nil); !errors.Is(err, state.ErrNone) {
		t.Errorf("WriteFile: %v", err)
	}
	if err := f.Create("a", nil); !errors.Is(err, state.ErrNone) {
		t.Errorf("Create: %v", err)
	}
	if names, err := f.List(""); names != nil || err != nil {
		t.Errorf("List: %q, %v", names, err)
	}
	if err := f.Remove("a"); err != nil {
		t.Errorf("Remove: %v", err)
	}
}

func TestFolderRefuses(t *testing.T) {
	t.Parallel()
	f, dir := open(t)
	for _, name := range []string{"", ".hidden", "../up", "a/b", "a b", "ä", strings.Repeat("x", 201)} {
		if err := f.WriteFile(name, nil); err == nil {
			t.Errorf("the name %q is accepted", name)
		}
		if err := f.Create(name, nil); err == nil {
			t.Errorf("the name %q is created", name)
		}
		if _, err := f.ReadFile(name); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the name %q is read: %v", name, err)
		}
	}
	if err := f.WriteFile("big", make([]byte, state.MaxFileSize+1)); err == nil {
		t.Error("a file that is too big is accepted")
	}
	if err := os.WriteFile(filepath.Join(dir, "big"), make([]byte, state.MaxFileSize+1), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := f.ReadFile("big"); err == nil {
		t.Error("a file that is too big is read")
	}
	if err := os.Chmod(dir, 0o770); err != nil { //nolint:gosec // the test is about it
		t.Fatal(err)
	}
	if _, err := state.Open(dir); err == nil || !strings.Contains(err.Error(), "chmod 700") {
		t.Errorf("a folder that others can write to: %v", err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := state.Open(file); err == nil {
		t.Error("a file is taken for a folder")
	}
}

// A folder of somebody else is not used by stages, whatever its mode. A person
// who is root may, and what root makes there is the owner's.
func TestFolderOfAnother(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can give a folder away")
	}
	const other = 1234
	for _, mode := range []fs.FileMode{0o700, 0o755} {
		dir := t.TempDir()
		if err := errors.Join(os.Chmod(dir, mode), os.Chown(dir, other, other)); err != nil {
			t.Fatal(err)
		}
		if _, err := state.Open(dir); err == nil || !strings.Contains(err.Error(), "belongs to user 1234, and this is user 0") {
			t.Errorf("mode %04o: %v", mode, err)
		}
		f, err := state.Visit(dir)
		if err == nil {
			err = f.WriteFile("a", []byte("b"))
		}
		if err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(filepath.Join(dir, "a"))
		if err != nil || info.Sys().(*syscall.Stat_t).Uid != other {
			t.Errorf("mode %04o: the file is %+v, %v", mode, info, err)
		}
	}
	for _, mode := range []fs.FileMode{0o770, 0o777, 0o777 | fs.ModeSticky, 0o777 | fs.ModeSetgid} {
		dir := t.TempDir()
		if err := os.Chmod(dir, mode); err != nil {
			t.Fatal(err)
		}
		for _, open := range []func(string) (*state.Folder, error){state.Open, state.Visit} {
			if _, err := open(dir); err == nil || !strings.Contains(err.Error(), "others can write to it") {
				t.Errorf("mode %v: %v", mode, err)
			}
		}
		// As in a volume of Kubernetes that has an fsGroup.
		if _, err := state.Open(filepath.Join(dir, "own")); err != nil {
			t.Errorf("a folder of its own in one of mode %v: %v", mode, err)
		}
	}
}

func TestFolderIsBounded(t *testing.T) {
	t.Parallel()
	f, dir := open(t)
	for i := range state.MaxFiles {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint("f", i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.WriteFile("more", nil); !errors.Is(err, state.ErrFull) {
		t.Errorf("one file too many: %v", err)
	}
	if err := f.WriteFile("f0", []byte("new")); err != nil {
		t.Errorf("a file that is there: %v", err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != state.MaxFiles {
		t.Errorf("%d files, %v", len(entries), err)
	}
}

// What a writer leaves that dies in the middle is no file, and goes in time.
func TestUnfinishedFiles(t *testing.T) {
	t.Parallel()
	f, dir := open(t)
	fresh, old := filepath.Join(dir, ".new-a-1"), filepath.Join(dir, ".new-a-2")
	for _, path := range []string{fresh, old} {
		if err := os.WriteFile(path, []byte("hal"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	past := time.Now().Add(-2 * time.Hour)
	if err := os.Chtimes(old, past, past); err != nil {
		t.Fatal(err)
	}
	if err := f.WriteFile("a", []byte("whole")); err != nil {
		t.Fatal(err)
	}
	if names, err := f.List(""); err != nil || !cmp.Equal(names, []string{"a"}) {
		t.Errorf("List: %q, %v", names, err)
	}
	if _, err := os.Stat(fresh); err != nil {
		t.Errorf("the file of a writer at work is gone: %v", err)
	}
	if _, err := os.Stat(old); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the file of a dead writer is still there: %v", err)
	}
}
