package script_test

import (
	"errors"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/socialweb-computer/tenant-executor/examples/localrunner/build"
	"github.com/socialweb-computer/tenant-executor/examples/localrunner/config"
	"github.com/socialweb-computer/tenant-executor/examples/localrunner/gitlab"
	"github.com/socialweb-computer/tenant-executor/examples/localrunner/job"
	"github.com/socialweb-computer/tenant-executor/examples/localrunner/script"
)

// nasty has what a shell could take for something else.
const nasty = "it's \"a\" $B \\n `x` !y 100% \t\x80\xff ä\nsecond line\n"

// world is a place where scripts run: a server with a repository, a home, and
// a folder of programs.
type world struct {
	t       *testing.T
	dir     string
	shell   []string
	build   *build.Build
	job     *job.Job
	runner  *config.Runner
	started bool
}

// shells returns the shells of this machine that the scripts are made for.
func shells(t *testing.T) map[string][]string {
	found := map[string][]string{}
	if p, err := exec.LookPath("bash"); err == nil {
		found["bash"] = []string{p}
	}
	if p, err := exec.LookPath("busybox"); err == nil {
		found["busybox sh"] = []string{p, "sh"}
	}
	if len(found) == 0 {
		t.Skip("neither bash nor busybox is installed")
	}
	return found
}

func newWorld(t *testing.T, shell []string) *world {
	t.Helper()
	w := &world{t: t, dir: t.TempDir(), shell: shell}
	source := filepath.Join(w.dir, "source")
	for _, d := range []string{"home", "bin", "source"} {
		if err := os.Mkdir(filepath.Join(w.dir, d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(source, "hello.txt"), []byte("hello\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	repo, err := gitlab.CopyRepository(t.Context(), filepath.Join(w.dir, "repos"), "group/demo", source, 5)
	if err != nil {
		t.Fatal(err)
	}
	server, err := gitlab.New(w.dir, repo, "")
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(server)
	t.Cleanup(web.Close)
	address, err := url.Parse(web.URL)
	if err != nil {
		t.Fatal(err)
	}
	token := server.NewToken(9)
	address.User, address.Path = url.UserPassword("gitlab-ci-token", token), "/group/demo.git"
	w.runner = &config.Runner{URL: web.URL, Token: "sometoken"}
	w.job = &job.Job{
		ID: 9, Token: token, AllowGitFetch: true, Info: job.Info{Name: "my job"},
		Git: job.Git{
			RepoURL: address.String(), SHA: repo.SHA, Ref: "main", Depth: 1,
			Refspecs: []string{"+refs/pipelines/5:refs/pipelines/5", "+refs/heads/main:refs/remotes/origin/main"},
		},
	}
	return w
}

// run runs a stage and returns its output and exit code.
func (w *world) run(stage string) (string, int) {
	w.t.Helper()
	if !w.started {
		w.build = build.New(w.runner, w.job, 0)
		if err := w.build.Start(build.Dirs{BuildsDir: w.dir + "/builds", CacheDir: w.dir + "/cache"}); err != nil {
			w.t.Fatal(err)
		}
		w.started = true
	}
	text, err := script.Generate(w.build, stage)
	if err != nil {
		w.t.Fatalf("%s: %v", stage, err)
	}
	file := filepath.Join(w.dir, "script")
	if err := os.WriteFile(file, []byte(text), 0o700); err != nil {
		w.t.Fatal(err)
	}
	cmd := exec.Command(w.shell[0], append(w.shell[1:], file)...)
	cmd.Env = []string{"PATH=" + w.dir + "/bin:" + os.Getenv("PATH"), "HOME=" + w.dir + "/home"}
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		w.t.Fatalf("%s: %v", stage, err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

func (w *world) mustRun(stage string, parts ...string) string {
	w.t.Helper()
	out, code := w.run(stage)
	if code != 0 {
		w.t.Fatalf("%s ended with %d:\n%s", stage, code, out)
	}
	for _, p := range parts {
		if !strings.Contains(out, p) {
			w.t.Errorf("%s: the output lacks %q:\n%s", stage, p, out)
		}
	}
	return out
}

// helper puts a gitlab-runner on PATH that notes its arguments.
func (w *world) helper() {
	w.t.Helper()
	text := "#!/bin/sh\n[ \"$1\" = --version ] && exit 0\nfor a; do printf '%s\\n' \"$a\"; done >>" + w.dir + "/helper-args\n" +
		"while [ $# -gt 0 ]; do [ \"$1\" = --env-file ] && cat \"$2\" >>" + w.dir + "/helper-args; shift; done; exit 0\n"
	if err := os.WriteFile(w.dir+"/bin/gitlab-runner", []byte(text), 0o700); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) helperArgs() []string {
	data, err := os.ReadFile(w.dir + "/helper-args")
	if err != nil {
		w.t.Fatal(err)
	}
	_ = os.Remove(w.dir + "/helper-args")
	return strings.Split(strings.TrimSpace(string(data)), "\n")
}

func TestStagesOfAJob(t *testing.T) {
	for name, shell := range shells(t) {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, shell)
			w.job.Variables = job.Variables{
				{Key: "NASTY", Value: nasty, Raw: true},
				{Key: "FILE", Value: nasty, Raw: true, File: true},
			}
			w.job.Hooks = []job.Hook{{Name: job.HookPreGetSources, Script: []string{"echo hook before"}}, {Name: job.HookPostGetSources, Script: []string{"echo hook after"}}}
			w.runner.PreBuildScript = "echo pre-build"
			w.job.Steps = []job.Step{
				{Name: "script", Script: []string{
					`printf '%s' "$NASTY" >nasty`, `cmp nasty "$FILE"`, "cat hello.txt", "git log --oneline -1",
					"cat <<END\n  here: $CI_PROJECT_DIR\nEND", "readlink /proc/self/fd/0", "echo VAR_FROM_JOB=1 >>\"$GITLAB_ENV\"",
				}},
				{Name: "after_script", Script: []string{`echo "status $CI_JOB_STATUS, $VAR_FROM_JOB"`}},
			}
			w.mustRun(script.Prepare, "Running on ")
			w.mustRun(script.GetSources, "hook before", "Created fresh repository", "hook after", "git depth set to 1")
			out := w.mustRun(script.StepScript, "\x1b[32;1m$ cat hello.txt\x1b[0;m\nhello\n", "Files of source", "pre-build",
				"$ cat <<END # collapsed multi-line command", "  here: "+w.dir+"/builds/group/demo\n", "/dev/null\n")
			if strings.Contains(out, w.job.Token) {
				t.Errorf("the token is in the output:\n%s", out)
			}
			if got, err := os.ReadFile(w.dir + "/builds/group/demo/nasty"); err != nil || string(got) != nasty {
				t.Errorf("variable came as %q, %v", got, err)
			}
			config, err := os.ReadFile(w.dir + "/builds/group/demo/.git/config")
			if err != nil || strings.Contains(string(config), w.job.Token) {
				t.Errorf("git's configuration in the project, %v:\n%s", err, config)
			}
			w.build.SetStatus("success")
			w.mustRun(script.AfterScript, "status success, 1")
			w.mustRun(script.GetSources, "Checking out") // a second job in the same folder
			w.mustRun(script.ClearWorktree, "Deleting tracked")
			w.mustRun(script.Cleanup)
			for _, left := range []string{"FILE", ".gitlab-runner.ext.conf"} {
				if _, err := os.Stat(w.dir + "/builds/group/demo.tmp/" + left); !errors.Is(err, os.ErrNotExist) {
					t.Errorf("cleanup left %s: %v", left, err)
				}
			}
		})
	}
}

func TestExitCodesComeThrough(t *testing.T) {
	for name, shell := range shells(t) {
		for flag, value := range map[string]string{"": "", build.FlagLegacyEval: "true", build.FlagPosixEscapes: "true", build.FlagExitCodeCheck: "true"} {
			for command, want := range map[string]int{
				"exit 42": 42, "false": 1, "(exit 255)": 255, "false | true": 1, "if false; then true; fi": 0, "sh -c 'kill -KILL $$'": 137,
			} {
				if flag == build.FlagLegacyEval && command != "exit 42" && want != 0 {
					continue // bash itself loses other codes in a pipeline with eval
				}
				t.Run(name+flag+command, func(t *testing.T) {
					w := newWorld(t, shell)
					w.job.Variables = job.Variables{{Key: "GIT_STRATEGY", Value: "none"}}
					if flag != "" {
						w.job.Variables = append(w.job.Variables, job.Variable{Key: flag, Value: value})
					}
					w.job.Steps = []job.Step{{Name: "script", Script: []string{command, "echo went on"}}}
					w.mustRun(script.GetSources, "Skipping Git repository setup")
					out, code := w.run(script.StepScript)
					if code != want {
						t.Errorf("exit code %d, want %d:\n%s", code, want, out)
					}
					if strings.Contains(out, "\nwent on") != (want == 0) {
						t.Errorf("after %q:\n%s", command, out)
					}
				})
			}
		}
	}
}

func TestHelperCalls(t *testing.T) {
	w := newWorld(t, shells(t)[firstShell(t)])
	w.helper()
	w.job.Variables = job.Variables{{Key: "V", Value: "x"}, {Key: "CACHE_FALLBACK_KEY", Value: "fb"}, {Key: "GIT_STRATEGY", Value: "none"}}
	w.job.Cache = []job.Cache{{Key: "../k-$V", Paths: []string{"a b", "c"}, Untracked: true}}
	w.job.Artifacts = []job.Artifact{{Name: "n", Paths: []string{"p"}, Exclude: []string{"e"}, ExpireIn: "1 day", Type: "archive", Format: "zip"}}
	w.job.Dependencies = []job.Dependency{{ID: 3, Token: "t3", Name: "dep", ArtifactsFile: job.ArtifactsFile{Filename: "a.zip"}}, {ID: 4, Name: "none"}}
	w.mustRun(script.GetSources)
	archive := "../../../cache/group/demo/k-x/cache.zip"
	for _, c := range []struct {
		stage string
		want  []string
	}{
		{script.RestoreCache, []string{"cache-extractor", "--file", archive, "--timeout", "10"}},
		{script.DownloadArtifacts, []string{"artifacts-downloader", "--url", w.runner.URL, "--token", "t3", "--id", "3"}},
		{script.ArchiveCache, []string{
			"cache-archiver", "--file", archive,
			"--alternate-file", "../../../cache/group/demo/7920284c70721faa25cb5d2c508744a081de7a0376cf6ba7a4d2e5843b7aa6b3/cache.zip",
			"--timeout", "10", "--path", "a b", "--path", "c", "--untracked",
			"--env-file", w.dir + "/builds/group/demo.tmp/gitlab_runner_cache_env",
			`CACHE_METADATA="{\"cachekey\":\"k-x\"}"`,
		}},
		{script.UploadOnSuccess, []string{
			"artifacts-uploader", "--url", w.runner.URL, "--token", w.job.Token, "--id", "9",
			"--timeout", "1h0m0s", "--response-header-timeout", "10m0s", "--path", "p", "--exclude", "e",
			"--name", "n", "--expire-in", "1 day", "--artifact-format", "zip", "--artifact-type", "archive",
		}},
	} {
		w.mustRun(c.stage)
		got := w.helperArgs()
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.stage, diff)
		}
	}
}

func firstShell(t *testing.T) string {
	for name := range shells(t) {
		return name
	}
	return ""
}

func TestMissingHelperLosesArtifactsInSilence(t *testing.T) {
	w := newWorld(t, shells(t)[firstShell(t)])
	w.job.Variables = job.Variables{{Key: "GIT_STRATEGY", Value: "none"}}
	w.job.Artifacts = []job.Artifact{{Paths: []string{"p"}}}
	w.mustRun(script.GetSources)
	w.mustRun(script.UploadOnSuccess, "Missing gitlab-runner. Uploading artifacts is disabled.")
}

func TestStagesWithoutWork(t *testing.T) {
	w := newWorld(t, []string{"sh"})
	w.job.Steps = []job.Step{{Name: "script", Script: []string{"true"}}, {Name: "after_script"}}
	w.job.Cache = []job.Cache{{Key: "k"}, {Key: "l", Paths: []string{"p"}, When: job.WhenOnFailure}}
	w.job.Artifacts = []job.Artifact{{Paths: []string{"p"}, When: job.WhenOnFailure}}
	w.job.Dependencies = []job.Dependency{{ID: 3}}
	b := build.New(w.runner, w.job, 0)
	if err := b.Start(build.Dirs{BuildsDir: "/b", CacheDir: "/c"}); err != nil {
		t.Fatal(err)
	}
	for stage, due := range map[string]bool{
		script.Prepare: true, script.GetSources: true, script.StepScript: true, script.Cleanup: true,
		script.RestoreCache: true, script.DownloadArtifacts: false, script.AfterScript: false,
		script.ArchiveCache: false, script.ArchiveCacheOnFailure: true,
		script.UploadOnSuccess: false, script.UploadOnFailure: true, "step_other": false,
	} {
		_, err := script.Generate(b, stage)
		if due && err != nil || !due && !errors.Is(err, script.ErrNothingToDo) {
			t.Errorf("%s: %v, due %v", stage, err, due)
		}
	}
}

func TestUnknownCachePolicyIsAnError(t *testing.T) {
	w := newWorld(t, []string{"sh"})
	w.job.Cache = []job.Cache{{Key: "k", Paths: []string{"p"}, Policy: "sometimes"}}
	b := build.New(w.runner, w.job, 0)
	if err := b.Start(build.Dirs{BuildsDir: "/b", CacheDir: "/c"}); err != nil {
		t.Fatal(err)
	}
	if _, err := script.Generate(b, script.RestoreCache); err == nil || !strings.Contains(err.Error(), "unknown cache policy sometimes") {
		t.Errorf("got %v", err)
	}
}
