package main

import (
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func downloadArgs(url string) []string {
	return []string{"artifacts-downloader", "--url", url, "--token", "secret", "--id", "7"}
}

// artifacts serves an archive as the artifacts of job 7.
func artifacts(t *testing.T, archive []byte, statuses answers) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet || r.URL.Path != "/api/v4/jobs/7/artifacts" || r.Header.Get("JOB-TOKEN") != "secret" {
			t.Errorf("request %s %s with token %q", r.Method, r.URL, r.Header.Get("JOB-TOKEN"))
		}
		if statuses.next(w) == http.StatusOK {
			_, _ = w.Write(archive)
		}
	}))
	t.Cleanup(server.Close)
	return server
}

func TestDownload(t *testing.T) {
	p := newProject(t)
	p.write("dist/app", "old", 0o600)
	p.link("dist/was-a-link", "app")
	archive := zipOf(t,
		zipEntry{"dist/", "", fs.ModeDir | 0o555},
		zipEntry{"dist/app", "new", 0o751},
		zipEntry{"dist/was-a-link", "file", 0o644},
		zipEntry{"dist/current", "app", fs.ModeSymlink | 0o777},
		zipEntry{"no/folder/entry", "deep", 0o644},
		zipEntry{"abs", "/etc/hostname", fs.ModeSymlink | 0o777},
	)
	p.expect(0, "Downloading artifacts of job 7: 200 OK", downloadArgs(artifacts(t, archive, answers{200}).URL)...)
	for name, want := range map[string]string{"dist/app": "new", "dist/was-a-link": "file", "dist/current": "new", "no/folder/entry": "deep"} {
		if got := p.read(name); got != want {
			t.Errorf("%s = %q, want %q", name, got, want)
		}
	}
	for name, want := range map[string]fs.FileMode{"dist": 0o555, "dist/app": 0o751} {
		info, err := os.Stat(filepath.Join(p.dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != want {
			t.Errorf("%s has mode %o, want %o", name, info.Mode().Perm(), want)
		}
		if want := time.Date(2020, 2, 3, 4, 5, 6, 0, time.UTC); !info.ModTime().Equal(want) {
			t.Errorf("%s has time %s, want %s", name, info.ModTime().UTC(), want)
		}
	}
	if target, err := os.Readlink(filepath.Join(p.dir, "abs")); err != nil || target != "/etc/hostname" {
		t.Errorf("abs -> %q, %v", target, err)
	}
}

func TestDownloadRefusesToWriteOutside(t *testing.T) {
	for _, c := range []struct {
		name    string
		entries []zipEntry
		text    string
		first   bool // whether the first, harmless entry is unpacked
	}{
		{"parent", []zipEntry{{"ok", "", 0o644}, {"../evil", "x", 0o644}}, "nothing was unpacked", false},
		{"inner parent", []zipEntry{{"ok", "", 0o644}, {"a/../../evil", "x", 0o644}}, "nothing was unpacked", false},
		{"absolute", []zipEntry{{"ok", "", 0o644}, {"/evil", "x", 0o644}}, "nothing was unpacked", false},
		{"backslash", []zipEntry{{"ok", "", 0o644}, {`..\evil`, "x", 0o644}}, "nothing was unpacked", false},
		{"link to a folder", []zipEntry{{"ok", "", 0o644}, {"door", "OUTSIDE", fs.ModeSymlink | 0o777}, {"door/evil", "x", 0o644}}, "escapes", true},
		{"link to the parent", []zipEntry{{"ok", "", 0o644}, {"door", "..", fs.ModeSymlink | 0o777}, {"door/evil", "x", 0o644}}, "escapes", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			outside := newProject(t)
			p := newProject(t)
			p.dir = filepath.Join(outside.dir, "project")
			if err := os.Mkdir(p.dir, 0o755); err != nil {
				t.Fatal(err)
			}
			for i := range c.entries {
				if c.entries[i].body == "OUTSIDE" {
					c.entries[i].body = outside.dir
				}
			}
			p.expect(1, c.text, downloadArgs(artifacts(t, zipOf(t, c.entries...), answers{200}).URL)...)
			if _, err := os.Lstat(filepath.Join(outside.dir, "evil")); err == nil {
				t.Error("a file was written outside the project folder")
			}
			if _, err := os.Lstat(filepath.Join(p.dir, "ok")); (err == nil) != c.first {
				t.Errorf("first entry: %v, want unpacked = %v", err, c.first)
			}
		})
	}
}

func TestDownloadAnswers(t *testing.T) {
	archive := zipOf(t, zipEntry{"f", "x", 0o644})
	for _, c := range []struct {
		name     string
		archive  []byte
		statuses answers
		code     int
		text     string
	}{
		{"once more", archive, answers{502, 200}, 0, "200 OK"},
		{"broken server", archive, answers{500}, 1, "given up after 3 tries"},
		{"none", archive, answers{404, 200}, 1, "has no artifacts"},
		{"forbidden", archive, answers{403, 200}, 1, "not allowed"},
		{"unauthorized", archive, answers{401, 200}, 1, "not allowed"},
		{"not a zip", []byte("<html>"), answers{200}, 1, "not a valid zip"},
		{"empty", nil, answers{200}, 1, "not a valid zip"},
		{"zstd", []byte("\x28\xb5\x2f\xfd1234"), answers{200}, 1, "zstd"},
		{"gzip", []byte("\x1f\x8b1234"), answers{200}, 1, "gzip"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newProject(t)
			p.env["ARCHIVER_STAGING_DIR"] = t.TempDir()
			p.expect(c.code, c.text, downloadArgs(artifacts(t, c.archive, c.statuses).URL)...)
			if left, err := os.ReadDir(p.env["ARCHIVER_STAGING_DIR"]); err != nil || len(left) != 0 {
				t.Errorf("left in the staging folder: %v, %v", left, err)
			}
		})
	}
}

// TestDownloadPartlyFirst: a try that breaks in the middle leaves nothing in
// the archive of the next.
func TestDownloadPartlyFirst(t *testing.T) {
	first := true
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if first {
			first = false
			w.Header().Set("Content-Length", "100000")
			_, _ = w.Write(make([]byte, 50000))
			return // the connection is cut
		}
		_, _ = w.Write([]byte("whole"))
	}))
	defer server.Close()
	file, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	d := artifactsDownloader{host: host{console: console{out: io.Discard}}, server: gitlab{url: server.URL, token: "t", id: 7}}
	var again *retryableError
	if err := d.download(t.Context(), http.DefaultClient, file, 0); !errors.As(err, &again) {
		t.Fatalf("first try = %v, want one that may be made again", err)
	}
	if err := d.download(t.Context(), http.DefaultClient, file, 1); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(file.Name()); err != nil || string(got) != "whole" {
		t.Errorf("archive of %d bytes, %v, want the second answer alone", len(got), err)
	}
}

// TestDownloadDirectly goes to an object store, which must not see the token.
func TestDownloadDirectly(t *testing.T) {
	p := newProject(t)
	p.env["FF_USE_DIRECT_DOWNLOAD"] = "true"
	archive := zipOf(t, zipEntry{"f", "x", 0o644})
	store := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if token := r.Header.Get("JOB-TOKEN"); token != "" {
			t.Errorf("the object store got the token %q", token)
		}
		_, _ = w.Write(archive)
	}))
	defer store.Close()
	gitlab := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("direct_download") != "true" {
			t.Errorf("query %q, want direct_download", r.URL.RawQuery)
		}
		http.Redirect(w, r, store.URL, http.StatusFound)
	}))
	defer gitlab.Close()
	p.expect(0, "200 OK", downloadArgs(gitlab.URL)...)
	if p.read("f") != "x" {
		t.Error("not unpacked")
	}
}
