package images

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

func newStore(t *testing.T) *store {
	t.Helper()
	return &store{dir: t.TempDir(), now: func() time.Time { return time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC) }}
}

func sampleTree(t *testing.T) *tree {
	t.Helper()
	content := newTree()
	if err := content.add(Entry{Path: "file", Mode: 0o644, Body: "content"}); err != nil {
		t.Fatal(err)
	}
	return content
}

// contents are the names in the store.
func contents(t *testing.T, s *store) []string {
	t.Helper()
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		t.Fatal(err)
	}
	names := []string{}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestStoreKeepsLayer(t *testing.T) {
	s := newStore(t)
	if _, err := s.open("key"); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("open before create = %v, want not exist", err)
	}
	made, err := s.create("key", sampleTree(t).writeTar)
	if err != nil {
		t.Fatal(err)
	}
	found, err := s.open("key")
	if err != nil {
		t.Fatal(err)
	}
	for _, layer := range []v1.Layer{made, found} {
		// Reads both forms and compares hashes and size with what is said.
		if err := validate.Layer(layer); err != nil {
			t.Error(err)
		}
	}
	if diff := cmp.Diff([]string{finished + "key"}, contents(t, s)); diff != "" {
		t.Error(diff)
	}
}

func TestStoreKeepsNothingOfAFailure(t *testing.T) {
	s := newStore(t)
	broken := errors.New("broken")
	_, err := s.create("key", func(w io.Writer) error {
		_, _ = io.WriteString(w, "half")
		return broken
	})
	if !errors.Is(err, broken) {
		t.Errorf("create = %v", err)
	}
	if left := contents(t, s); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}

func TestStoreNoticesDamage(t *testing.T) {
	for name, damage := range map[string]func(folder string) error{
		"cut":         func(f string) error { return os.Truncate(filepath.Join(f, blobName), 3) },
		"description": func(f string) error { return os.WriteFile(filepath.Join(f, descriptionName), []byte("{"), 0o644) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t)
			if _, err := s.create("key", sampleTree(t).writeTar); err != nil {
				t.Fatal(err)
			}
			if err := damage(filepath.Join(s.dir, finished+"key")); err != nil {
				t.Fatal(err)
			}
			if _, err := s.open("key"); err == nil || errors.Is(err, fs.ErrNotExist) {
				t.Errorf("open = %v, want damage", err)
			}
		})
	}
}

func TestStoreSweep(t *testing.T) {
	s := newStore(t)
	for name, age := range map[string]time.Duration{
		temporary + "crashed": 0,
		finished + "fresh":    keep - time.Hour,
		finished + "old":      keep + time.Hour,
		"apt":                 2 * keep, // not a layer
	} {
		folder := filepath.Join(s.dir, name)
		if err := os.MkdirAll(filepath.Join(folder, "inner"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(folder, s.now().Add(-age), s.now().Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.sweep(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"apt", finished + "fresh"}, contents(t, s)); diff != "" {
		t.Error(diff)
	}
}

func TestLock(t *testing.T) {
	dir := t.TempDir()
	unlock, err := lock(t.Context(), dir, func() { t.Error("waited for nobody") })
	if err != nil {
		t.Fatal(err)
	}
	second := make(chan error)
	waits := make(chan struct{})
	go func() {
		unlock, err := lock(t.Context(), dir, func() { close(waits) })
		if err == nil {
			err = unlock()
		}
		second <- err
	}()
	<-waits
	if err := unlock(); err != nil {
		t.Fatal(err)
	}
	if err := <-second; err != nil {
		t.Error(err)
	}
}
