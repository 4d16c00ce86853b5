package binaries

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Builder builds the components binary.
type Builder struct {
	// Source is the folder examples/localtenant.
	Source string
	// Cache is the folder of tenant-executor's local tenant in the user's cache.
	Cache string
	// Env is the environment of the compiler.
	Env []string
	// Out takes what is said about the build; Terminal tells whether it is one.
	Out      io.Writer
	Terminal bool
	Now      func() time.Time
}

// CacheDir is the cache folder of a user with that environment.
func CacheDir(getenv func(string) string) (string, error) {
	base := getenv("XDG_CACHE_HOME")
	// The specification of XDG_CACHE_HOME has relative paths ignored.
	if !filepath.IsAbs(base) {
		home := getenv("HOME")
		if !filepath.IsAbs(home) {
			return "", errors.New("cache folder: neither XDG_CACHE_HOME nor HOME is an absolute path")
		}
		base = filepath.Join(home, ".cache")
	}
	return filepath.Join(base, "tenant-executor", "localtenant"), nil
}

// Build gives the path of the components binary, and builds it first unless
// the cache has it.
func (b Builder) Build(ctx context.Context) (string, error) {
	components := filepath.Join(b.Source, "components")
	version, err := ReadVersion(components)
	if err != nil {
		return "", err
	}
	dir := filepath.Join(b.Cache, version.Key())
	binary := filepath.Join(dir, "components")
	if present(binary) {
		return binary, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("build components: %w", err)
	}
	unlock, err := b.lock(filepath.Join(dir, "lock"))
	if err != nil {
		return "", fmt.Errorf("build components: %w", err)
	}
	defer unlock()
	if present(binary) {
		return binary, nil
	}
	return binary, b.compile(ctx, version, components, binary)
}

func present(binary string) bool {
	info, err := os.Stat(binary)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// lock keeps two builds of one version apart. The second waits, and finds the
// work done.
func (b Builder) lock(path string) (func(), error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	err = unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		fmt.Fprintln(b.Out, "waiting for another build of the same version")
		err = unix.Flock(int(file.Fd()), unix.LOCK_EX)
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return func() { file.Close() }, nil
}

func (b Builder) compile(ctx context.Context, version Version, components, binary string) error {
	flags, err := version.linkerFlags()
	if err != nil {
		return err
	}
	compiler, err := exec.LookPath("go")
	if err != nil {
		return fmt.Errorf("build components: %w: install Go (see the go line of %s/go.mod) and put it on PATH", err, components)
	}
	fmt.Fprintf(b.Out, "building etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kubelet and the kcp side %s\n", version.Kubernetes)
	fmt.Fprintln(b.Out, "the first time takes about 16 minutes on two idle cores; later starts take it from the cache")
	began := b.Now()
	total := b.countPackages(ctx, compiler, components)
	draft := binary + ".new"
	cmd := exec.CommandContext(ctx, compiler, "build", "-v", "-trimpath", "-ldflags", flags, "-o", draft, ".")
	cmd.Dir = components
	cmd.Env = append(b.Env, "CGO_ENABLED=0")
	meter := newMeter(b.Out, b.Terminal, total, b.Now)
	cmd.Stdout, cmd.Stderr = meter, meter
	stop := meter.run()
	err = cmd.Run()
	stop()
	if ctx.Err() != nil {
		return fmt.Errorf("build components: %w; what is compiled so far is kept", ctx.Err())
	}
	if err != nil {
		return fmt.Errorf("build components: %w:\n%s", err, meter.complaints())
	}
	if err := os.Rename(draft, binary); err != nil {
		return fmt.Errorf("build components: %w", err)
	}
	fmt.Fprintf(b.Out, "built %s in %s\n", binary, b.Now().Sub(began).Round(time.Second))
	return nil
}

// countPackages tells how many packages a build has, for the progress. 0
// stands for unknown: it is not worth failing for.
func (b Builder) countPackages(ctx context.Context, compiler, components string) int {
	cmd := exec.CommandContext(ctx, compiler, "list", "-deps", ".")
	cmd.Dir = components
	cmd.Env = append(b.Env, "CGO_ENABLED=0")
	out, err := cmd.Output()
	if err != nil {
		return 0
	}
	return bytes.Count(out, []byte("\n"))
}

// looksLikePackage tells a line of `go build -v` from a complaint.
func looksLikePackage(line string) bool {
	return line != "" && !strings.ContainsAny(line, " \t:")
}
