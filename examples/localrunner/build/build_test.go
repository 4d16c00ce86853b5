package build

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/socialweb-computer/tenant-executor/examples/localrunner/config"
	"github.com/socialweb-computer/tenant-executor/examples/localrunner/job"
)

func newBuild(r *config.Runner, vars ...job.Variable) *Build {
	return New(r, &job.Job{
		ID: 1, AllowGitFetch: true, Variables: vars,
		Info: job.Info{ProjectID: 9},
		Git:  job.Git{RepoURL: "http://u:p@host/group/sub/demo.git"},
	}, 3)
}

func vars(pairs ...string) []job.Variable {
	var out []job.Variable
	for i := 0; i < len(pairs); i += 2 {
		out = append(out, job.Variable{Key: pairs[i], Value: pairs[i+1]})
	}
	return out
}

func TestFolders(t *testing.T) {
	for name, c := range map[string]struct {
		vars    []job.Variable
		repo    string
		dirs    Dirs
		custom  bool
		project string
		cache   string
	}{
		"plain":       {nil, "", Dirs{BuildsDir: "/b", CacheDir: "/c"}, false, "/b/group/sub/demo", "/c/group/sub/demo"},
		"shared":      {nil, "", Dirs{BuildsDir: "/b", CacheDir: "/c", Shared: true}, false, "/b/abcdefghi/3/group/sub/demo", "/c/group/sub/demo"},
		"empty":       {vars("GIT_STRATEGY", "empty"), "", Dirs{BuildsDir: "/b", CacheDir: "/c"}, false, "/b/group/sub/demo-empty", "/c/group/sub/demo-empty"},
		"clone path":  {vars("GIT_CLONE_PATH", "$CI_BUILDS_DIR/x/../y"), "", Dirs{BuildsDir: "/b", CacheDir: "/c"}, true, "/b/y", "/c/group/sub/demo"},
		"strange URL": {nil, "file-path", Dirs{BuildsDir: "/b", CacheDir: "/c"}, false, "/b/project-9", "/c/project-9"},
	} {
		t.Run(name, func(t *testing.T) {
			r := &config.Runner{Token: "abcdefghijkl"}
			r.CustomBuildDir.Enabled = c.custom
			b := newBuild(r, c.vars...)
			if c.repo != "" {
				b.Job.Git.RepoURL = c.repo
			}
			if err := b.Start(c.dirs); err != nil {
				t.Fatal(err)
			}
			if b.ProjectDir() != c.project || b.CacheDir() != c.cache || b.TempDir() != c.project+".tmp" {
				t.Errorf("project %s, cache %s, temp %s", b.ProjectDir(), b.CacheDir(), b.TempDir())
			}
			if got := b.Variables().Value("CI_PROJECT_DIR"); got != c.project {
				t.Errorf("CI_PROJECT_DIR = %s", got)
			}
			if b.Shell() != "bash" {
				t.Errorf("shell %s", b.Shell())
			}
		})
	}
}

func TestStartRefuses(t *testing.T) {
	good := Dirs{BuildsDir: "/b", CacheDir: "/c"}
	for name, c := range map[string]struct {
		vars   []job.Variable
		dirs   Dirs
		custom bool
		want   string
		final  bool // a failure that is not tried again
	}{
		"no builds_dir":       {nil, Dirs{CacheDir: "/c"}, false, "the builds_dir is not configured", true},
		"no cache_dir":        {nil, Dirs{BuildsDir: "/b"}, false, "the cache_dir is not configured", true},
		"relative":            {nil, Dirs{BuildsDir: "b", CacheDir: "/c"}, false, "must be absolute paths", true},
		"clone path off":      {vars("GIT_CLONE_PATH", "/b/x"), good, false, "enable `custom_build_dir` feature", true},
		"clone path outside":  {vars("GIT_CLONE_PATH", "/x"), good, true, `has to be within "/b"`, true},
		"unknown shell":       {nil, Dirs{BuildsDir: "/b", CacheDir: "/c", Shell: "fish"}, false, "shell fish not found", false},
		"unsupported shell":   {nil, Dirs{BuildsDir: "/b", CacheDir: "/c", Shell: "pwsh"}, false, "bash and sh only", false},
		"clone path sideways": {vars("GIT_CLONE_PATH", "/b/../c"), good, true, "has to be within", true},
	} {
		t.Run(name, func(t *testing.T) {
			r := &config.Runner{}
			r.CustomBuildDir.Enabled = c.custom
			err := newBuild(r, c.vars...).Start(c.dirs)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v, want %q", err, c.want)
			}
			var f *Failure
			if errors.As(err, &f) != c.final || c.final && f.Reason != ReasonConfiguration {
				t.Errorf("got %#v, final: %v", err, c.final)
			}
		})
	}
}

func TestSettings(t *testing.T) {
	b := newBuild(&config.Runner{},
		vars("GET_SOURCES_ATTEMPTS", "99", "RESTORE_CACHE_ATTEMPTS", "many", "GIT_STRATEGY", "cloen",
			"GIT_CLEAN_FLAGS", "none", "GIT_FETCH_EXTRA_FLAGS", "-a  -b", "AFTER_SCRIPT_IGNORE_ERRORS", "no way",
			"FF_USE_FASTZIP", "perhaps", "FF_USE_GIT_NATIVE_CLONE", "true")...)
	if n := b.Attempts(GetSourcesAttempts); n != 10 {
		t.Errorf("GET_SOURCES_ATTEMPTS: %d", n)
	}
	if n := b.Attempts(RestoreCacheAttempts); n != 1 {
		t.Errorf("RESTORE_CACHE_ATTEMPTS: %d", n)
	}
	if s := b.GitStrategy(); s != GitFetch {
		t.Errorf("strategy %s", s)
	}
	if diff := cmp.Diff([]string(nil), b.Words("GIT_CLEAN_FLAGS", "-x")); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"-a", "-b"}, b.Words("GIT_FETCH_EXTRA_FLAGS", "-x")); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"-x"}, b.Words("OTHER", "-x")); diff != "" {
		t.Error(diff)
	}
	if !b.IgnoreAfterScriptErrors() || !b.GitCheckout() || !b.CleanGitConfig() || b.Submodules() != "none" {
		t.Error("a default is not what it should be")
	}
	all := strings.Join(b.Warnings(), "\n")
	for _, want := range []string{
		"GET_SOURCES_ATTEMPTS: 99 is outside", `RESTORE_CACHE_ATTEMPTS: expected a number, got "many"`,
		`GIT_STRATEGY: "cloen" is none of`, "AFTER_SCRIPT_IGNORE_ERRORS: expected true or false",
		"FF_USE_FASTZIP: expected true or false", "FF_USE_GIT_NATIVE_CLONE has no effect",
	} {
		if !strings.Contains(all, want) {
			t.Errorf("the warnings lack %q:\n%s", want, all)
		}
	}
}
