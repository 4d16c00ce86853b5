// Package sweep finds and removes what a tenant has on the machine. It needs
// neither the tenant's daemon nor a record: everything bears the tenant's name.
package sweep

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/socialweb-computer/tenant-executor/examples/localtenant/cgroup"
	"github.com/socialweb-computer/tenant-executor/examples/localtenant/network"
	"github.com/socialweb-computer/tenant-executor/examples/localtenant/proc"
	"github.com/socialweb-computer/tenant-executor/examples/localtenant/tenant"
)

const (
	procfs = "/proc"
	// patience is how long the kernel may take to end killed processes and to
	// let go of their control groups.
	patience = 20 * time.Second
	pause    = 20 * time.Millisecond
)

// Leftovers is everything of a tenant on the machine. The network namespaces
// of nodes are held by their processes alone: no process, no namespace.
type Leftovers struct {
	Processes  []proc.Entry `json:"processes"`
	Mounts     []string     `json:"mounts"`
	Cgroups    []string     `json:"cgroups"`
	Namespaces []string     `json:"networkNamespaces"`
	Links      []string     `json:"links"`
	// Folder is the state folder, empty when it is not there.
	Folder string `json:"folder"`
}

// Empty tells whether there is nothing.
func (l Leftovers) Empty() bool {
	return len(l.Processes)+len(l.Mounts)+len(l.Cgroups)+len(l.Namespaces)+len(l.Links) == 0 && l.Folder == ""
}

// Find looks for everything of a tenant.
func Find(t tenant.Tenant) (Leftovers, error) {
	var found Leftovers
	processes, err := proc.Find(procfs, t.OwnsCgroup)
	if err != nil {
		return found, err
	}
	mounts, err := proc.Mounts()
	if err != nil {
		return found, err
	}
	tree, err := cgroup.Find(mounts)
	if err != nil {
		return found, err
	}
	groups, err := tree.List(t.Cgroup())
	if err != nil {
		return found, err
	}
	links, err := network.Links(t.OwnsLink)
	if err != nil {
		return found, err
	}
	found = Leftovers{
		Processes: processes, Mounts: below(t.Dir(), mounts), Cgroups: groups,
		Namespaces: namespaces(processes), Links: links,
	}
	if _, err := os.Lstat(t.Dir()); err == nil {
		found.Folder = t.Dir()
	}
	return found, nil
}

// below gives the mount points in a folder, deepest first.
func below(dir string, mounts []proc.Mount) []string {
	var points []string
	for _, mount := range mounts {
		if mount.Point == dir || strings.HasPrefix(mount.Point, dir+"/") {
			points = append(points, mount.Point)
		}
	}
	slices.SortFunc(points, func(a, b string) int { return len(b) - len(a) })
	return points
}

// namespaces gives the network namespaces of processes, other than the host's.
func namespaces(processes []proc.Entry) []string {
	host, err := os.Readlink(procfs + "/self/ns/net")
	if err != nil {
		return nil
	}
	var names []string
	for _, process := range processes {
		name, err := os.Readlink(filepath.Join(procfs, fmt.Sprint(process.PID), "ns/net"))
		if err == nil && name != host && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// Stop ends everything of a tenant that is not a file: processes, mounts,
// links and control groups. report is told what was removed.
func Stop(ctx context.Context, t tenant.Tenant, report func(string)) error {
	if err := killAll(ctx, t, report); err != nil {
		return err
	}
	left, err := Find(t)
	if err != nil {
		return err
	}
	var failures []error
	for _, point := range left.Mounts {
		if err := unix.Unmount(point, unix.MNT_DETACH); err != nil {
			failures = append(failures, fmt.Errorf("unmount %s: %w", point, err))
		}
	}
	for _, link := range left.Links {
		failures = append(failures, network.RemoveLink(ctx, link))
	}
	failures = append(failures, removeGroups(t))
	if err := errors.Join(failures...); err != nil {
		return err
	}
	for what, count := range map[string]int{"mounts": len(left.Mounts), "network links with their routes": len(left.Links), "control groups": len(left.Cgroups)} {
		if count > 0 {
			report(fmt.Sprintf("removed %d %s", count, what))
		}
	}
	return nil
}

func removeGroups(t tenant.Tenant) error {
	mounts, err := proc.Mounts()
	if err != nil {
		return err
	}
	tree, err := cgroup.Find(mounts)
	if err != nil {
		return err
	}
	if err := tree.Remove(t.Cgroup(), patience); err != nil {
		return err
	}
	// Stays while another tenant has groups in it.
	tree.RemoveEmpty(filepath.Dir(t.Cgroup()))
	return nil
}

// killAll kills until nothing is left: a process may start another between
// the look and the kill.
func killAll(ctx context.Context, t tenant.Tenant, report func(string)) error {
	deadline := time.Now().Add(patience)
	killed := map[int]bool{}
	for {
		processes, err := proc.Find(procfs, t.OwnsCgroup)
		if err != nil {
			return err
		}
		if len(processes) == 0 {
			break
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%d processes of tenant %q do not end on SIGKILL, the first is %d (%s): see its state in /proc", len(processes), t.Name(), processes[0].PID, processes[0].Command)
		}
		for _, process := range processes {
			killed[process.PID] = true
			if err := proc.Kill(procfs, process); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
	if len(killed) > 0 {
		report(fmt.Sprintf("ended %d processes", len(killed)))
	}
	return nil
}

// Remove ends and removes everything of a tenant, its state folder included.
func Remove(ctx context.Context, t tenant.Tenant, report func(string)) error {
	if err := Stop(ctx, t, report); err != nil {
		return err
	}
	if _, err := os.Lstat(t.Dir()); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	mounts, err := proc.Mounts()
	if err != nil {
		return err
	}
	if err := t.Remove(proc.Points(mounts)); err != nil {
		return err
	}
	report("removed " + t.Dir())
	return nil
}
