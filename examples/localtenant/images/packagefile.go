package images

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
)

// PackageFile is a layer with one file out of a Debian package, and nothing
// else of it.
type PackageFile struct {
	// Package names the package.
	Package string
	// From are the places the file may have in the package; the first that
	// is there counts.
	From []string
	// Path is its place in the image, without a leading slash.
	Path string
}

// Label names the file.
func (f PackageFile) Label() string { return fmt.Sprintf("/%s of package %s", f.Path, f.Package) }

func (f PackageFile) packages() DebianPackages { return DebianPackages{Install: []string{f.Package}} }

func (f PackageFile) inputs(ctx context.Context, w *workshop) (string, error) {
	archives, err := f.packages().inputs(ctx, w)
	return fmt.Sprintf("%s\n%q %q", archives, f.From, f.Path), err
}

func (f PackageFile) fill(ctx context.Context, w *workshop, t *tree) error {
	body, err := f.body(ctx, w)
	if err != nil {
		return err
	}
	return t.add(Entry{Path: f.Path, Mode: 0o755, Body: string(body)})
}

// body takes the file out of its package.
func (f PackageFile) body(ctx context.Context, w *workshop) ([]byte, error) {
	archives, err := f.packages().archives(ctx, w)
	if err != nil {
		return nil, err
	}
	folder, err := w.apt.download(ctx, f.packages().Install)
	if err != nil {
		return nil, err
	}
	unpacked := newTree()
	for _, a := range archives {
		if !strings.HasPrefix(a.File, f.Package+"_") {
			continue
		}
		if err := unpack(ctx, w, filepath.Join(folder, a.File), unpacked); err != nil {
			return nil, err
		}
	}
	for _, place := range f.From {
		if body, found := unpacked.read(place); found {
			return body, nil
		}
	}
	return nil, fmt.Errorf("package %s has none of %s", f.Package, strings.Join(f.From, ", "))
}
