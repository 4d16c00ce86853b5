package tenant

import (
	"errors"
	"strings"
	"testing"
)

func TestNewRefusesDangerousPlaces(t *testing.T) {
	for _, test := range []struct {
		root, name string
		want       string
	}{
		{DefaultRoot, "demo", ""},
		{"/srv/tenants", "a", ""},
		{"/tmp/x", "a-1", ""},
		{DefaultRoot, "", "not a usable tenant name"},
		{DefaultRoot, ".", "not a usable tenant name"},
		{DefaultRoot, "..", "not a usable tenant name"},
		{DefaultRoot, "a/b", "not a usable tenant name"},
		{DefaultRoot, "Demo", "not a usable tenant name"},
		{DefaultRoot, "-a", "not a usable tenant name"},
		{DefaultRoot, "a-", "not a usable tenant name"},
		{DefaultRoot, strings.Repeat("a", 21), "not a usable tenant name"},
		{"", "demo", "absolute path"},
		{"var/lib/x", "demo", "absolute path"},
		{"/var/lib/../x", "demo", "absolute path"},
		{"/var/lib/x/", "demo", "absolute path"},
		{"/", "demo", "too close to /"},
		{"/home", "demo", "too close to /"},
		{"/var/lib", "demo", "folder of the system"},
		{"/run/tenants", "demo", "not on a disk"},
		{"/proc/x", "demo", "not on a disk"},
		{"/srv/" + strings.Repeat("x", 100), "demo", "too long"},
	} {
		_, err := New(test.root, test.name)
		switch {
		case test.want == "" && err != nil:
			t.Errorf("New(%q, %q): %v", test.root, test.name, err)
		case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
			t.Errorf("New(%q, %q) gave %v, want an error with %q", test.root, test.name, err, test.want)
		}
	}
	if _, err := New(DefaultRoot, "No"); !errors.Is(err, ErrName) {
		t.Errorf("a bad name gave %v, want ErrName", err)
	}
}

func TestTenantsDoNotOwnEachOthersThings(t *testing.T) {
	demo, other, elsewhere := must(t, DefaultRoot, "demo"), must(t, DefaultRoot, "demo2"), must(t, "/srv/tenants", "demo")
	for _, stranger := range []Tenant{other, elsewhere} {
		for _, link := range []string{stranger.Bridge(), stranger.Link(1), stranger.Link(lastSlot)} {
			if demo.OwnsLink(link) {
				t.Errorf("%s owns the link %s of %s", demo.Dir(), link, stranger.Dir())
			}
		}
		for _, group := range []string{stranger.Cgroup(), stranger.ControlCgroup(), stranger.NodeCgroup("n")} {
			if demo.OwnsCgroup(group) {
				t.Errorf("%s owns the group %s of %s", demo.Dir(), group, stranger.Dir())
			}
		}
	}
	for _, link := range []string{demo.Bridge(), demo.Link(1), demo.Link(lastSlot)} {
		if !demo.OwnsLink(link) {
			t.Errorf("%s does not own its link %s", demo.Dir(), link)
		}
		if len(link) > 15 {
			t.Errorf("the kernel takes no link name of %d characters: %s", len(link), link)
		}
	}
	for _, group := range []string{demo.Cgroup(), demo.ControlCgroup(), demo.NodeCgroup("n") + "/kubepods/x"} {
		if !demo.OwnsCgroup(group) {
			t.Errorf("%s does not own its group %s", demo.Dir(), group)
		}
	}
	for _, foreign := range []string{"/", "", "/localtenant", demo.Cgroup() + "x", "/kubepods"} {
		if demo.OwnsCgroup(foreign) {
			t.Errorf("%s owns the group %q", demo.Dir(), foreign)
		}
	}
	for _, foreign := range []string{"eth0", "lo", "lt-", demo.Bridge() + "x", "lt-demo"} {
		if demo.OwnsLink(foreign) {
			t.Errorf("%s owns the link %q", demo.Dir(), foreign)
		}
	}
}

// lastSlot has as many digits as a slot can have.
const lastSlot = 200

func must(t *testing.T, root, name string) Tenant {
	t.Helper()
	made, err := New(root, name)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// What is printed for the next command means the same tenant.
func TestFlagsMeanTheTenant(t *testing.T) {
	for _, test := range []struct{ root, name, want string }{
		{DefaultRoot, DefaultName, ""},
		{DefaultRoot, "a", " --name a"},
		{"/srv/tenants", DefaultName, " --state-root /srv/tenants"},
		{"/srv/my tenants", "a", " --name a --state-root '/srv/my tenants'"},
	} {
		one, err := New(test.root, test.name)
		if err != nil {
			t.Fatal(err)
		}
		if got := one.Flags(); got != test.want {
			t.Errorf("flags of %s in %s: %q, want %q", test.name, test.root, got, test.want)
		}
	}
}
