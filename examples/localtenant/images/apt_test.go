package images

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// fakeApt puts an apt-get and an apt-config in front of the machine's. The
// former runs script; each call is noted in the file calls.
func fakeApt(t *testing.T, script string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "lists"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"apt-get":    "#!/bin/sh\ncd " + dir + "\nfor a; do case $a in -*print-uris|-*download-only|update) echo $a >>calls;; esac; done\n" + script,
		"apt-config": "#!/bin/sh\necho \"lists='" + dir + "/lists/'\"\necho \"etc='" + dir + "/etc/'\"\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	t.Setenv("APT_PATIENCE", "0")
	return dir
}

func newApt(t *testing.T) *apt {
	t.Helper()
	return &apt{run: commands{env: os.Environ()}, folder: t.TempDir()}
}

func calls(t *testing.T, dir string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "calls"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(text))
}

const twoPackages = `echo "'http://mirror/a.deb' a_1%3a2_amd64.deb 10 SHA256:aa"; echo "'http://mirror/b.deb' b_2_all.deb 20 SHA256:bb"`

func TestClosureIsAskedOnceForEachState(t *testing.T) {
	dir := fakeApt(t, twoPackages)
	a := newApt(t)
	want := []archive{{"a_1%3a2_amd64.deb", "SHA256:aa"}, {"b_2_all.deb", "SHA256:bb"}}
	ask := func(packages ...string) {
		t.Helper()
		got, err := a.closure(t.Context(), packages)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
	ask("a")
	ask("a")
	if n := len(calls(t, dir)); n != 1 {
		t.Errorf("apt was asked %d times for one question", n)
	}
	ask("a", "b")
	if err := os.WriteFile(filepath.Join(dir, "lists", "Packages"), []byte("new"), 0o644); err != nil {
		t.Fatal(err)
	}
	ask("a")
	if n := len(calls(t, dir)); n != 3 {
		t.Errorf("apt was asked %d times, want once more for another question and for new lists", n)
	}
}

func TestClosureFailures(t *testing.T) {
	for _, c := range []struct {
		name, script, text string
		stale              bool
	}{
		{"unknown", "echo 'E: Unable to locate package a' >&2; exit 100", "Unable to locate package a", true},
		{"nothing", "", "named no package", false},
		{"unreadable", "echo hello", "cannot read the line", false},
		{"no hash", `echo "'http://mirror/a.deb' a.deb 10"`, "cannot read the line", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			fakeApt(t, c.script)
			_, err := newApt(t).closure(t.Context(), []string{"a"})
			if err == nil || !strings.Contains(err.Error(), c.text) {
				t.Fatalf("error %v, want %q", err, c.text)
			}
			var stale *aptError
			if errors.As(err, &stale) != c.stale {
				t.Errorf("%v: curable by fresh lists = %v, want %v", err, !c.stale, c.stale)
			}
			if c.stale && !strings.Contains(err.Error(), `"apt-get update"`) {
				t.Errorf("%v does not say what to do", err)
			}
		})
	}
}

func TestWithoutApt(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := newApt(t).closure(t.Context(), []string{"a"})
	if err == nil || !strings.Contains(err.Error(), "apt-config is needed to make images") {
		t.Errorf("error %v", err)
	}
}

func TestPackagesLeftOut(t *testing.T) {
	fakeApt(t, twoPackages)
	w := &workshop{apt: newApt(t), architecture: runtime.GOARCH}
	inputs, err := DebianPackages{Install: []string{"a"}, Without: []string{"b*"}}.inputs(t.Context(), w)
	if err != nil || inputs != "a_1%3a2_amd64.deb SHA256:aa" {
		t.Errorf("inputs = %q, %v", inputs, err)
	}
	if _, err := (DebianPackages{Install: []string{"a"}, Without: []string{"["}}).inputs(t.Context(), w); err == nil {
		t.Error("a broken pattern is accepted")
	}
}

// TestListsAreRefreshed has an apt that knows the package after an update.
func TestListsAreRefreshed(t *testing.T) {
	const script = `case $1 in update) touch updated; exit 0;; esac
[ -e updated ] || { echo 'E: Unable to locate package' >&2; exit 100; }
` + twoPackages
	for _, c := range []struct {
		name   string
		isRoot bool
		calls  []string
	}{
		{"root", true, []string{"--print-uris", "update", "--print-uris", "--download-only"}},
		{"other", false, []string{"--print-uris"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := fakeApt(t, script)
			w, err := newWorkshop(Options{Cache: t.TempDir(), Source: t.TempDir()})
			if err != nil {
				t.Fatal(err)
			}
			w.isRoot = c.isRoot
			// It ends in an error all the same: there are no package files.
			_, err = w.layer(t.Context(), DebianPackages{Install: []string{"a"}})
			var stale *aptError
			if errors.As(err, &stale) == c.isRoot {
				t.Errorf("error %v", err)
			}
			if diff := cmp.Diff(c.calls, calls(t, dir)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
