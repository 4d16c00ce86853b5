package binaries

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const componentsMod = `module x

go 1.26.0

require (
	k8s.io/component-base v0.37.2
	k8s.io/kubernetes v1.37.2
)
`

// repository makes a source folder as it lies in the repository.
func repository(t *testing.T) (root, source string) {
	t.Helper()
	root = t.TempDir()
	source = filepath.Join(root, "examples", "localtenant")
	put(t, filepath.Join(source, "go.mod"), "module "+modulePath+"\n")
	put(t, filepath.Join(source, "components", "go.mod"), componentsMod)
	put(t, filepath.Join(source, "components", "go.sum"), "")
	put(t, filepath.Join(source, "components", "main.go"), "package main\n")
	return root, source
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

func TestFindSource(t *testing.T) {
	root, source := repository(t)
	deep := filepath.Join(root, "docs", "deep")
	for _, test := range []struct {
		name  string
		named string
		start []string
	}{
		{"in the root of the repository", "", []string{root}},
		{"in the folder itself", "", []string{source}},
		{"in a folder of the source", "", []string{filepath.Join(source, "cli")}},
		{"in another folder of the repository", "", []string{deep}},
		{"by the second start", "", []string{"/", deep}},
		{"named", source, []string{"/"}},
	} {
		if got, err := FindSource(test.named, test.start...); err != nil || got != source {
			t.Errorf("%s: %q, %v; want %q", test.name, got, err, source)
		}
	}
	if _, err := FindSource("", t.TempDir()); !errors.Is(err, ErrNoSource) {
		t.Errorf("elsewhere: %v, want ErrNoSource", err)
	}
	if _, err := FindSource(root); err == nil {
		t.Error("a named folder without the module was taken")
	}
}

func TestVersion(t *testing.T) {
	_, source := repository(t)
	components := filepath.Join(source, "components")
	read := func() Version {
		t.Helper()
		version, err := ReadVersion(components)
		if err != nil {
			t.Fatal(err)
		}
		return version
	}
	first := read()
	if first.Kubernetes != "v1.37.2" || !strings.HasPrefix(first.Key(), "v1.37.2-") {
		t.Errorf("version is %+v", first)
	}
	put(t, filepath.Join(components, "notes.txt"), "no part of the build")
	if read() != first {
		t.Error("a file that is not built from changes the key")
	}
	for _, name := range []string{"go.sum", "main.go", "new.go"} {
		before := read()
		put(t, filepath.Join(components, name), "package main // changed\n")
		if read() == before {
			t.Errorf("a change of %s does not change the key", name)
		}
	}
	put(t, filepath.Join(components, "go.mod"), "module x\n")
	if _, err := ReadVersion(components); err == nil {
		t.Error("a module without Kubernetes was taken")
	}
}

func TestLinkerFlags(t *testing.T) {
	flags, err := Version{Kubernetes: "v1.37.2"}.linkerFlags()
	want := "-s -w -X k8s.io/component-base/version.gitVersion=v1.37.2 -X k8s.io/component-base/version.gitMajor=1" +
		" -X k8s.io/component-base/version.gitMinor=37 -X k8s.io/component-base/version.gitTreeState=clean"
	if err != nil || flags != want {
		t.Errorf("flags are %q, %v; want %q", flags, err, want)
	}
	if _, err := (Version{Kubernetes: "latest"}).linkerFlags(); err == nil {
		t.Error("a version that is none was taken")
	}
}

func TestCacheDir(t *testing.T) {
	for _, test := range []struct{ xdg, home, want string }{
		{"/c", "/h", "/c/tenant-executor/localtenant"},
		{"", "/h", "/h/.cache/tenant-executor/localtenant"},
		{"relative", "/h", "/h/.cache/tenant-executor/localtenant"},
		{"", "", ""},
	} {
		env := map[string]string{"XDG_CACHE_HOME": test.xdg, "HOME": test.home}
		got, err := CacheDir(func(name string) string { return env[name] })
		if got != test.want || (err == nil) != (test.want != "") {
			t.Errorf("%+v: %q, %v", test, got, err)
		}
	}
}
