// Package cgroup makes and removes control groups in every hierarchy of the
// machine, whether that is one of version 2, several of version 1, or both.
package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/socialweb-computer/tenant-executor/examples/localtenant/proc"
)

// Hierarchy is one mounted tree of control groups.
type Hierarchy struct {
	// Mount is the folder that it is mounted at.
	Mount string
	// Unified says that it is of version 2.
	Unified bool
	// Cpuset says that it is of version 1 and has the cpuset controller, whose
	// groups take no process before their processors and memory are set.
	Cpuset bool
}

// Tree is all the hierarchies of a machine.
type Tree []Hierarchy

// Find gives the hierarchies among the mounts.
func Find(mounts []proc.Mount) (Tree, error) {
	var tree Tree
	seen := map[string]bool{}
	for _, mount := range mounts {
		if mount.Type != "cgroup" && mount.Type != "cgroup2" || seen[mount.Point] {
			continue
		}
		seen[mount.Point] = true
		tree = append(tree, Hierarchy{
			Mount:   mount.Point,
			Unified: mount.Type == "cgroup2",
			Cpuset:  mount.Type == "cgroup" && slices.Contains(strings.Split(mount.Options, ","), "cpuset"),
		})
	}
	if len(tree) == 0 {
		return nil, errors.New("no control groups are mounted: a Kubernetes node cannot run without them; mount cgroup2 at /sys/fs/cgroup")
	}
	return tree, nil
}

// Create makes the group and its parents in every hierarchy. One that is
// there already is kept.
func (t Tree) Create(path string) error {
	for _, h := range t {
		if err := h.create(path); err != nil {
			return fmt.Errorf("make control group %s: %w", path, err)
		}
	}
	return nil
}

func (h Hierarchy) create(path string) error {
	dir := h.Mount
	for _, part := range strings.Split(strings.Trim(path, "/"), "/") {
		if h.Unified {
			if err := delegate(dir); err != nil {
				return err
			}
		}
		parent := dir
		dir = filepath.Join(dir, part)
		if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		if h.Cpuset {
			if err := inherit(parent, dir); err != nil {
				return err
			}
		}
	}
	return nil
}

// delegate lets the children of a group of version 2 use all its controllers.
func delegate(dir string) error {
	text, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
	if err != nil {
		return err
	}
	for _, controller := range strings.Fields(string(text)) {
		// One by one, and refusals pass: a controller that cannot be delegated
		// (such as cpu with realtime tasks) must not keep the others back. The
		// kubelet says at its start which ones it misses.
		_ = os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+"+controller), 0)
	}
	return nil
}

// inherit fills the processors and memory nodes of a new group of version 1
// with those of its parent: they start empty (cpuset(7)).
func inherit(parent, dir string) error {
	for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
		own, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			return err
		}
		if strings.TrimSpace(string(own)) != "" {
			continue
		}
		value, err := os.ReadFile(filepath.Join(parent, file))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, file), value, 0); err != nil {
			return err
		}
	}
	return nil
}

// tracking is the one hierarchy in which processes are put into their group.
// One is enough to find them again and to kill them; in the others they stay
// where the machine has them.
func (t Tree) tracking() Hierarchy {
	for _, h := range t {
		if h.Unified {
			return h
		}
	}
	return t[0]
}

// Join puts the calling process into the group. Its children follow.
func (t Tree) Join(path string) error {
	file := filepath.Join(t.tracking().Mount, path, "cgroup.procs")
	if err := os.WriteFile(file, []byte("0"), 0); err != nil {
		return fmt.Errorf("join control group %s: %w", path, err)
	}
	return nil
}

// List gives the group and those below it in every hierarchy, deepest first,
// as folders.
func (t Tree) List(path string) ([]string, error) {
	var all []string
	for _, h := range t {
		var dirs []string
		err := filepath.WalkDir(filepath.Join(h.Mount, path), func(dir string, entry fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err == nil && entry.IsDir() {
				dirs = append(dirs, dir)
			}
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("list control groups: %w", err)
		}
		slices.Reverse(dirs)
		all = append(all, dirs...)
	}
	return all, nil
}

// Remove removes the group and those below it. The kernel needs a moment
// after the last process of a group has ended, so it is tried until patience
// is over.
func (t Tree) Remove(path string, patience time.Duration) error {
	deadline := time.Now().Add(patience)
	for {
		dirs, err := t.List(path)
		if err != nil {
			return err
		}
		err = nil
		for _, dir := range dirs {
			// Never recursive: rmdir takes a group, the files in it are the
			// kernel's.
			if e := os.Remove(dir); e != nil && !errors.Is(e, fs.ErrNotExist) {
				err = errors.Join(err, e)
			}
		}
		if err == nil {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("remove control group %s: %w", path, err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// RemoveEmpty removes the group if nothing is below it, and keeps it
// otherwise.
func (t Tree) RemoveEmpty(path string) {
	for _, h := range t {
		_ = os.Remove(filepath.Join(h.Mount, path))
	}
}
