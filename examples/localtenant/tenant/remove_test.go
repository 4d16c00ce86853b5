package tenant

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// made makes the folder of a tenant, with its record, below a folder of the
// test.
func made(t *testing.T, name string) Tenant {
	t.Helper()
	tenant := must(t, filepath.Join(t.TempDir(), "root"), name)
	if err := tenant.MakeDirs(); err != nil {
		t.Fatal(err)
	}
	write(t, tenant.Record(), "{}")
	return tenant
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func TestRemove(t *testing.T) {
	tenant := made(t, "demo")
	write(t, filepath.Join(tenant.LogDir(), "x.log"), "x")
	if err := tenant.Remove([]string{"/", "/proc", tenant.Dir() + "2"}); err != nil {
		t.Fatal(err)
	}
	if exists(tenant.Dir()) || exists(tenant.Root()) {
		t.Error("the state folder or the empty root is still there")
	}
	if err := tenant.Remove(nil); err != nil {
		t.Errorf("removing what is not there: %v", err)
	}
}

func TestRemoveKeepsOtherTenants(t *testing.T) {
	first := made(t, "first")
	second := must(t, first.Root(), "second")
	if err := second.MakeDirs(); err != nil {
		t.Fatal(err)
	}
	write(t, second.Record(), "{}")
	if err := first.Remove(nil); err != nil {
		t.Fatal(err)
	}
	if exists(first.Dir()) || !exists(second.Record()) {
		t.Error("the wrong tenant was removed")
	}
}

func TestRemoveRefuses(t *testing.T) {
	for _, test := range []struct {
		name    string
		spoil   func(t *testing.T, tenant Tenant)
		mounts  func(Tenant) []string
		foreign bool
	}{
		{
			name: "a folder without a record",
			spoil: func(t *testing.T, tenant Tenant) {
				if err := os.Remove(tenant.Record()); err != nil {
					t.Fatal(err)
				}
				write(t, filepath.Join(tenant.Dir(), "thesis.txt"), "years of work")
			},
			foreign: true,
		},
		{
			name: "a link in place of the folder",
			spoil: func(t *testing.T, tenant Tenant) {
				real := filepath.Join(t.TempDir(), "elsewhere")
				if err := os.Rename(tenant.Dir(), real); err != nil {
					t.Fatal(err)
				}
				if err := os.Symlink(real, tenant.Dir()); err != nil {
					t.Fatal(err)
				}
			},
			foreign: true,
		},
		{
			name:   "something mounted below",
			mounts: func(tenant Tenant) []string { return []string{filepath.Join(tenant.Dir(), "nodes/a/disk")} },
		},
		{
			name:   "something mounted over it",
			mounts: func(tenant Tenant) []string { return []string{tenant.Dir()} },
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			tenant := made(t, "demo")
			if test.spoil != nil {
				test.spoil(t, tenant)
			}
			var mounts []string
			if test.mounts != nil {
				mounts = test.mounts(tenant)
			}
			err := tenant.Remove(mounts)
			if err == nil {
				t.Fatal("it was removed")
			}
			if errors.Is(err, ErrNotOurs) != test.foreign {
				t.Errorf("the error is %v; ErrNotOurs wanted: %v", err, test.foreign)
			}
			if !exists(filepath.Join(tenant.Dir(), "log")) {
				t.Error("something was removed all the same")
			}
		})
	}
}

func TestRemoveDoesNotFollowLinks(t *testing.T) {
	tenant := made(t, "demo")
	precious := filepath.Join(t.TempDir(), "precious")
	write(t, precious, "keep me")
	if err := os.Symlink(filepath.Dir(precious), filepath.Join(tenant.Dir(), "nodes", "way-out")); err != nil {
		t.Fatal(err)
	}
	if err := tenant.Remove(nil); err != nil {
		t.Fatal(err)
	}
	if !exists(precious) {
		t.Error("a file behind a link was removed")
	}
}

// TestRemoveOfAnInterruptedStart: an `up` that died before its record leaves
// folders alone, and nobody else makes just these.
func TestRemoveOfAnInterruptedStart(t *testing.T) {
	tenant := made(t, "demo")
	if err := os.Remove(tenant.Record()); err != nil {
		t.Fatal(err)
	}
	if err := tenant.Remove(nil); err != nil {
		t.Fatal(err)
	}
	if exists(tenant.Dir()) {
		t.Error("it is still there")
	}
}

func TestRemoveNode(t *testing.T) {
	tenant := made(t, "demo")
	for _, node := range []string{"a", "b"} {
		if err := os.MkdirAll(filepath.Join(tenant.NodeDir(node), "disk"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"", ".", "..", "../nodes", "a/../b", "/"} {
		if err := tenant.RemoveNode(name); err == nil {
			t.Errorf("RemoveNode(%q) was not refused", name)
		}
	}
	if err := tenant.RemoveNode("a"); err != nil {
		t.Fatal(err)
	}
	if exists(tenant.NodeDir("a")) || !exists(tenant.NodeDir("b")) {
		t.Error("the wrong disk was removed")
	}
}

func TestList(t *testing.T) {
	tenant := made(t, "demo")
	for _, name := range []string{"no-record", "Not-A-Name"} {
		if err := os.Mkdir(filepath.Join(tenant.Root(), name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	names, err := List(tenant.Root())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"demo"}, names); diff != "" {
		t.Errorf("tenants (-want +got):\n%s", diff)
	}
	if names, err := List(filepath.Join(tenant.Root(), "none")); err != nil || len(names) > 0 {
		t.Errorf("a root that is not there gave %v, %v", names, err)
	}
}

func TestLocks(t *testing.T) {
	tenant := made(t, "demo")
	if running, err := tenant.Running(); running || err != nil {
		t.Fatalf("a tenant without a daemon runs: %v, %v", running, err)
	}
	unlock, err := tenant.LockDaemon()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tenant.LockDaemon(); !errors.Is(err, ErrLocked) {
		t.Errorf("the second daemon got %v, want ErrLocked", err)
	}
	if running, err := tenant.Running(); !running || err != nil {
		t.Errorf("a tenant with a daemon does not run: %v, %v", running, err)
	}
	unlock()
	if running, err := tenant.Running(); running || err != nil {
		t.Errorf("a tenant whose daemon has ended runs: %v, %v", running, err)
	}
	release, err := LockRoot(tenant.Root())
	if err != nil {
		t.Fatal(err)
	}
	release()
}
