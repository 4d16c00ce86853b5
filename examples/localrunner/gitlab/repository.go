package gitlab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/cgi"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
)

// Repository is a bare copy of a project's repository.
type Repository struct {
	// Project is the path of the project, such as "root/demo".
	Project string
	// SHA is the commit that jobs check out.
	SHA string
	// Branch is its branch; "HEAD" when the source has none checked out.
	Branch string
	// Title is the first line of its message.
	Title string
	// Changed reports that the source has changes that are not committed and
	// therefore not in the copy.
	Changed bool

	root string // the folder above all projects
}

// CopyRepository makes a bare copy, below root, of the repository that source
// is in. When it is in none, the copy gets one commit with all files of the
// folder.
func CopyRepository(ctx context.Context, root, project, source string, pipeline int64) (*Repository, error) {
	if _, err := exec.LookPath("git"); err != nil {
		return nil, fmt.Errorf("git is needed on this machine to serve the repository: %w", err)
	}
	if !filepath.IsLocal(project) || !strings.Contains(project, "/") {
		return nil, fmt.Errorf("project %q: want a path such as group/name", project)
	}
	r := &Repository{Project: project, root: root}
	git := func(args ...string) (string, error) { return run(ctx, "", args...) }

	top, err := git("-C", source, "rev-parse", "--show-toplevel")
	inRepository := err == nil
	if inRepository {
		if _, err := git("-C", top, "rev-parse", "--verify", "--quiet", "HEAD"); err != nil {
			inRepository = false // a repository without a commit
		}
	}
	if inRepository {
		err = r.clone(git, top)
	} else {
		err = r.invent(ctx, git, source)
	}
	if err != nil {
		return nil, err
	}
	for into, args := range map[*string][]string{
		&r.SHA:   {"rev-parse", "HEAD"},
		&r.Title: {"log", "-1", "--format=%s", "HEAD"},
	} {
		if *into, err = git(append([]string{"--git-dir", r.dir()}, args...)...); err != nil {
			return nil, fmt.Errorf("reading the copied repository: %w", err)
		}
	}
	// GitLab keeps the commit of a pipeline reachable in a reference.
	for _, args := range [][]string{
		{"update-ref", fmt.Sprintf("refs/pipelines/%d", pipeline), r.SHA},
		{"config", "uploadpack.allowAnySHA1InWant", "true"},
		{"config", "http.receivepack", "false"},
	} {
		if _, err := git(append([]string{"--git-dir", r.dir()}, args...)...); err != nil {
			return nil, fmt.Errorf("preparing the copied repository: %w", err)
		}
	}
	return r, nil
}

func (r *Repository) dir() string { return filepath.Join(r.root, r.Project+".git") }

// URLPath is the path of the repository's address.
func (r *Repository) URLPath() string { return path.Join("/", r.Project+".git") }

func (r *Repository) clone(git func(...string) (string, error), top string) error {
	if err := os.MkdirAll(filepath.Dir(r.dir()), 0o700); err != nil {
		return fmt.Errorf("copying the repository: %w", err)
	}
	if _, err := git("clone", "--quiet", "--mirror", top, r.dir()); err != nil {
		return fmt.Errorf("copying the repository %s: %w", top, err)
	}
	head, err := git("-C", top, "rev-parse", "HEAD")
	if err != nil {
		return fmt.Errorf("copying the repository %s: %w", top, err)
	}
	status, err := git("-C", top, "status", "--porcelain", "--untracked-files=normal")
	if err != nil {
		return fmt.Errorf("copying the repository %s: %w", top, err)
	}
	r.Changed = status != ""
	// A mirror has no HEAD of its own when the source's is detached.
	if r.Branch, err = git("-C", top, "symbolic-ref", "--short", "--quiet", "HEAD"); err != nil {
		r.Branch = "HEAD"
		if _, err := git("--git-dir", r.dir(), "update-ref", "--no-deref", "HEAD", head); err != nil {
			return fmt.Errorf("copying the repository %s: %w", top, err)
		}
	}
	return nil
}

func (r *Repository) invent(ctx context.Context, git func(...string) (string, error), source string) error {
	r.Branch = "main"
	if _, err := git("init", "--quiet", "--bare", "--initial-branch", r.Branch, r.dir()); err != nil {
		return fmt.Errorf("making a repository: %w", err)
	}
	for _, args := range [][]string{
		{"add", "--all", "--force", "."},
		{"-c", "user.name=localrunner", "-c", "user.email=localrunner@localhost", "-c", "commit.gpgsign=false",
			"commit", "--quiet", "--allow-empty", "--no-verify", "--message", "Files of " + filepath.Base(source)},
	} {
		args = append([]string{"--git-dir", r.dir(), "--work-tree", source, "-C", source, "-c", "core.bare=false"}, args...)
		if _, err := run(ctx, source, args...); err != nil {
			return fmt.Errorf("making a repository of %s: %w", source, err)
		}
	}
	return nil
}

// run runs git, without questions, and returns its output.
func run(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = dir
	cmd.Env = append(withoutGit(os.Environ()), "GIT_TERMINAL_PROMPT=0", "LC_ALL=C")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		message := strings.TrimSpace(stderr.String())
		if message == "" {
			return "", fmt.Errorf("git: %w", err)
		}
		return "", fmt.Errorf("git: %s", message)
	}
	return strings.TrimSpace(string(out)), nil
}

// withoutGit drops the variables by which a git hook, for one, points git at
// another repository.
func withoutGit(environ []string) []string {
	var out []string
	for _, e := range environ {
		key, _, _ := strings.Cut(e, "=")
		switch key {
		case "GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_NAMESPACE", "GIT_PREFIX":
		default:
			out = append(out, e)
		}
	}
	return out
}

// handler serves the repository by git's own program for that.
func (r *Repository) handler() (http.Handler, error) {
	folder, err := run(context.Background(), "", "--exec-path")
	if err != nil {
		return nil, err
	}
	program := filepath.Join(folder, "git-http-backend")
	if _, err := os.Stat(program); err != nil {
		return nil, errors.Join(errors.New("git is installed without git-http-backend, which serves the repository"), err)
	}
	return &cgi.Handler{
		Path: program,
		Root: "/",
		Env:  []string{"GIT_PROJECT_ROOT=" + r.root, "GIT_HTTP_EXPORT_ALL=1"},
	}, nil
}
