package main

import (
	"bytes"
	"compress/gzip"
	"encoding/pem"
	"io"
	"io/fs"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// received is an upload as GitLab gets it.
type received struct {
	path, query, token, fileName string
	body                         []byte
}

// gitlabServer takes uploads and answers with the statuses given.
func gitlabServer(t *testing.T, statuses answers) (*httptest.Server, *[]received) {
	t.Helper()
	var all []received
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		file, header, err := r.FormFile("file")
		if err != nil || r.Method != http.MethodPost {
			http.Error(w, "no upload", http.StatusBadRequest)
			return
		}
		body, err := io.ReadAll(file)
		if err != nil {
			t.Error(err)
		}
		all = append(all, received{r.URL.Path, r.URL.RawQuery, r.Header.Get("JOB-TOKEN"), header.Filename, body})
		statuses.next(w)
		_, _ = io.WriteString(w, `{"message":"says GitLab"}`)
	}))
	t.Cleanup(server.Close)
	return server, &all
}

func uploadArgs(url string, more ...string) []string {
	return append([]string{
		"artifacts-uploader", "--url", url, "--token", "secret", "--id", "42",
		"--timeout", "1h0m0s", "--response-header-timeout", "10m0s",
	}, more...)
}

func TestUploadZip(t *testing.T) {
	p := newProject(t)
	p.env["NAME"] = "of-the-job"
	p.write("dist/app", "#!/bin/sh\n", 0o755)
	p.write("dist/sub/data.txt", "data", 0o640)
	p.write("dist/sub/skip.tmp", "no", 0o644)
	p.write("other.txt", "no", 0o644)
	p.link("dist/current", "sub/data.txt")
	p.link("dist/loop", "..")
	server, uploads := gitlabServer(t, answers{201})

	p.expect(0, `Uploading artifacts as "archive" for job 42: 201 Created`, uploadArgs(server.URL+"/",
		"--path", "dist/**", "--exclude", "dist/**/*.tmp", "--name", "dir/$NAME", "--expire-in", "1 week",
		"--artifact-format", "zip", "--artifact-type", "archive")...)

	if len(*uploads) != 1 {
		t.Fatalf("%d uploads, want 1", len(*uploads))
	}
	got := (*uploads)[0]
	entries := entriesOf(t, got.body)
	got.body = nil
	want := received{
		path:  "/api/v4/jobs/42/artifacts",
		query: "artifact_format=zip&artifact_type=archive&expire_in=1+week",
		token: "secret", fileName: "of-the-job.zip",
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(received{})); diff != "" {
		t.Error(diff)
	}
	wantEntries := map[string]zipEntry{
		"dist/":             {"dist/", "", fs.ModeDir | 0o755},
		"dist/app":          {"dist/app", "#!/bin/sh\n", 0o755},
		"dist/current":      {"dist/current", "sub/data.txt", fs.ModeSymlink | 0o777},
		"dist/loop":         {"dist/loop", "..", fs.ModeSymlink | 0o777},
		"dist/sub/":         {"dist/sub/", "", fs.ModeDir | 0o755},
		"dist/sub/data.txt": {"dist/sub/data.txt", "data", 0o640},
	}
	if diff := cmp.Diff(wantEntries, entries, cmp.AllowUnexported(zipEntry{})); diff != "" {
		t.Error(diff)
	}
}

func TestUploadSelections(t *testing.T) {
	for _, c := range []struct {
		name string
		args []string
		want []string // entries; nil means no upload at all
		text string
	}{
		{"folder", []string{"--path", "dist/"}, []string{"dist/", "dist/a.txt", "dist/deep/", "dist/deep/b.txt"}, "found 4"},
		{"whole project", []string{"--path", "."}, []string{"dist/", "dist/a.txt", "dist/deep/", "dist/deep/b.txt", "top.txt"}, ""},
		{"absolute", []string{"--path", "DIR/dist/deep"}, []string{"dist/deep/", "dist/deep/b.txt"}, ""},
		{"absolute pattern", []string{"--path", "DIR/*.txt"}, []string{"top.txt"}, ""},
		{"double star", []string{"--path", "**/*.txt"}, []string{"dist/a.txt", "dist/deep/b.txt", "top.txt"}, "found 3"},
		{"braces", []string{"--path", "{top,nothing}.txt"}, []string{"top.txt"}, ""},
		{"variable", []string{"--path", "${WHERE}/a.txt"}, []string{"dist/a.txt"}, ""},
		{"exclude folder", []string{"--path", "dist", "--exclude", "dist/deep/**"}, []string{"dist/", "dist/a.txt"}, "excluded 2"},
		{"exclude nothing real", []string{"--path", "top.txt", "--exclude", "../x", "--exclude", "["}, []string{"top.txt"}, "ignored"},
		{"one of two missing", []string{"--path", "none", "--path", "top.txt"}, []string{"top.txt"}, "none: no matching files"},
		{"nothing", []string{"--path", "none"}, nil, "No files to upload"},
		{"empty path", []string{"--path", ""}, nil, "empty path"},
		{"parent", []string{"--path", "../secret"}, nil, "outside the project folder"},
		{"parent in a pattern", []string{"--path", "d*/../../s*"}, nil, "outside the project folder"},
		{"absolute elsewhere", []string{"--path", "/etc/passwd"}, nil, "outside the project folder"},
		{"broken pattern", []string{"--path", "a[*"}, nil, "ignored"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newProject(t)
			p.env["WHERE"] = "dist"
			p.write("dist/a.txt", "a", 0o644)
			p.write("dist/deep/b.txt", "b", 0o644)
			p.write("top.txt", "top", 0o644)
			server, uploads := gitlabServer(t, answers{201})
			for i := range c.args {
				c.args[i] = strings.ReplaceAll(c.args[i], "DIR", p.dir)
			}
			p.expect(0, c.text, uploadArgs(server.URL, c.args...)...)
			if c.want == nil {
				if len(*uploads) != 0 {
					t.Errorf("uploaded %v, want nothing", slices.Sorted(maps.Keys(entriesOf(t, (*uploads)[0].body))))
				}
				return
			}
			got := slices.Sorted(maps.Keys(entriesOf(t, (*uploads)[0].body)))
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestUploadThroughLink: a folder that is a link to the outside gives nothing
// away.
func TestUploadThroughLink(t *testing.T) {
	outside := newProject(t)
	outside.write("key", "private", 0o600)
	p := newProject(t)
	p.link("door", outside.dir)
	p.write("ok", "", 0o644)
	server, uploads := gitlabServer(t, answers{201})
	p.expect(0, "door/key is left out", uploadArgs(server.URL, "--path", "door/key", "--path", "door/*", "--path", "ok")...)
	if got := slices.Collect(maps.Keys(entriesOf(t, (*uploads)[0].body))); !slices.Equal(got, []string{"ok"}) {
		t.Errorf("uploaded %v, want ok alone", got)
	}
}

func TestUploadUntracked(t *testing.T) {
	p := newProject(t)
	for _, args := range [][]string{{"init", "-q"}, {"add", "tracked"}} {
		p.write("tracked", "x", 0o644)
		cmd := exec.Command("git", args...)
		cmd.Dir = p.dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git: %v %s", err, out)
		}
	}
	p.write("new file", "n", 0o644)
	p.write("dir/other", "o", 0o644)
	server, uploads := gitlabServer(t, answers{201})
	p.expect(0, "untracked: found 2 files", uploadArgs(server.URL, "--untracked")...)
	got := slices.Sorted(maps.Keys(entriesOf(t, (*uploads)[0].body)))
	if want := []string{"dir/other", "new file"}; !slices.Equal(got, want) {
		t.Errorf("uploaded %v, want %v", got, want)
	}
}

func TestUploadUntrackedWithoutRepository(t *testing.T) {
	p := newProject(t)
	p.expect(0, "untracked files are left out", uploadArgs("http://gitlab.invalid", "--untracked")...)
}

func TestUploadGzipAndRaw(t *testing.T) {
	p := newProject(t)
	p.write("r/one.xml", "<one/>", 0o644)
	p.write("r/two.xml", "<two/>", 0o644)
	server, uploads := gitlabServer(t, answers{201})

	p.expect(0, `as "junit"`, uploadArgs(server.URL, "--path", "r", "--name", "junit.xml", "--artifact-format", "gzip", "--artifact-type", "junit")...)
	p.expect(0, "201", uploadArgs(server.URL, "--path", "r/one.xml", "--name", "one", "--artifact-format", "raw")...)
	p.expect(1, "exactly one file, but 2", uploadArgs(server.URL, "--path", "r/*", "--artifact-format", "raw")...)
	p.expect(1, `"zipzstd" is not known`, uploadArgs(server.URL, "--path", "r/*", "--artifact-format", "zipzstd")...)

	if len(*uploads) < 2 {
		t.Fatalf("%d uploads", len(*uploads))
	}
	zipped := (*uploads)[0]
	r, err := gzip.NewReader(bytes.NewReader(zipped.body))
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(r)
	if err != nil || string(body) != "<one/><two/>" || zipped.fileName != "junit.xml.gz" {
		t.Errorf("gzip %s = %q, %v", zipped.fileName, body, err)
	}
	if raw := (*uploads)[1]; string(raw.body) != "<one/>" || raw.fileName != "one" {
		t.Errorf("raw %s = %q", raw.fileName, raw.body)
	}
}

func TestUploadAnswers(t *testing.T) {
	for _, c := range []struct {
		name     string
		statuses answers
		code     int
		text     string
		uploads  int
		pauses   []time.Duration
	}{
		{"once more", answers{500, 201}, 0, "201 Created", 2, []time.Duration{time.Second}},
		{"broken server", answers{500}, 1, "given up after 3 tries", 3, []time.Duration{time.Second, 2 * time.Second}},
		{"busy server", answers{503}, 1, "given up after 6 tries", 6,
			[]time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 5 * time.Second, 5 * time.Second}},
		{"forbidden", answers{403}, 1, "not allowed: 403 Forbidden: says GitLab", 1, nil},
		{"too large", answers{413}, 1, "larger than GitLab allows", 1, nil},
		{"nonsense", answers{302, 404, 201}, 0, "404 Not Found: says GitLab", 3, []time.Duration{time.Second, 2 * time.Second}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newProject(t)
			p.write("f", "x", 0o644)
			server, uploads := gitlabServer(t, c.statuses)
			p.expect(c.code, c.text, uploadArgs(server.URL, "--path", "f")...)
			if len(*uploads) != c.uploads {
				t.Errorf("%d uploads, want %d", len(*uploads), c.uploads)
			}
			if diff := cmp.Diff(c.pauses, p.pauses); diff != "" {
				t.Error(diff)
			}
			for _, u := range *uploads {
				if _, complete := entriesOf(t, u.body)["f"]; !complete {
					t.Error("an upload lacks the file")
				}
			}
		})
	}
}

func TestUploadFollowsMove(t *testing.T) {
	p := newProject(t)
	p.write("f", "x", 0o644)
	target, uploads := gitlabServer(t, answers{201})
	moved := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Location", target.URL+"/somewhere?x=y")
		w.WriteHeader(http.StatusTemporaryRedirect)
	}))
	defer moved.Close()
	p.expect(0, "GitLab has moved", uploadArgs(moved.URL, "--path", "f")...)
	if len(*uploads) != 1 || (*uploads)[0].path != "/api/v4/jobs/42/artifacts" {
		t.Errorf("uploads after the move: %+v", *uploads)
	}
}

func TestUploadWithoutServer(t *testing.T) {
	p := newProject(t)
	p.write("f", "x", 0o644)
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	p.expect(1, "given up after 3 tries", uploadArgs(server.URL, "--path", "f")...)
}

func TestUploadArguments(t *testing.T) {
	p := newProject(t)
	p.expect(1, "--url is missing", "artifacts-uploader", "--token", "t", "--id", "1")
	p.expect(1, "--token is missing", "artifacts-uploader", "--url", "http://x", "--id", "1")
	p.expect(1, "--id is missing", "artifacts-uploader", "--url", "http://x", "--token", "t")
	p.expect(1, "not the URL of a server", "artifacts-uploader", "--url", "gitlab", "--token", "t", "--id", "1")
	p.write("f", "not a certificate", 0o644)
	p.expect(1, "read GitLab's certificate authority", uploadArgs("http://x", "--tls-ca-file", filepath.Join(p.dir, "none"), "--path", "f")...)
	p.expect(1, "no certificate in PEM form", uploadArgs("http://x", "--tls-ca-file", filepath.Join(p.dir, "f"), "--path", "f")...)
}

// TestUploadAcceptsTheScriptsFlags has every flag the stage scripts may pass.
func TestUploadAcceptsTheScriptsFlags(t *testing.T) {
	p := newProject(t)
	p.write("f", "x", 0o644)
	server, _ := gitlabServer(t, answers{201})
	p.expect(0, "no statement about the artifacts", uploadArgs(server.URL, "--path", "f", "--generate-artifacts-metadata",
		"--runner-id", "1", "--repo-url", "u", "--repo-digest", "d", "--job-name", "n", "--executor-name", "custom",
		"--runner-name", "r", "--started-at", "a", "--ended-at", "b", "--schema-version", "v1",
		"--metadata-parameter", "A", "--metadata-parameter", "B")...)
}

// TestUploadTrustsTheAuthorityOfTheJob: the runner names the file in the job's
// environment.
func TestUploadTrustsTheAuthorityOfTheJob(t *testing.T) {
	p := newProject(t)
	p.write("f", "x", 0o644)
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(http.StatusCreated)
	}))
	defer server.Close()
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	p.expect(1, "certificate", uploadArgs(server.URL, "--path", "f")...)
	p.write("ca.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})), 0o644)
	p.env["CI_SERVER_TLS_CA_FILE"] = filepath.Join(p.dir, "ca.pem")
	p.expect(0, "201", uploadArgs(server.URL, "--path", "f")...)
}
