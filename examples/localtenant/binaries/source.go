// Package binaries builds the programs of Kubernetes from their Go modules and
// keeps them in the user's cache folder.
package binaries

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"
)

// ErrNoSource says that the source folder was not found.
var ErrNoSource = errors.New("the source folder examples/localtenant was not found")

const (
	modulePath       = "github.com/socialweb-computer/tenant-executor/examples/localtenant"
	kubernetesModule = "k8s.io/kubernetes"
)

// FindSource gives the folder examples/localtenant: the one named, or the first
// found from one of the starting folders upwards.
func FindSource(named string, starts ...string) (string, error) {
	if named != "" {
		dir, err := filepath.Abs(named)
		if err != nil {
			return "", fmt.Errorf("source folder: %w", err)
		}
		if !isSource(dir) {
			return "", fmt.Errorf("source folder %s: it holds no go.mod of %s: name the folder examples/localtenant", dir, modulePath)
		}
		return dir, nil
	}
	for _, start := range starts {
		for dir := start; dir != ""; dir = parent(dir) {
			for _, candidate := range []string{dir, filepath.Join(dir, "examples/localtenant")} {
				if isSource(candidate) {
					return candidate, nil
				}
			}
		}
	}
	return "", fmt.Errorf("%w from %s upwards: run in the repository, or name it with --source", ErrNoSource, strings.Join(starts, " and "))
}

// parent is the folder above, and nothing above the root.
func parent(dir string) string {
	up := filepath.Dir(dir)
	if up == dir {
		return ""
	}
	return up
}

func isSource(dir string) bool {
	text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	return err == nil && modfile.ModulePath(text) == modulePath
}

// Version is what a build is made of.
type Version struct {
	// Kubernetes is its version, such as v1.37.2.
	Kubernetes string
	// Hash is of everything that the build is made from.
	Hash string
}

// Key names the build in the cache.
func (v Version) Key() string { return v.Kubernetes + "-" + v.Hash }

// ReadVersion reads what would be built from the folder of the components.
func ReadVersion(components string) (Version, error) {
	text, err := os.ReadFile(filepath.Join(components, "go.mod"))
	if err != nil {
		return Version{}, fmt.Errorf("read the components' module: %w", err)
	}
	module, err := modfile.Parse("go.mod", text, nil)
	if err != nil {
		return Version{}, fmt.Errorf("read the components' module: %w", err)
	}
	index := slices.IndexFunc(module.Require, func(r *modfile.Require) bool { return r.Mod.Path == kubernetesModule })
	if index < 0 {
		return Version{}, fmt.Errorf("%s/go.mod does not require %s", components, kubernetesModule)
	}
	hash, err := hashSource(components)
	if err != nil {
		return Version{}, err
	}
	return Version{Kubernetes: module.Require[index].Mod.Version, Hash: hash}, nil
}

// hashSource covers go.mod, go.sum and all Go files of the folder, which has no
// folders in it.
func hashSource(dir string) (string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", fmt.Errorf("read the components' source: %w", err)
	}
	sum := sha256.New()
	fmt.Fprintln(sum, runtime.GOARCH)
	for _, entry := range entries {
		name := entry.Name()
		if entry.Type()&fs.ModeType != 0 || !(name == "go.mod" || name == "go.sum" || strings.HasSuffix(name, ".go")) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return "", fmt.Errorf("read the components' source: %w", err)
		}
		fmt.Fprintf(sum, "%s %d\n", name, len(text))
		sum.Write(text)
	}
	return hex.EncodeToString(sum.Sum(nil))[:12], nil
}

// linkerFlags strip the binary and stamp the version: without, components call
// themselves v0.0.0 and refuse each other.
func (v Version) linkerFlags() (string, error) {
	if !semver.IsValid(v.Kubernetes) {
		return "", fmt.Errorf("%q is not a version of Kubernetes", v.Kubernetes)
	}
	major, minor, _ := strings.Cut(strings.TrimPrefix(semver.MajorMinor(v.Kubernetes), "v"), ".")
	const at = "k8s.io/component-base/version"
	return fmt.Sprintf("-s -w -X %[1]s.gitVersion=%[2]s -X %[1]s.gitMajor=%[3]s -X %[1]s.gitMinor=%[4]s -X %[1]s.gitTreeState=clean",
		at, v.Kubernetes, major, minor), nil
}
