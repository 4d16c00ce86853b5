package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// objectStore keeps what is put into it and answers as S3 does.
type objectStore struct {
	*httptest.Server
	mu       sync.Mutex
	objects  map[string][]byte
	headers  http.Header // of the last PUT
	statuses answers     // given instead of an answer, until only one is left
}

func newObjectStore(t *testing.T, statuses ...int) *objectStore {
	t.Helper()
	s := &objectStore{objects: map[string][]byte{}, statuses: append(statuses, 0)}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(s.Close)
	return s
}

func (s *objectStore) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	body, _ := io.ReadAll(r.Body)
	if len(s.statuses) > 1 {
		s.statuses.next(w)
		return
	}
	switch r.Method {
	case http.MethodPut:
		s.objects[r.URL.Path] = body
		s.headers = r.Header
	case http.MethodGet:
		object, found := s.objects[r.URL.Path]
		if !found {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		w.Header().Set("Last-Modified", time.Date(2021, 1, 1, 0, 0, 0, 0, time.UTC).Format(http.TimeFormat))
		_, _ = w.Write(object)
	}
}

func archiverArgs(more ...string) []string {
	return append([]string{"cache-archiver", "--file", "../cache/key/cache.zip", "--timeout", "10"}, more...)
}

func extractorArgs(more ...string) []string {
	return append([]string{"cache-extractor", "--file", "../cache/key/cache.zip", "--timeout", "10"}, more...)
}

// newCachedProject has the cache's folder beside the project's, as a runner
// lays them out.
func newCachedProject(t *testing.T) *project {
	t.Helper()
	p := newProject(t)
	p.dir = filepath.Join(p.dir, "project")
	if err := os.Mkdir(p.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return p
}

func TestCacheOnThisMachine(t *testing.T) {
	p := newCachedProject(t)
	p.expect(1, "WARNING: there is no cache yet", extractorArgs()...)
	p.expect(0, "No files to cache", archiverArgs("--path", "vendor")...)
	p.write("vendor/lib", "v1", 0o755)
	p.expect(0, "stored on this machine only", archiverArgs("--path", "vendor")...)
	p.expect(0, "Archive is up to date!", archiverArgs("--path", "vendor")...)

	if err := os.RemoveAll(filepath.Join(p.dir, "vendor")); err != nil {
		t.Fatal(err)
	}
	p.expect(0, "taken from this machine", extractorArgs()...)
	if p.read("vendor/lib") != "v1" {
		t.Error("not brought back")
	}
	// What was just brought back is not newer than the archive.
	p.expect(0, "Archive is up to date!", archiverArgs("--path", "vendor")...)

	p.write("vendor/lib", "v2", 0o755)
	later := time.Now().Add(time.Hour)
	if err := os.Chtimes(filepath.Join(p.dir, "vendor/lib"), later, later); err != nil {
		t.Fatal(err)
	}
	p.expect(0, "stored on this machine only", archiverArgs("--path", "vendor")...)
	p.write("vendor/lib", "damaged", 0o755)
	p.expect(0, "", extractorArgs()...)
	if got := p.read("vendor/lib"); got != "v2" {
		t.Errorf("vendor/lib = %q, want the second version", got)
	}
	if left, err := filepath.Glob(filepath.Join(p.dir, "../cache/key/*")); err != nil || len(left) != 1 {
		t.Errorf("in the cache's folder: %v, %v", left, err)
	}
}

func TestCacheInObjectStore(t *testing.T) {
	store := newObjectStore(t, 503, 500)
	url := store.URL + "/bucket/key?signature=sesame"
	p := newCachedProject(t)
	p.write("vendor/lib", "v1", 0o644)
	output := p.expect(0, "Uploading cache.zip to "+store.URL+"/bucket/key", archiverArgs("--path", "vendor", "--url", url,
		"--header", "X-Amz-Meta-Cachekey: k", "--header", "Content-Type: application/zip", "--check-url", "u",
		"--env-file", "e", "--alternate-file", "../cache/other/cache.zip")...)
	if strings.Contains(output, "sesame") {
		t.Errorf("the log shows the signature:\n%s", output)
	}
	if got := store.headers.Get("X-Amz-Meta-Cachekey") + " " + store.headers.Get("Content-Type"); got != "k application/zip" {
		t.Errorf("headers %q", got)
	}

	other := newCachedProject(t) // another machine
	store.statuses = answers{500, 0}
	output = other.expect(0, "Downloading cache.zip from", extractorArgs("--url", url, "--head-url", "u")...)
	if strings.Contains(output, "sesame") || other.read("vendor/lib") != "v1" {
		t.Errorf("output:\n%s", output)
	}
	other.expect(0, "cache.zip is up to date", extractorArgs("--url", url)...)
	other.expect(0, "the object store", extractorArgs("--url", store.URL+"/bucket/key", "--redact-url", "--file", "../cache/new.zip")...)
}

func TestCacheMissingInObjectStore(t *testing.T) {
	store := newObjectStore(t)
	p := newCachedProject(t)
	p.expect(1, "WARNING: there is no cache yet", extractorArgs("--url", store.URL+"/none")...)
	store.objects["/other"] = zipOf(t, zipEntry{"f", "from the other key", 0o644})
	p.expect(0, "/other", extractorArgs("--url", store.URL+"/none", "--alternate-url", store.URL+"/other", "--alternate-head-url", "u")...)
	if p.read("f") != "from the other key" {
		t.Error("not unpacked")
	}
}

func TestCacheStoreFails(t *testing.T) {
	p := newCachedProject(t)
	p.write("f", "x", 0o644)
	busy := newObjectStore(t, 500, 500, 500, 500, 500, 500, 500, 500)
	p.expect(1, "FATAL: given up after 3 tries", archiverArgs("--path", "f", "--url", busy.URL+"/k")...)
	p.expect(1, "WARNING: given up after 3 tries", extractorArgs("--url", busy.URL+"/k")...)
	denied := newObjectStore(t, 403, 403)
	p.expect(1, "403", extractorArgs("--url", denied.URL+"/k")...)
	if len(denied.statuses) != 2 {
		t.Error("a refusal was tried again")
	}
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	output := p.expect(1, "given up", extractorArgs("--url", gone.URL+"/k?signature=sesame")...)
	if strings.Contains(output, "sesame") {
		t.Errorf("the log shows the signature:\n%s", output)
	}
}

func TestCacheTooLargeToUpload(t *testing.T) {
	store := newObjectStore(t)
	p := newCachedProject(t)
	p.write("f", "x", 0o644)
	p.expect(0, "the limit is 10", archiverArgs("--path", "f", "--url", store.URL+"/k", "--max-uploaded-archive-size", "10")...)
	if len(store.objects) != 0 {
		t.Error("uploaded all the same")
	}
}

func TestCacheAlternateFile(t *testing.T) {
	p := newCachedProject(t)
	p.write("f", "x", 0o644)
	p.expect(0, "", archiverArgs("--path", "f")...)
	p.expect(0, "Archive is up to date!", "cache-archiver", "--file", "../cache/hashed/cache.zip",
		"--alternate-file", "../cache/key/cache.zip", "--path", "f")
	if _, err := os.Stat(filepath.Join(p.dir, "../cache/hashed/cache.zip")); err != nil {
		t.Error(err)
	}
}

func TestCacheArguments(t *testing.T) {
	p := newCachedProject(t)
	p.write("f", "x", 0o644)
	p.expect(1, "--file is missing", "cache-archiver", "--path", "f")
	p.expect(1, "--file is missing", "cache-extractor")
	p.expect(1, "--gocloud-url is not supported", extractorArgs("--gocloud-url", "s3://bucket")...)
	p.env["CACHE_COMPRESSION_FORMAT"] = "tarzstd"
	p.expect(0, "made as zip", archiverArgs("--path", "f")...)
	p.write("../cache/key/cache.zip", "damaged", 0o644)
	p.expect(1, "FATAL", extractorArgs()...)
}
