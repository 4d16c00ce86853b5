package images

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// DebianPackages is a layer of Debian packages with everything they depend on,
// unpacked but not configured by their scripts; what those would do and
// programs need (users, certificates, alternatives) is done here.
type DebianPackages struct {
	// Install names the packages.
	Install []string
	// Without are patterns (path.Match) of packages to leave out although
	// something depends on them.
	Without []string
}

// Label says how many packages were asked for.
func (d DebianPackages) Label() string {
	return fmt.Sprintf("Debian packages (%d and what they need)", len(d.Install))
}

func (d DebianPackages) inputs(ctx context.Context, w *workshop) (string, error) {
	archives, err := d.archives(ctx, w)
	if err != nil {
		return "", err
	}
	lines := make([]string, len(archives))
	for i, a := range archives {
		lines[i] = a.File + " " + a.Hash
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n"), nil
}

// archives are the package files of the layer.
func (d DebianPackages) archives(ctx context.Context, w *workshop) ([]archive, error) {
	if w.architecture != runtime.GOARCH {
		return nil, fmt.Errorf("apt has packages for %s here, not for %s", runtime.GOARCH, w.architecture)
	}
	all, err := w.apt.closure(ctx, d.Install)
	if err != nil {
		return nil, err
	}
	var kept []archive
	for _, a := range all {
		name, _, _ := strings.Cut(a.File, "_")
		left, err := matchesAny(d.Without, name)
		if err != nil {
			return nil, err
		}
		if !left {
			kept = append(kept, a)
		}
	}
	return kept, nil
}

func matchesAny(patterns []string, name string) (bool, error) {
	for _, pattern := range patterns {
		matched, err := path.Match(pattern, name)
		if err != nil {
			return false, fmt.Errorf("package pattern %q: %w", pattern, err)
		}
		if matched {
			return true, nil
		}
	}
	return false, nil
}

func (d DebianPackages) fill(ctx context.Context, w *workshop, t *tree) error {
	archives, err := d.archives(ctx, w)
	if err != nil {
		return err
	}
	folder, err := w.apt.download(ctx, d.Install)
	if err != nil {
		return err
	}
	// Debian's packages still ship files in /bin and /lib and count on these
	// links, which the installer makes (package usr-is-merged), and base-files
	// ships the folder /var/run that its postinst replaces with a link.
	for name, target := range map[string]string{
		"bin": "usr/bin", "sbin": "usr/sbin", "lib": "usr/lib", "lib64": "usr/lib64", "var/run": "/run",
	} {
		if err := t.add(Entry{Path: name, Mode: fs.ModeSymlink | 0o777, Target: target}); err != nil {
			return err
		}
	}
	for _, a := range archives {
		if err := unpack(ctx, w, filepath.Join(folder, a.File), t); err != nil {
			return err
		}
	}
	return configure(t)
}

// unpack adds the files of a package.
func unpack(ctx context.Context, w *workshop, file string, t *tree) error {
	cmd := exec.CommandContext(ctx, "dpkg-deb", "--fsys-tarfile", file)
	cmd.Env = w.run.env
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return fmt.Errorf("unpack %s: %w", filepath.Base(file), err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("unpack %s: %w", filepath.Base(file), err)
	}
	readErr := t.addTar(stdout, wanted)
	if readErr != nil {
		// Whatever is left in the pipe would block dpkg-deb for ever.
		_ = cmd.Process.Kill()
	} else {
		// tar ends before the padding of its last record does.
		_, readErr = io.Copy(io.Discard, stdout)
	}
	waitErr := cmd.Wait()
	if err := errors.Join(readErr, waitErr); err != nil {
		return fmt.Errorf("unpack %s: %w %s", filepath.Base(file), err, strings.TrimSpace(stderr.String()))
	}
	return nil
}

// wanted leaves out what nobody reads in a job: manuals, translations,
// documentation but for the licences, and what PostgreSQL has for a compiler
// (LLVM, by far the largest of its packages) that it does without.
func wanted(name string) bool {
	for _, unwanted := range []string{"usr/share/man", "usr/share/info", "usr/share/locale", "usr/share/lintian"} {
		if strings.HasPrefix(name, unwanted+"/") {
			return false
		}
	}
	if strings.HasPrefix(name, "usr/share/doc/") {
		return path.Base(name) == "copyright" || strings.Count(name, "/") == 3
	}
	if strings.HasPrefix(name, "usr/lib/postgresql/") {
		return !strings.Contains(name, "/bitcode/") && !strings.HasPrefix(path.Base(name), "llvmjit")
	}
	return true
}
