package binaries

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// compiler puts a stand-in for go on PATH. It notes its calls, and does what
// the script says for a build.
func compiler(t *testing.T, build string) (calls string) {
	t.Helper()
	dir := t.TempDir()
	calls = filepath.Join(dir, "calls")
	put(t, filepath.Join(dir, "go"), "#!/bin/sh\necho \"$CGO_ENABLED $*\" >>"+calls+
		"\nif [ \"$1\" = list ]; then echo a; echo b; exit; fi\nout=$(echo \"$*\" | sed 's/.* -o \\([^ ]*\\).*/\\1/')\n"+build+"\n")
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	return calls
}

func builder(t *testing.T) (Builder, *bytes.Buffer) {
	t.Helper()
	_, source := repository(t)
	var out bytes.Buffer
	return Builder{Source: source, Cache: filepath.Join(t.TempDir(), "cache"), Env: os.Environ(), Out: &out, Now: time.Now}, &out
}

func TestBuildOnce(t *testing.T) {
	calls := compiler(t, "echo k8s.io/a >&2; echo binary >$out; chmod +x $out")
	b, out := builder(t)
	for range 2 {
		path, err := b.Build(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if text, err := os.ReadFile(path); err != nil || string(text) != "binary\n" {
			t.Errorf("the binary is %q, %v", text, err)
		}
	}
	text, err := os.ReadFile(calls)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(string(text), " build "); got != 1 {
		t.Errorf("%d builds, want 1", got)
	}
	if !strings.Contains(string(text), "0 build -v -trimpath -ldflags -s -w ") {
		t.Errorf("built by %q", text)
	}
	for _, want := range []string{"v1.37.2", "16 minutes", "built "} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("it does not say %q: %q", want, out)
		}
	}
}

func TestBuildThatFails(t *testing.T) {
	compiler(t, "echo k8s.io/a >&2; echo 'main.go:7: no such thing' >&2; echo half >$out; exit 1")
	b, _ := builder(t)
	_, err := b.Build(t.Context())
	if err == nil || !strings.Contains(err.Error(), "no such thing") || strings.Contains(err.Error(), "k8s.io/a") {
		t.Errorf("the error is %v; want the complaint and no packages", err)
	}
	if _, err := b.Build(t.Context()); err == nil {
		t.Error("half a binary was taken for one")
	}
}

func TestBuildWithoutCompiler(t *testing.T) {
	b, _ := builder(t)
	t.Setenv("PATH", t.TempDir())
	if _, err := b.Build(t.Context()); err == nil || !strings.Contains(err.Error(), "install Go") {
		t.Errorf("the error is %v; want what to do", err)
	}
}

func TestMeter(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	clock := func() time.Time { return now }
	m := newMeter(&bytes.Buffer{}, false, 1700, clock)
	for _, text := range []string{"k8s.io/a\nk8s.", "io/b\n", "main.go:7: wrong\nint", "ernal/c\n"} {
		if _, err := m.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	now = now.Add(61 * time.Second)
	if got, want := m.line(), "1m1s: 3 of at most 1700 packages compiled"; got != want {
		t.Errorf("progress is %q, want %q", got, want)
	}
	if got := strings.TrimSpace(m.complaints()); got != "main.go:7: wrong" {
		t.Errorf("complaints are %q", got)
	}
	m.total = 0
	if got, want := m.line(), "1m1s: 3 packages compiled"; got != want {
		t.Errorf("progress is %q, want %q", got, want)
	}
}
