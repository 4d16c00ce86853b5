// Package build is one job on its way through a runner: the job as GitLab
// sent it, the runner's settings for it, and what follows from both: its
// folders, its feature flags and its variables.
package build

import (
	"errors"
	"fmt"
	"net/url"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/socialweb-computer/tenant-executor/examples/localrunner/config"
	"github.com/socialweb-computer/tenant-executor/examples/localrunner/job"
)

// The GitLab Runner whose behaviour is followed.
const (
	RunnerVersion  = "19.4.0"
	RunnerRevision = "fc1f1862"
)

// DefaultTimeout is the time limit of a job that brings none
// (common/consts.go).
const DefaultTimeout = 2 * time.Hour

// Values of CI_JOB_STATUS.
const (
	StatusRunning  = "running"
	StatusSuccess  = "success"
	StatusFailed   = "failed"
	StatusCanceled = "canceled"
	StatusTimedOut = "timedout"
)

// Build is one job. Its variables may be read while SetStatus changes them;
// Start must not run beside anything else.
type Build struct {
	Job    *job.Job
	Runner *config.Runner

	// ConcurrentID tells the jobs apart that one runner has at a time, and
	// ProjectConcurrentID those of one project.
	ConcurrentID, ProjectConcurrentID int

	// Hostname is what config_exec says that the job runs on. It is kept from
	// one attempt to the next.
	Hostname string

	// CacheURL returns the address of a cache in an object store, or "" when
	// caches are only kept in the cache folder. Nil means "".
	CacheURL func(key string) string

	buildsDir, projectDir, cacheDir string

	shell string

	mu       sync.Mutex
	flags    map[string]bool
	warnings []string
	vars     job.Variables // never changed in place
}

// New takes a job over. The image names and aliases in j are expanded in
// place, as GitLab Runner does it before the executor sees them
// (common/build.go, expandContainerOptions).
func New(r *config.Runner, j *job.Job, concurrentID int) *Build {
	b := &Build{Job: j, Runner: r, ConcurrentID: concurrentID, ProjectConcurrentID: concurrentID}
	vars := b.Variables()
	j.Image.Name = vars.ExpandValue(j.Image.Name)
	j.Image.Alias = vars.ExpandValue(j.Image.Alias)
	for i := range j.Services {
		j.Services[i].Name = vars.ExpandValue(j.Services[i].Name)
		j.Services[i].Alias = vars.ExpandValue(j.Services[i].Alias)
	}
	b.warnings = append(b.warnings, checkSettings(vars)...)
	b.Refresh()
	return b
}

// Dirs are the settings that an attempt starts the build with.
type Dirs struct {
	BuildsDir, CacheDir string
	Shared              bool
	Shell               string
}

// Start fixes the folders and the shell of the build. It can be called again
// for another attempt.
func (b *Build) Start(d Dirs) error {
	if d.BuildsDir == "" {
		return &Failure{Err: errors.New("the builds_dir is not configured"), Reason: ReasonConfiguration}
	}
	if d.CacheDir == "" {
		return &Failure{Err: errors.New("the cache_dir is not configured"), Reason: ReasonConfiguration}
	}
	if !path.IsAbs(d.BuildsDir) || !path.IsAbs(d.CacheDir) {
		// GitLab Runner takes relative folders too, for executors that start
		// in a known place. A driver has none.
		return &Failure{
			Err:    fmt.Errorf("builds_dir %q and cache_dir %q must be absolute paths", d.BuildsDir, d.CacheDir),
			Reason: ReasonConfiguration,
		}
	}
	b.buildsDir = d.BuildsDir
	b.cacheDir = path.Join(d.CacheDir, b.slug(false))
	b.Refresh() // GIT_CLONE_PATH may refer to CI_BUILDS_DIR
	project, err := b.chooseProjectDir(d.Shared)
	if err != nil {
		return err
	}
	b.projectDir = project
	b.Refresh()
	switch d.Shell {
	case "":
		b.shell = "bash"
	case "bash", "sh":
		b.shell = d.Shell
	case "pwsh", "powershell":
		return fmt.Errorf("shell %s: localrunner writes scripts for bash and sh only", d.Shell)
	default:
		return fmt.Errorf("shell %s not found", d.Shell)
	}
	return nil
}

func (b *Build) chooseProjectDir(shared bool) (string, error) {
	clonePath := b.Variables().Value("GIT_CLONE_PATH")
	if clonePath == "" {
		return path.Join(b.buildsDir, b.slug(shared)), nil
	}
	if !b.Runner.CustomBuildDir.Enabled {
		return "", &Failure{
			Err:    errors.New("setting GIT_CLONE_PATH is not allowed, enable `custom_build_dir` feature"),
			Reason: ReasonConfiguration,
		}
	}
	rel, err := filepath.Rel(b.buildsDir, clonePath)
	if err != nil || strings.HasPrefix(rel, "..") {
		return "", &Failure{
			Err:    fmt.Errorf("the GIT_CLONE_PATH=%q has to be within %q", clonePath, b.buildsDir),
			Reason: ReasonConfiguration,
		}
	}
	return path.Clean(clonePath), nil
}

// slug is the project's path below the builds folder, from the path of the
// repository's URL. In a shared builds folder the runner's short token and
// the concurrent id come first.
func (b *Build) slug(shared bool) string {
	dir := fmt.Sprintf("project-%d", b.Job.Info.ProjectID)
	if u, err := url.Parse(b.Job.Git.RepoURL); err == nil && u.Host != "" {
		p := path.Clean(strings.TrimSuffix(u.Path, ".git"))
		if p != "." && !strings.Contains(p, "..") {
			dir = p
		}
	}
	if shared {
		dir = path.Join(b.Runner.ShortToken(), strconv.Itoa(b.ProjectConcurrentID), dir)
	}
	if b.GitStrategy() == GitEmpty {
		dir += "-empty"
	}
	return dir
}

// BuildsDir is the folder above all projects; empty before Start.
func (b *Build) BuildsDir() string { return b.buildsDir }

// ProjectDir is where the repository is checked out; empty before Start.
func (b *Build) ProjectDir() string { return b.projectDir }

// TempDir is the folder beside ProjectDir for file variables and git's
// credentials.
func (b *Build) TempDir() string { return b.projectDir + ".tmp" }

// CacheDir is the project's cache folder.
func (b *Build) CacheDir() string { return b.cacheDir }

// Shell is "bash" or "sh".
func (b *Build) Shell() string { return b.shell }

// Timeout is the time limit for the whole job.
func (b *Build) Timeout() time.Duration {
	if b.Job.Runner.Timeout <= 0 {
		return DefaultTimeout
	}
	return time.Duration(b.Job.Runner.Timeout) * time.Second
}

// Warnings are settings that cannot be honoured, for the job log.
func (b *Build) Warnings() []string { return b.warnings }

// Flag reports whether a feature flag is on.
func (b *Build) Flag(name string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.variables()
	return b.flags[name]
}

// Refresh makes the next call of Variables build them anew.
func (b *Build) Refresh() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.vars = nil
}

// SetStatus changes CI_JOB_STATUS.
func (b *Build) SetStatus(status string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.vars = slices.Clone(b.variables())
	b.vars.Overwrite("CI_JOB_STATUS", status)
}

// Variables are all variables of the job, expanded, in GitLab Runner's order
// of precedence (common/build.go, GetAllVariables).
func (b *Build) Variables() job.Variables {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.variables()
}

func (b *Build) variables() job.Variables {
	if b.vars != nil {
		return b.vars
	}
	before, after := b.beforeJob(), b.afterJob()
	if b.flags == nil {
		b.flags, b.warnings = resolveFlags(b.Runner.FeatureFlags, join(before, b.Job.Variables, after).Expand())
	}
	var resolved job.Variables
	for _, f := range flags() {
		resolved = append(resolved, public(f.name, strconv.FormatBool(b.flags[f.name])))
	}
	b.vars = join(resolved, before, b.withoutFlags(), after).Expand()
	return b.vars
}

func (b *Build) beforeJob() job.Variables {
	var vars job.Variables
	if b.Job.Image.Name != "" {
		vars = append(vars, public("CI_JOB_IMAGE", b.Job.Image.Name))
	}
	vars = append(vars, public("CI_RUNNER_SHORT_TOKEN", b.Runner.ShortToken()))
	for _, line := range b.Runner.Environment {
		if key, value, ok := strings.Cut(line, "="); ok {
			vars = append(vars, job.Variable{Key: key, Value: value})
		}
	}
	return append(vars,
		public("CI_BUILDS_DIR", b.buildsDir),
		public("CI_PROJECT_DIR", b.projectDir),
		public("CI_CONCURRENT_ID", strconv.Itoa(b.ConcurrentID)),
		public("CI_CONCURRENT_PROJECT_ID", strconv.Itoa(b.ProjectConcurrentID)),
		public("CI_SERVER", "yes"),
		public("CI_JOB_STATUS", StatusRunning),
		public("CI_JOB_TIMEOUT", strconv.Itoa(int(b.Timeout().Seconds()))),
	)
}

func (b *Build) withoutFlags() job.Variables {
	var vars job.Variables
	for _, v := range b.Job.Variables {
		if _, isFlag := b.flags[v.Key]; !isFlag {
			vars = append(vars, v)
		}
	}
	return vars
}

func (b *Build) afterJob() job.Variables {
	return job.Variables{
		public("CI_SHARED_ENVIRONMENT", "true"), // what the custom executor says of itself
		public("CI_RUNNER_VERSION", RunnerVersion),
		public("CI_RUNNER_REVISION", RunnerRevision),
		public("CI_RUNNER_EXECUTABLE_ARCH", runtime.GOOS+"/"+runtime.GOARCH),
		public(job.TempProjectDir, b.TempDir()),
	}
}

func public(key, value string) job.Variable {
	return job.Variable{Key: key, Value: value, Public: true}
}

func join(lists ...job.Variables) job.Variables {
	var out job.Variables
	for _, l := range lists {
		out = append(out, l...)
	}
	return out
}
