package state_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/socialweb-computer/tenant-executor/stages/state"
)

func undone(i int) state.Undone {
	return state.Undone{
		Cluster: "00112233445566aa", Key: fmt.Sprintf("%016x", i), Namespace: "ci-two", JobID: int64(4000 + i),
		Since: time.Date(2026, 3, 1, 12, 0, i, 0, time.UTC),
	}
}

func list(t *testing.T, f *state.Folder) []state.Undone {
	t.Helper()
	all, err := f.ListUndone()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestUndoneCleanups(t *testing.T) {
	f, _ := open(t)
	for _, i := range []int{3, 1, 2} {
		if err := f.AddUndone(undone(i)); err != nil {
			t.Fatal(err)
		}
	}
	later := undone(1)
	later.Since = later.Since.Add(time.Hour)
	if err := f.AddUndone(later); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]state.Undone{undone(1), undone(2), undone(3)}, list(t, f)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if err := f.RemoveUndone(undone(2)); err != nil {
		t.Fatal(err)
	}
	if f.HasUndone(undone(2)) || !f.HasUndone(undone(1)) {
		t.Error("the wrong one is done")
	}
}

func TestUndoneRefusesWhatItCannotName(t *testing.T) {
	f, _ := open(t)
	for _, change := range []func(*state.Undone){
		func(u *state.Undone) { u.Cluster = "" },
		func(u *state.Undone) { u.Key = "../../etc/passwd" },
		func(u *state.Undone) { u.Namespace = "A" },
		func(u *state.Undone) { u.Namespace = strings.Repeat("a", 64) },
	} {
		u := undone(1)
		change(&u)
		if err := f.AddUndone(u); err == nil {
			t.Errorf("%+v was taken", u)
		}
	}
}

// Cut off at any byte, or filled with zeros as after a power failure, a file
// still tells what is to be done.
func TestUndoneSurvivesACrashAtAnyByte(t *testing.T) {
	f, dir := open(t)
	if err := f.AddUndone(undone(1)); err != nil {
		t.Fatal(err)
	}
	names, err := f.List("undone-")
	if err != nil || len(names) != 1 {
		t.Fatal(names, err)
	}
	path := filepath.Join(dir, names[0])
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	complete := 0
	for n := range len(whole) + 1 {
		for _, rest := range [][]byte{nil, make([]byte, len(whole)-n)} {
			if err := os.WriteFile(path, append(slices.Clone(whole[:n]), rest...), 0o600); err != nil {
				t.Fatal(err)
			}
			got := list(t, f)
			if len(got) != 1 || got[0].Key != undone(1).Key || got[0].Cluster != undone(1).Cluster || got[0].Namespace != "ci-two" {
				t.Fatalf("cut at byte %d: %+v", n, got)
			}
			switch {
			case got[0] == undone(1):
				complete++
			case got[0].JobID != 0 || !got[0].Since.IsZero():
				t.Errorf("cut at byte %d: half of it was taken: %+v", n, got[0])
			}
			if !f.HasUndone(undone(1)) {
				t.Errorf("cut at byte %d: it counts as done", n)
			}
		}
	}
	if complete == 0 {
		t.Error("not even the whole file was read")
	}
}

// Files that are none of ours are passed over.
func TestUndonePassesOverOthers(t *testing.T) {
	f, _ := open(t)
	for _, name := range []string{"undone-", "undone-1-2-ci", "undone-00112233445566aa-zz00000000000001-ci", "other"} {
		if err := f.WriteFile(name, []byte("{")); err != nil {
			t.Fatal(err)
		}
	}
	if got := list(t, f); len(got) != 0 {
		t.Errorf("got %+v", got)
	}
}

func TestUndoneIsBounded(t *testing.T) {
	f, _ := open(t)
	const many = 300
	for i := range many {
		if err := f.AddUndone(undone(i)); err != nil {
			t.Fatal(err)
		}
	}
	got := list(t, f)
	if len(got) != 256 || got[0] != undone(many-256) || got[255] != undone(many-1) {
		t.Errorf("%d are left, from %+v", len(got), got[0])
	}
}
