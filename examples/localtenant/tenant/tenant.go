// Package tenant names a local tenant cluster and everything it makes on the
// machine: its state folder, network links and control groups.
//
// All names derive from the state folder alone, so that what a crashed tenant
// left behind is found without any record of it.
package tenant

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

const (
	// DefaultRoot is the folder under which every tenant has its own.
	DefaultRoot = "/var/lib/localtenant"
	// DefaultName is the tenant that is meant when none is named.
	DefaultName = "demo"
	// RecordFile is the file that marks a folder as a tenant's. Without it
	// nothing in the folder is ever deleted.
	RecordFile = "tenant.json"

	linkPrefix   = "lt-"
	cgroupParent = "localtenant"
	// unixPathMax is the longest path of a unix socket (unix(7): 108 bytes
	// with the closing zero).
	unixPathMax = 107
)

// ErrName says that a tenant's name is not usable.
var ErrName = errors.New("not a usable tenant name")

var namePattern = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,18}[a-z0-9])?$`)

// Tenant is one local tenant cluster, by its place on the machine.
type Tenant struct {
	root string
	name string
}

// New gives the tenant of that name under that root folder. It refuses names
// and folders that would make deleting the tenant dangerous.
func New(root, name string) (Tenant, error) {
	if !namePattern.MatchString(name) {
		return Tenant{}, fmt.Errorf("%w: %q: use 1 to 20 of a-z, 0-9 and -, beginning and ending with a letter or digit", ErrName, name)
	}
	if err := checkRoot(root); err != nil {
		return Tenant{}, err
	}
	t := Tenant{root: root, name: name}
	if len(t.Socket()) > unixPathMax {
		return Tenant{}, fmt.Errorf("state root %q is too long: %s would exceed the %d bytes of a unix socket path", root, t.Socket(), unixPathMax)
	}
	return t, nil
}

// hidden are the folders that are not on a disk: the images of a node do not
// belong there, and overlayfs does not work on all of them.
func hidden() []string { return []string{"/run", "/var/run", "/proc", "/sys", "/dev"} }

func checkRoot(root string) error {
	if !filepath.IsAbs(root) || filepath.Clean(root) != root {
		return fmt.Errorf("state root %q: give an absolute path without dots or doubled slashes", root)
	}
	if strings.Count(root, "/") < 2 {
		return fmt.Errorf("state root %q is too close to /: give a folder of its own, such as %s", root, DefaultRoot)
	}
	for _, folder := range hidden() {
		if root == folder || strings.HasPrefix(root, folder+"/") {
			return fmt.Errorf("state root %q lies in %s, which is not on a disk: choose another place, such as %s", root, folder, DefaultRoot)
		}
	}
	if slices.Contains([]string{"/var/lib", "/var/log", "/var/cache", "/var/tmp", "/usr/lib", "/usr/share", "/usr/local"}, root) {
		return fmt.Errorf("state root %q is a folder of the system: give a folder of its own, such as %s", root, DefaultRoot)
	}
	return nil
}

// Name is the tenant's name.
func (t Tenant) Name() string { return t.name }

// Root is the folder that holds all tenants' folders.
func (t Tenant) Root() string { return t.root }

// ID is a short name that is unique on the machine: tenants of one name under
// two roots differ.
func (t Tenant) ID() string {
	sum := sha256.Sum256([]byte(t.Dir()))
	return hex.EncodeToString(sum[:])[:6]
}

// Bridge is the name of the tenant's network bridge.
func (t Tenant) Bridge() string { return linkPrefix + t.ID() }

// Link is the host's end of the cable to the node in that slot. With three
// digits it is 13 characters long; the kernel allows 15.
func (t Tenant) Link(slot int) string { return fmt.Sprintf("%s-%d", t.Bridge(), slot) }

// OwnsLink tells whether a network link on the host belongs to the tenant.
func (t Tenant) OwnsLink(link string) bool {
	return link == t.Bridge() || strings.HasPrefix(link, t.Bridge()+"-")
}

// Cgroup is the path of the tenant's control group below each hierarchy.
func (t Tenant) Cgroup() string {
	return "/" + cgroupParent + "/" + t.ID() + "-" + t.name
}

// ControlCgroup holds the daemon and the control plane.
func (t Tenant) ControlCgroup() string { return t.Cgroup() + "/control" }

// NodeCgroup is the cgroup root of one node's kubelet.
func (t Tenant) NodeCgroup(node string) string { return t.Cgroup() + "/" + node }

// OwnsCgroup tells whether a control group, by its path below the hierarchy,
// belongs to the tenant.
func (t Tenant) OwnsCgroup(path string) bool {
	return path == t.Cgroup() || strings.HasPrefix(path, t.Cgroup()+"/")
}

// Flags are those that mean this tenant on a command line of localtenant, with a
// blank before each; none where it is the one that is meant without.
func (t Tenant) Flags() string {
	flags := ""
	if t.name != DefaultName {
		flags = " --name " + t.name
	}
	if t.root != DefaultRoot {
		flags += " --state-root " + quoted(t.root)
	}
	return flags
}

// quoted is a word of a shell.
func quoted(word string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/._-+:@", r)
	}
	if strings.IndexFunc(word, func(r rune) bool { return !plain(r) }) < 0 {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
