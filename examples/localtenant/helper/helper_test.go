package main

import (
	"archive/zip"
	"bytes"
	"context"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// project is a project folder with the surroundings of a helper container.
type project struct {
	t      *testing.T
	dir    string
	env    map[string]string
	pauses []time.Duration // asked for between tries, none is waited
}

func newProject(t *testing.T) *project {
	t.Helper()
	return &project{t: t, dir: t.TempDir(), env: map[string]string{}}
}

// write makes a file with its parents.
func (p *project) write(name, body string, mode fs.FileMode) {
	p.t.Helper()
	file := filepath.Join(p.dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(body), 0o600); err != nil {
		p.t.Fatal(err)
	}
	if err := os.Chmod(file, mode); err != nil {
		p.t.Fatal(err)
	}
}

func (p *project) link(name, target string) {
	p.t.Helper()
	if err := os.Symlink(target, filepath.Join(p.dir, name)); err != nil {
		p.t.Fatal(err)
	}
}

func (p *project) read(name string) string {
	p.t.Helper()
	body, err := os.ReadFile(filepath.Join(p.dir, name))
	if err != nil {
		p.t.Fatal(err)
	}
	return string(body)
}

// run runs the program in the folder and returns its exit code and its output.
func (p *project) run(args ...string) (code int, output string) {
	p.t.Helper()
	var out bytes.Buffer
	h := host{
		dir:     p.dir,
		stdout:  &out,
		console: console{out: &out},
		getenv:  func(name string) string { return p.env[name] },
		sleep: func(ctx context.Context, d time.Duration) error {
			p.pauses = append(p.pauses, d)
			return ctx.Err()
		},
	}
	code = exitCode(h.console, newRoot(h, args).ExecuteContext(p.t.Context()))
	return code, out.String()
}

// expect runs the program and checks its exit code and that its output has a
// text in it.
func (p *project) expect(code int, text string, args ...string) string {
	p.t.Helper()
	got, output := p.run(args...)
	if got != code || !strings.Contains(output, text) {
		p.t.Fatalf("%s: exit code %d, want %d and %q in:\n%s", args[0], got, code, text, output)
	}
	return output
}

// zipEntry is an entry of an archive in a test.
type zipEntry struct {
	name, body string
	mode       fs.FileMode
}

// zipOf makes an archive.
func zipOf(t *testing.T, entries ...zipEntry) []byte {
	t.Helper()
	var buf bytes.Buffer
	w := zip.NewWriter(&buf)
	for _, e := range entries {
		header := &zip.FileHeader{Name: e.name, Modified: time.Date(2020, 2, 3, 4, 5, 6, 0, time.UTC)}
		header.SetMode(e.mode)
		entry, err := w.CreateHeader(header)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(entry, e.body); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// entriesOf reads an archive: name → mode and content.
func entriesOf(t *testing.T, archive []byte) map[string]zipEntry {
	t.Helper()
	r, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
	if err != nil {
		t.Fatal(err)
	}
	entries := map[string]zipEntry{}
	for _, f := range r.File {
		rc, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(rc)
		if err != nil {
			t.Fatal(err)
		}
		entries[f.Name] = zipEntry{name: f.Name, body: string(body), mode: f.Mode()}
	}
	return entries
}

// answers is a server's next answers; the last one is repeated.
type answers []int

func (a *answers) next(w http.ResponseWriter) int {
	status := (*a)[0]
	if len(*a) > 1 {
		*a = (*a)[1:]
	}
	w.WriteHeader(status)
	return status
}

func TestVersion(t *testing.T) {
	newProject(t).expect(0, version, "--version")
}

func TestUnknown(t *testing.T) {
	p := newProject(t)
	p.expect(1, "unknown", "no-such-verb")
	p.expect(1, "unknown flag", "cache-extractor", "--no-such-flag")
}
