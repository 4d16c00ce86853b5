package images

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// sampleRecipes are two images that share a layer.
func sampleRecipes() []Recipe {
	shared := Files{Name: "shared", Entries: []Entry{{Path: "shared", Mode: 0o644, Body: strings.Repeat("x", 1000)}}}
	own := Files{Name: "own", Entries: []Entry{{Path: "own", Mode: 0o600, UID: 5}}}
	return []Recipe{
		{Name: "localtenant/one", Tag: "1", Layers: []Layer{shared}, Config: v1.Config{Cmd: []string{"one"}}},
		{Name: "localtenant/two", Tag: "2", Layers: []Layer{shared, own}, Architecture: "riscv64"},
		{Name: "localtenant/many", Tag: "3", Layers: []Layer{shared}, Platforms: []string{"amd64", "arm64"}},
	}
}

func buildSamples(t *testing.T, cache string, out io.Writer) []Image {
	t.Helper()
	imgs, err := Build(t.Context(), Options{Recipes: sampleRecipes(), Cache: cache, Source: "..", Out: out})
	if err != nil {
		t.Fatal(err)
	}
	return imgs
}

// check validates what a reference stands for.
func check(img Image) error {
	if img.Index != nil {
		return validate.Index(img.Index)
	}
	return validate.Image(img.Image)
}

func digest(t *testing.T, img Image) v1.Hash {
	t.Helper()
	content, ok := img.content().(interface{ Digest() (v1.Hash, error) })
	if !ok {
		t.Fatalf("%s: a %T has no digest", img.Reference(), img.content())
	}
	hash, err := content.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return hash
}

func TestBuild(t *testing.T) {
	cache := t.TempDir()
	var first, second bytes.Buffer
	imgs := buildSamples(t, cache, &first)
	for _, img := range imgs {
		if err := check(img); err != nil {
			t.Errorf("%s: %v", img.Reference(), err)
		}
	}
	config, err := imgs[1].Image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if imgs[1].Reference() != "localtenant/two:2" || config.Architecture != "riscv64" || config.OS != "linux" {
		t.Errorf("%s: %s/%s", imgs[1].Reference(), config.OS, config.Architecture)
	}
	// Once for this machine's architecture, once for the other platform.
	if n := strings.Count(first.String(), "shared: made"); n != 2 {
		t.Errorf("the shared layer was made %d times:\n%s", n, &first)
	}
	again := buildSamples(t, cache, &second)
	if strings.Contains(second.String(), "made") {
		t.Errorf("a second build made layers:\n%s", &second)
	}
	elsewhere := buildSamples(t, t.TempDir(), nil)
	for i := range imgs {
		want := digest(t, imgs[i])
		for _, other := range [][]Image{again, elsewhere} {
			if got := digest(t, other[i]); got != want {
				t.Errorf("%s: digest %v, want %v each time", imgs[i].Name, got, want)
			}
		}
	}
}

func TestPushSendsBlobsOnce(t *testing.T) {
	imgs := buildSamples(t, t.TempDir(), nil)
	var mu sync.Mutex
	uploads := 0
	content := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPatch {
			mu.Lock()
			uploads++
			mu.Unlock()
		}
		content.ServeHTTP(w, r)
	}))
	defer server.Close()
	addr := strings.TrimPrefix(server.URL, "http://")

	if err := Push(t.Context(), addr, imgs); err != nil {
		t.Fatal(err)
	}
	firstTime := uploads
	if err := Push(t.Context(), addr, imgs); err != nil {
		t.Fatal(err)
	}
	if firstTime == 0 || uploads != firstTime {
		t.Errorf("%d uploads the first time, %d more the second", firstTime, uploads-firstTime)
	}
	for _, img := range imgs {
		ref, err := name.ParseReference(addr+"/"+img.Reference(), name.Insecure)
		if err != nil {
			t.Fatal(err)
		}
		pulled := Image{Name: img.Name, Tag: img.Tag}
		if img.Index != nil {
			pulled.Index, err = remote.Index(ref)
		} else {
			pulled.Image, err = remote.Image(ref)
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := check(pulled); err != nil {
			t.Error(err)
		}
		if got, want := digest(t, pulled), digest(t, img); got != want {
			t.Errorf("pulled %v, want %v", got, want)
		}
	}
}

func TestPushFails(t *testing.T) {
	imgs := buildSamples(t, t.TempDir(), nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Push(ctx, "127.0.0.1:1", imgs); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled push = %v", err)
	}
	if err := Push(t.Context(), "not an address", imgs); err == nil {
		t.Error("pushed to nowhere")
	}
}

func TestBuildFails(t *testing.T) {
	for _, c := range []struct {
		name string
		opts Options
		text string
	}{
		{"no cache", Options{Source: ".."}, "cache folder"},
		{"no source", Options{Cache: t.TempDir()}, "source"},
		{"wrong source", Options{Cache: t.TempDir(), Source: t.TempDir(), Recipes: []Recipe{{Name: "n", Layers: []Layer{GoProgram{Package: "./none"}}}}}, "no Go source"},
		{"wrong entry", Options{Cache: t.TempDir(), Source: "..", Recipes: []Recipe{{Name: "n", Layers: []Layer{Files{Name: "pipe", Entries: []Entry{{Path: "p", Mode: fs.ModeNamedPipe}}}}}}}, "image n, pipe"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := Build(t.Context(), c.opts); err == nil || !strings.Contains(err.Error(), c.text) {
				t.Errorf("error %v, want %q", err, c.text)
			}
		})
	}
}

// extract unpacks a layer, as far as tests need it.
func extract(t *testing.T, layer v1.Layer, root string) {
	t.Helper()
	rc, err := layer.Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rc.Close() }()
	extractTar(t, rc, root)
}

func extractTar(t *testing.T, r io.Reader, root string) {
	t.Helper()
	archive := tar.NewReader(r)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := extractEntry(header, archive, root); err != nil {
			t.Fatalf("extract %s: %v", header.Name, err)
		}
	}
}

func extractEntry(header *tar.Header, body io.Reader, root string) error {
	target := filepath.Join(root, header.Name)
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return err
	}
	switch header.Typeflag {
	case tar.TypeDir:
		if err := os.MkdirAll(target, 0o755); err != nil {
			return err
		}
		return os.Chmod(target, header.FileInfo().Mode())
	case tar.TypeSymlink:
		return os.Symlink(header.Linkname, target)
	case tar.TypeLink:
		return os.Link(filepath.Join(root, header.Linkname), target)
	}
	content, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	return os.WriteFile(target, content, header.FileInfo().Mode().Perm())
}

// TestStandardImages makes the images the cluster gets, from this machine's
// packages, and runs programs in them.
func TestStandardImages(t *testing.T) {
	if testing.Short() {
		t.Skip("downloads and unpacks Debian packages")
	}
	if os.Geteuid() != 0 {
		t.Skip("needs root for chroot")
	}
	userCache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	imgs, err := Build(t.Context(), Options{Cache: filepath.Join(userCache, "tenant-executor", "images"), Source: "..", Out: &out})
	t.Log(out.String())
	if err != nil {
		t.Fatal(err)
	}
	server := gitServer(t)
	roots := map[string]string{}
	for _, c := range []struct {
		image, want string
		command     []string
	}{
		{"busybox", "uid=1000(job)", []string{"sh", "-c", "id job"}},
		{"busybox", "1777", []string{"stat", "-c", "%a", "/tmp"}},
		{"busybox", "env works", []string{"/usr/bin/env", "sh", "-c", "echo env works"}},
		{"debian", "git version 2.", []string{"bash", "-c", "git --version"}},
		{"debian", "served", []string{"bash", "-c", "git clone -q " + server + " /tmp/clone && cat /tmp/clone/file"}},
		{"debian", "uid=1000(job)", []string{"bash", "-c", "id job && sed --version && grep --version && gzip --version && tar --version"}},
		{"debian", "awk works", []string{"sh", "-c", "echo works | awk '{print \"awk\", $1}'"}},
		{"debian", "procps", []string{"bash", "-c", "pgrep --version"}},
		{"debian", "BEGIN CERTIFICATE", []string{"head", "-n1", "/" + certificates}},
		{"helper", "stand-in", []string{"gitlab-runner-helper", "--version"}},
		{"helper", "absent", []string{"bash", "-c", "type gitlab-runner || echo absent"}},
		{"helper", "served", []string{"bash", "-c", "git clone -q " + server + " /tmp/clone && cat /tmp/clone/file"}},
		{"alpine-like", "ash works", []string{"/bin/ash", "-c", "echo ash works"}},
		{"alpine-like", "/bin/busybox", []string{"readlink", "/usr/bin/env"}},
		{"distroless-shell", " posix\n", []string{"/bin/sh", "-c", "echo options: $(set -o | { while read -r name state; do [ $state = on ] && echo $name; done; })"}},
		{"redis", "uid=999(redis)", []string{"setpriv", "--reuid=redis", "--regid=redis", "--clear-groups", "id"}},
		{"redis", "Redis server v=", []string{"redis.sh", "--version"}},
		{"postgres", "uid=998(postgres)", []string{"setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups", "id"}},
		{"postgres", "(PostgreSQL) ", []string{"postgres.sh", "psql", "--version"}},
		{"postgres", "(PostgreSQL) ", []string{"postgres", "--version"}},
		{"postgres", "/run", []string{"readlink", "/var/run"}},
	} {
		if roots[c.image] == "" {
			roots[c.image] = unpackImage(t, imgs, c.image)
		}
		cmd := exec.Command("chroot", append([]string{roots[c.image]}, c.command...)...)
		cmd.Env = []string{searchPath, "HOME=/root"}
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), c.want) {
			t.Errorf("%s: %v = %q, %v, want %q", c.image, c.command, out, err, c.want)
		}
	}
}

// unpackImage puts the layers of an image into a folder, one over the other.
func unpackImage(t *testing.T, imgs []Image, name string) string {
	t.Helper()
	at := slices.IndexFunc(imgs, func(img Image) bool { return img.Name == "localtenant/"+name })
	if at < 0 {
		t.Fatalf("there is no image %s", name)
	}
	layers, err := imgs[at].Image.Layers()
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	for _, layer := range layers {
		extract(t, layer, root)
	}
	if err := os.MkdirAll(filepath.Join(root, "dev"), 0o755); err != nil {
		t.Fatal(err)
	}
	// git opens it; a container has the device.
	if err := os.WriteFile(filepath.Join(root, "dev/null"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	return root
}

// gitServer serves a repository over HTTP and returns its URL.
func gitServer(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "file"), []byte("served"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"init", "-q"}, {"add", "file"},
		{"-c", "user.name=t", "-c", "user.email=t@localhost", "commit", "-q", "-m", "m"}, {"update-server-info"},
	} {
		cmd := exec.Command("git", args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v %s", args, err, out)
		}
	}
	server := httptest.NewServer(http.FileServer(http.Dir(filepath.Join(dir, ".git"))))
	t.Cleanup(server.Close)
	return server.URL + "/"
}
