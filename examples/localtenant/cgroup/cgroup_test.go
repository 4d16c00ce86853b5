package cgroup

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/socialweb-computer/tenant-executor/examples/localtenant/proc"
)

func TestFind(t *testing.T) {
	tree, err := Find([]proc.Mount{
		{Point: "/", Type: "ext4", Options: "rw"},
		{Point: "/sys/fs/cgroup/cpu", Type: "cgroup", Options: "rw,cpu"},
		{Point: "/sys/fs/cgroup/cpuset", Type: "cgroup", Options: "rw,cpuset"},
		{Point: "/sys/fs/cgroup/unified", Type: "cgroup2", Options: "rw"},
		{Point: "/sys/fs/cgroup/cpu", Type: "cgroup", Options: "rw,cpu"},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := Tree{
		{Mount: "/sys/fs/cgroup/cpu"},
		{Mount: "/sys/fs/cgroup/cpuset", Cpuset: true},
		{Mount: "/sys/fs/cgroup/unified", Unified: true},
	}
	if diff := cmp.Diff(want, tree); diff != "" {
		t.Errorf("hierarchies (-want +got):\n%s", diff)
	}
	if got := tree.tracking().Mount; got != "/sys/fs/cgroup/unified" {
		t.Errorf("processes are put into %s", got)
	}
	if _, err := Find([]proc.Mount{{Point: "/", Type: "ext4"}}); err == nil {
		t.Error("a machine without control groups was taken")
	}
}

// fake is a tree of plain folders: what the kernel would put into new groups
// is missing, which is enough for a hierarchy of version 1 without cpuset.
func fake(t *testing.T) Tree {
	t.Helper()
	return Tree{{Mount: t.TempDir()}, {Mount: t.TempDir()}}
}

func TestCreateAndRemove(t *testing.T) {
	tree := fake(t)
	for _, path := range []string{"/localtenant/a/node/system", "/localtenant/a/control", "/localtenant/b", "/localtenant/a/control"} {
		if err := tree.Create(path); err != nil {
			t.Fatal(err)
		}
	}
	groups, err := tree.List("/localtenant/a")
	if err != nil {
		t.Fatal(err)
	}
	if len(groups) != 8 || filepath.Base(groups[3]) != "a" {
		t.Errorf("groups are %v; want four in each hierarchy, the deepest first", groups)
	}
	if err := tree.Remove("/localtenant/a", time.Second); err != nil {
		t.Fatal(err)
	}
	tree.RemoveEmpty("/localtenant")
	for _, h := range tree {
		if _, err := os.Stat(filepath.Join(h.Mount, "localtenant/a")); !os.IsNotExist(err) {
			t.Error("the group is still there")
		}
		if _, err := os.Stat(filepath.Join(h.Mount, "localtenant/b")); err != nil {
			t.Error("another tenant's group is gone")
		}
	}
	if err := tree.Remove("/localtenant/a", time.Second); err != nil {
		t.Errorf("removing what is not there: %v", err)
	}
}

func TestRemoveNeverDeletesFiles(t *testing.T) {
	tree := fake(t)
	if err := tree.Create("/localtenant/a"); err != nil {
		t.Fatal(err)
	}
	// A folder that is no control group, as a mistaken path would lead to.
	file := filepath.Join(tree[0].Mount, "localtenant/a/file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := tree.Remove("/localtenant/a", 0); err == nil {
		t.Error("a folder with a file in it was removed")
	}
	if _, err := os.Stat(file); err != nil {
		t.Error("the file is gone")
	}
}

func TestCpusetInherits(t *testing.T) {
	parent, child := t.TempDir(), t.TempDir()
	for path, text := range map[string]string{
		filepath.Join(parent, "cpuset.cpus"): "0-1\n", filepath.Join(parent, "cpuset.mems"): "0\n",
		filepath.Join(child, "cpuset.cpus"): "1\n", filepath.Join(child, "cpuset.mems"): "\n",
	} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := inherit(parent, child); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"cpuset.cpus": "1\n", "cpuset.mems": "0\n"} {
		if text, err := os.ReadFile(filepath.Join(child, name)); err != nil || string(text) != want {
			t.Errorf("%s is %q, %v; want %q", name, text, err, want)
		}
	}
}

// TestDelegate: a group of version 2 hands its controllers to its children one
// by one.
func TestDelegate(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"cgroup.controllers": "cpuset cpu memory\n", "cgroup.subtree_control": ""} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := delegate(dir); err != nil {
		t.Fatal(err)
	}
	// The kernel's file takes each write by itself; a plain file shows the last.
	if text, err := os.ReadFile(filepath.Join(dir, "cgroup.subtree_control")); err != nil || string(text) != "+memory" {
		t.Errorf("delegated %q, %v", text, err)
	}
	if err := delegate(t.TempDir()); err == nil {
		t.Error("a folder that is no group was taken for one")
	}
}
