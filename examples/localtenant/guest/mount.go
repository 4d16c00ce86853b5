package guest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// mounts gives the node its own folders, and lets it write nowhere else. It
// runs in the node's mount namespace; the host sees nothing of it.
func mounts(config Config) error {
	// Private first: nothing done from here on reaches the host.
	if err := unix.Mount("", "/", "", unix.MS_PRIVATE|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	sources, err := open(config.Mounts)
	if err != nil {
		return err
	}
	defer sources.close()
	if err := unix.Mount("tmpfs", "/run", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=0755"); err != nil {
		return fmt.Errorf("mount /run: %w", err)
	}
	for i, mount := range config.Mounts {
		if err := mount.over(sources[i]); err != nil {
			return err
		}
	}
	if err := sysctls(config); err != nil {
		return err
	}
	// The disk that is left belongs to the machine.
	if err := unix.Mount("", "/", "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, ""); err != nil {
		return fmt.Errorf("make the machine's disk read-only for the node: %w", err)
	}
	// Shared in the end, so that the mounts of volumes reach containers.
	if err := unix.Mount("", "/", "", unix.MS_SHARED|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("make mounts shared: %w", err)
	}
	return nil
}

// handles are the sources of mounts, opened while their paths still lead to
// them: a node's /var/lib covers the folder that it comes from.
type handles []*os.File

func open(list []Mount) (handles, error) {
	var opened handles
	for _, mount := range list {
		fd, err := unix.Open(mount.Source, unix.O_PATH|unix.O_CLOEXEC, 0)
		if err != nil {
			opened.close()
			return nil, fmt.Errorf("open %s for the node: %w", mount.Source, err)
		}
		opened = append(opened, os.NewFile(uintptr(fd), mount.Source))
	}
	return opened, nil
}

func (h handles) close() {
	for _, file := range h {
		file.Close()
	}
}

// over mounts an opened source over the target.
func (m Mount) over(source *os.File) error {
	target, err := m.place()
	if err != nil {
		return fmt.Errorf("make a place for %s in the node: %w", m.Source, err)
	}
	if _, err := os.Stat(target); m.IfThere && errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err := unix.Mount(fmt.Sprintf("/proc/self/fd/%d", source.Fd()), target, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("mount %s over %s: %w", m.Source, target, err)
	}
	return nil
}

// place gives the real target, and makes it where it has to be made: below a
// folder that is the node's already. A link (resolv.conf of systemd leads into
// /run) is followed.
func (m Mount) place() (string, error) {
	target := m.Target
	if link, err := os.Readlink(target); err == nil {
		if !filepath.IsAbs(link) {
			link = filepath.Join(filepath.Dir(target), link)
		}
		target = link
	}
	if m.IfThere && !strings.HasPrefix(target, "/run/") {
		return target, nil
	}
	if !m.File {
		return target, os.MkdirAll(target, 0o755)
	}
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return "", err
	}
	file, err := os.OpenFile(target, os.O_CREATE, 0o644)
	if err != nil {
		return "", err
	}
	return target, file.Close()
}

// sysctls covers settings of the whole machine by files.
func sysctls(config Config) error {
	for path, value := range config.Sysctls {
		file := filepath.Join(config.Scratch, "sysctl"+strings.ReplaceAll(path, "/", "-"))
		if err := os.WriteFile(file, []byte(value+"\n"), 0o644); err != nil {
			return fmt.Errorf("write sysctl of the node: %w", err)
		}
		if err := unix.Mount(file, path, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("cover %s: %w", path, err)
		}
	}
	return nil
}
