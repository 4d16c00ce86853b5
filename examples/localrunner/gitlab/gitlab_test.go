package gitlab

import (
	"bytes"
	"errors"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// start serves a copy of the folder's repository.
func start(t *testing.T, source string) (*Server, *Repository, string) {
	t.Helper()
	dir := t.TempDir()
	repo, err := CopyRepository(t.Context(), filepath.Join(dir, "repositories"), "group/demo", source, 7)
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(dir, repo, filepath.Join(dir, "store"))
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(s)
	t.Cleanup(web.Close)
	return s, repo, web.URL
}

func folder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "file"), []byte("content\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func git(t *testing.T, dir string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=a", "-c", "user.email=a@b"}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_TERMINAL_PROMPT=0", "GIT_CONFIG_GLOBAL=/dev/null")
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

func mustGit(t *testing.T, dir string, args ...string) string {
	t.Helper()
	out, err := git(t, dir, args...)
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return out
}

func withLogin(url, user, password string) string {
	return strings.Replace(url, "http://", "http://"+user+":"+password+"@", 1) + "/group/demo.git"
}

func TestCloneNeedsAJobToken(t *testing.T) {
	s, repo, url := start(t, folder(t))
	token := s.NewToken(1)
	to := t.TempDir()
	mustGit(t, to, "clone", "--quiet", withLogin(url, "gitlab-ci-token", token), "good")
	if sha := mustGit(t, to+"/good", "rev-parse", "HEAD"); sha != repo.SHA {
		t.Errorf("cloned %s, want %s", sha, repo.SHA)
	}
	mustGit(t, to+"/good", "fetch", "--quiet", "origin", "refs/pipelines/7")
	for name, address := range map[string]string{
		"wrong token": withLogin(url, "gitlab-ci-token", "x"),
		"wrong user":  withLogin(url, "root", token),
		"no login":    url + "/group/demo.git",
	} {
		if out, err := git(t, to, "clone", "--quiet", address, "bad"); err == nil {
			t.Errorf("%s: the clone went well: %s", name, out)
		}
	}
	mustGit(t, to+"/good", "commit", "--quiet", "--allow-empty", "-m", "x")
	if out, err := git(t, to+"/good", "push", "--quiet"); err == nil {
		t.Errorf("the push went well: %s", out)
	}
}

func TestCopyOfARepository(t *testing.T) {
	dir := folder(t)
	mustGit(t, dir, "init", "--quiet", "--initial-branch", "trunk")
	mustGit(t, dir, "add", ".")
	mustGit(t, dir, "commit", "--quiet", "-m", "first one")
	sub := filepath.Join(dir, "sub")
	if err := os.Mkdir(sub, 0o700); err != nil {
		t.Fatal(err)
	}
	_, repo, _ := start(t, sub)
	sha := mustGit(t, dir, "rev-parse", "HEAD")
	if repo.Branch != "trunk" || repo.Title != "first one" || repo.SHA != sha || repo.Changed {
		t.Errorf("got %+v, want trunk at %s, unchanged", repo, sha)
	}
	if err := os.WriteFile(filepath.Join(sub, "new"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, repo, _ = start(t, sub); !repo.Changed {
		t.Error("a new file is not noticed")
	}
	mustGit(t, dir, "checkout", "--quiet", "--detach")
	mustGit(t, dir, "commit", "--quiet", "--allow-empty", "-m", "second")
	sha = mustGit(t, dir, "rev-parse", "HEAD")
	if _, repo, _ = start(t, sub); repo.Branch != "HEAD" || repo.SHA != sha {
		t.Errorf("detached: got %+v, want HEAD at %s", repo, sha)
	}
}

func TestProjectPathIsChecked(t *testing.T) {
	for _, project := range []string{"", "demo", "/root/demo", "../a/b"} {
		if _, err := CopyRepository(t.Context(), t.TempDir(), project, folder(t), 1); err == nil {
			t.Errorf("project %q is taken", project)
		}
	}
}

func request(t *testing.T, method, url, token string, body io.Reader, contentType string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, body)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("JOB-TOKEN", token)
	r.Header.Set("Content-Type", contentType)
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(data)
}

func form(t *testing.T, field, name, content string) (io.Reader, string) {
	t.Helper()
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	part, err := w.CreateFormFile(field, name)
	if err == nil {
		_, err = part.Write([]byte(content))
	}
	if err != nil || w.Close() != nil {
		t.Fatal(err)
	}
	return &body, w.FormDataContentType()
}

func TestArtifacts(t *testing.T) {
	s, _, url := start(t, folder(t))
	token, other := s.NewToken(1), s.NewToken(2)
	url += "/api/v4/jobs/1/artifacts"
	if _, err := s.Artifacts(1); !errors.Is(err, ErrNoArtifacts) {
		t.Errorf("before the upload: %v", err)
	}
	if code, _ := request(t, "GET", url, token, nil, ""); code != http.StatusNotFound {
		t.Errorf("before the upload: status %d", code)
	}
	for name, c := range map[string]struct {
		token, field string
		code         int
	}{
		"other job's token": {other, "file", http.StatusForbidden},
		"no token":          {"", "file", http.StatusForbidden},
		"no file":           {token, "other", http.StatusBadRequest},
		"good":              {token, "file", http.StatusCreated},
	} {
		body, kind := form(t, c.field, "../../up.zip", "zip content")
		if code, text := request(t, "POST", url, c.token, body, kind); code != c.code {
			t.Errorf("%s: status %d, want %d: %s", name, code, c.code, text)
		}
	}
	body, kind := form(t, "file", "report.xml", "report")
	if code, _ := request(t, "POST", url+"?artifact_type=junit", token, body, kind); code != http.StatusCreated {
		t.Errorf("a report: status %d", code)
	}
	archive, err := s.Artifacts(1)
	if err != nil || archive.Filename != "up.zip" || archive.Size != 11 {
		t.Errorf("got %+v, %v", archive, err)
	}
	if code, text := request(t, "GET", url+"?direct_download=true", token, nil, ""); code != http.StatusOK || text != "zip content" {
		t.Errorf("download: status %d, %q", code, text)
	}
	if code, _ := request(t, "GET", url, other, nil, ""); code != http.StatusForbidden {
		t.Errorf("download with another token: status %d", code)
	}
}

func TestCacheStore(t *testing.T) {
	s, _, url := start(t, folder(t))
	address := url + s.CachePath("a/key")
	if code, _ := request(t, "GET", address, "", nil, ""); code != http.StatusNotFound {
		t.Errorf("an unknown key: status %d", code)
	}
	if code, text := request(t, "PUT", address, "", strings.NewReader("zip"), ""); code != http.StatusOK {
		t.Errorf("putting: status %d, %s", code, text)
	}
	if code, text := request(t, "GET", address, "", nil, ""); code != http.StatusOK || text != "zip" {
		t.Errorf("getting: status %d, %q", code, text)
	}
	if code, _ := request(t, "GET", strings.Replace(address, s.store, "guess", 1), "", nil, ""); code != http.StatusForbidden {
		t.Errorf("a guessed address: status %d", code)
	}
}
