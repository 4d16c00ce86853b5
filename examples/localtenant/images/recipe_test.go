package images

import (
	"os"
	"runtime"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

func TestStandardNames(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, recipe := range Standard() {
		short, ours := strings.CutPrefix(recipe.Name, "localtenant/")
		if seen[recipe.Name] || !ours || recipe.Tag != Tag {
			t.Errorf("%s:%s: want a new name in localtenant and the tag %s", recipe.Name, recipe.Tag, Tag)
		}
		seen[recipe.Name] = true
		if !strings.Contains(string(readme), "| `"+short+"` |") {
			t.Errorf("README.md does not describe %s", short)
		}
	}
}

// TestStandardConfigs are what tests of a driver count on.
func TestStandardConfigs(t *testing.T) {
	recipes := map[string]Recipe{}
	for _, recipe := range Standard() {
		recipes[strings.TrimPrefix(recipe.Name, "localtenant/")] = recipe
	}
	for _, test := range []struct {
		image string
		holds func(v1.Config) bool
	}{
		{"nonroot", func(c v1.Config) bool { return c.User == "job" && c.WorkingDir == "/home/job" }},
		{"nonroot-number", func(c v1.Config) bool { return c.User == "1000:1000" }},
		{"entrypoint-script", func(c v1.Config) bool { return c.Entrypoint[0] == "/usr/local/bin/entrypoint.sh" }},
		{"entrypoint-program", func(c v1.Config) bool { return c.Entrypoint[0] == "git" }},
		{"alpine-like", func(c v1.Config) bool { return len(c.Entrypoint) == 0 && c.User == "" }},
		{"redis", exposes("6379/tcp")},
		{"postgres", exposes("5432/tcp")},
		{"service-probe", exposes("8080/tcp")},
	} {
		if config := recipes[test.image].Config; !test.holds(config) {
			t.Errorf("%s is configured as %+v", test.image, config)
		}
	}
}

func exposes(port string) func(v1.Config) bool {
	return func(c v1.Config) bool { _, found := c.ExposedPorts[port]; return found }
}

// TestPlatforms makes the images for other machines and looks at what kind of
// programs are in them.
func TestPlatforms(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles for another architecture")
	}
	imgs, err := Build(t.Context(), Options{Recipes: platformImages(), Cache: t.TempDir(), Source: ".."})
	if err != nil {
		t.Fatal(err)
	}
	other := otherArchitecture(runtime.GOARCH)
	for i, want := range [][]string{{"amd64", "arm64"}, {other}} {
		manifest, err := imgs[i].Index.IndexManifest()
		if err != nil {
			t.Fatal(err)
		}
		if len(manifest.Manifests) != len(want) {
			t.Fatalf("%s: %d manifests, want %v", imgs[i].Name, len(manifest.Manifests), want)
		}
		for j, descriptor := range manifest.Manifests {
			if got := descriptor.Platform.String(); got != "linux/"+want[j] {
				t.Errorf("%s: platform %s, want linux/%s", imgs[i].Name, got, want[j])
			}
			img, err := imgs[i].Index.Image(descriptor.Digest)
			if err != nil {
				t.Fatal(err)
			}
			examine(t, imgs[i].Name, img, want[j], want[j])
		}
	}
	examine(t, imgs[2].Name, imgs[2].Image, runtime.GOARCH, other)
}

// examine checks what an image says it is for, and what its programs are for.
func examine(t *testing.T, name string, img v1.Image, says, is string) {
	t.Helper()
	config, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if config.Architecture != says {
		t.Errorf("%s says it is for %s, want %s", name, config.Architecture, says)
	}
	layers, err := img.Layers()
	if err != nil {
		t.Fatal(err)
	}
	for _, layer := range layers {
		rc, err := layer.Uncompressed()
		if err != nil {
			t.Fatal(err)
		}
		content := newTree()
		err = content.addTar(rc, func(string) bool { return true })
		_ = rc.Close()
		if err != nil {
			t.Fatal(err)
		}
		for file, node := range content.nodes {
			if !node.mode.IsRegular() {
				continue
			}
			// e_machine of the ELF header: 62 is x86-64, 183 is AArch64 (elf.h).
			machine := map[byte]string{62: "amd64", 183: "arm64"}[node.body[18]]
			if machine != is {
				t.Errorf("%s: %s is for %s, want %s", name, file, machine, is)
			}
		}
	}
}

func TestPackagesOfAnotherMachine(t *testing.T) {
	recipe := Recipe{Name: "n", Tag: "1", Layers: []Layer{Alpine{}}, Platforms: []string{otherArchitecture(runtime.GOARCH)}}
	_, err := Build(t.Context(), Options{Recipes: []Recipe{recipe}, Cache: t.TempDir(), Source: ".."})
	if err == nil || !strings.Contains(err.Error(), "image n, linux/"+otherArchitecture(runtime.GOARCH)) || !strings.Contains(err.Error(), "apt has packages for") {
		t.Errorf("built it: %v", err)
	}
}

func TestPackageFileIsMissing(t *testing.T) {
	if testing.Short() {
		t.Skip("downloads Debian packages")
	}
	recipe := Recipe{Name: "n", Layers: []Layer{PackageFile{Package: "busybox-static", From: []string{"bin/none"}, Path: "x"}}}
	_, err := Build(t.Context(), Options{Recipes: []Recipe{recipe}, Cache: t.TempDir(), Source: ".."})
	if err == nil || !strings.Contains(err.Error(), "package busybox-static has none of bin/none") {
		t.Errorf("built it: %v", err)
	}
}

func TestAccounts(t *testing.T) {
	for _, test := range []struct {
		program string
		want    string
	}{
		{"usr/bin/none", "job:x:1000:1000::/home/job:/bin/sh\n"},
		{"usr/bin/redis-server", "redis:x:999:999::/var/lib/redis:/bin/sh\n"},
		{"usr/lib/postgresql/15/bin/postgres", "postgres:x:998:998::/var/lib/postgresql:/bin/sh\n"},
	} {
		content := newTree()
		for _, entry := range []Entry{
			{Path: "usr/share/base-passwd/passwd.master", Body: "root:x:0:0::/root:/bin/bash\n"},
			{Path: test.program, Mode: 0o755},
		} {
			if err := content.add(entry); err != nil {
				t.Fatal(err)
			}
		}
		if err := configure(content); err != nil {
			t.Fatal(err)
		}
		passwd, _ := content.read("etc/passwd")
		if !strings.HasPrefix(string(passwd), "root:") || !strings.Contains(string(passwd), test.want) {
			t.Errorf("with %s: users %q, want %q", test.program, passwd, test.want)
		}
		if count := strings.Count(string(passwd), "\n"); test.program == "usr/bin/none" && count != 2 {
			t.Errorf("users of programs that are not there: %q", passwd)
		}
		if got := content.has("usr/local/bin/postgres"); got != strings.Contains(test.program, "postgresql") {
			t.Errorf("with %s: the command postgres is there: %v", test.program, got)
		}
	}
}
