package tenant

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// ErrNotOurs says that a folder is in the way which no tenant made. It is
// left as it is.
var ErrNotOurs = errors.New("not made by localtenant")

// Remove deletes the tenant's state folder, and the root folder when that is
// empty then. mounts are the mount points of the machine: a folder with a
// mount below it is refused, since deleting would reach into what is mounted.
// A folder that does not exist is no error.
func (t Tenant) Remove(mounts []string) error {
	if err := t.checkRemovable(mounts); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	// os.Root keeps the deletion below the root folder, whatever symbolic
	// links there are.
	root, err := os.OpenRoot(t.root)
	if err != nil {
		return fmt.Errorf("remove state of tenant %q: %w", t.name, err)
	}
	defer root.Close()
	if err := root.RemoveAll(t.name); err != nil {
		return fmt.Errorf("remove state of tenant %q: %w", t.name, err)
	}
	// Fails while other tenants are there, which is what we want.
	_ = os.Remove(t.root)
	return nil
}

func (t Tenant) checkRemovable(mounts []string) error {
	if t.name == "" || t.root == "" {
		return errors.New("refuse to remove the state of a tenant without a name")
	}
	info, err := os.Lstat(t.Dir())
	if err != nil {
		return fmt.Errorf("state folder: %w", err)
	}
	if !info.IsDir() {
		return fmt.Errorf("refuse to remove %s: %w: it is not a folder; move it away by hand", t.Dir(), ErrNotOurs)
	}
	if err := t.checkMarked(); err != nil {
		return err
	}
	for _, mount := range mounts {
		if mount == t.Dir() || strings.HasPrefix(mount, t.Dir()+"/") {
			return fmt.Errorf("refuse to remove %s: something is still mounted at %s", t.Dir(), mount)
		}
	}
	return nil
}

// checkMarked wants the record file in the folder, or no file at all: the
// folder of an `up` that died before it wrote the record holds only folders.
func (t Tenant) checkMarked() error {
	if info, err := os.Lstat(t.Record()); err == nil && info.Mode().IsRegular() {
		return nil
	}
	return filepath.WalkDir(t.Dir(), func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if !entry.IsDir() {
			return fmt.Errorf("refuse to remove %s: %w: it holds %s but no %s; look at it and move it away by hand", t.Dir(), ErrNotOurs, path, RecordFile)
		}
		return nil
	})
}

// RemoveNode deletes the disk of one node.
func (t Tenant) RemoveNode(node string) error {
	if node == "" || node != filepath.Base(node) || node == "." || node == ".." {
		return fmt.Errorf("refuse to remove the disk of a node named %q", node)
	}
	root, err := os.OpenRoot(filepath.Join(t.Dir(), "nodes"))
	if err != nil {
		return fmt.Errorf("remove disk of node %s: %w", node, err)
	}
	defer root.Close()
	if err := root.RemoveAll(node); err != nil {
		return fmt.Errorf("remove disk of node %s: %w", node, err)
	}
	return nil
}

// List gives the names of all tenants that have a state folder under root,
// and of nothing else that may lie there.
func List(root string) ([]string, error) {
	entries, err := os.ReadDir(root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list tenants: %w", err)
	}
	var names []string
	for _, entry := range entries {
		t, err := New(root, entry.Name())
		if err != nil || !entry.IsDir() {
			continue
		}
		if info, err := os.Lstat(t.Record()); err == nil && info.Mode().IsRegular() {
			names = append(names, entry.Name())
		}
	}
	return names, nil
}
