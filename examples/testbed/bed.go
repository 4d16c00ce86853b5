package testbed

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/socialweb-computer/tenant-executor/examples/localrunner/config"
	"github.com/socialweb-computer/tenant-executor/examples/localrunner/gitlab"
	"github.com/socialweb-computer/tenant-executor/examples/localrunner/job"
	"github.com/socialweb-computer/tenant-executor/examples/localrunner/runner"
)

// Namespace is where the job Pods live; examples/rbac.yaml makes it.
const Namespace = "ci"

// Project is the path of the repository that jobs clone.
const Project = "root/demo"

// Bed is a tenant cluster with a driver and a GitLab for its jobs.
type Bed struct {
	*Tenant
	// Driver is the built tenant-executor, Config its configuration file.
	Driver, Config string
	// Registry holds the images localtenant/{busybox,debian,helper}:1.
	Registry string
	// Address is where Pods reach this machine.
	Address string

	dir    string
	gitlab *gitlab.Server
	repo   *gitlab.Repository
	http   *http.Server
	url    string
	gates  *gates
	nextID atomic.Int64
	slots  atomic.Int64
}

// firstID is the id of the first job; GitLab's ids are never small.
const firstID = 1000

// Setup makes the Bed of a tenant. Driver is the built binary, dir a folder
// for its files, source the repository that jobs clone.
func Setup(ctx context.Context, t *Tenant, driver, dir, source string) (*Bed, error) {
	status, err := t.Status(ctx)
	if err != nil {
		return nil, err
	}
	b := &Bed{Tenant: t, Driver: driver, Registry: status.Registry.Plain, Address: status.BridgeAddress, dir: dir, gates: newGates()}
	b.nextID.Store(firstID)
	if b.repo, err = gitlab.CopyRepository(ctx, filepath.Join(dir, "repositories"), Project, source, 1); err != nil {
		return nil, err
	}
	if b.gitlab, err = gitlab.New(filepath.Join(dir, "gitlab"), b.repo, ""); err != nil {
		return nil, err
	}
	if err := b.serve(); err != nil {
		return nil, err
	}
	b.Config, err = b.WriteConfig(Namespace, "")
	return b, err
}

// serve opens the GitLab and the gates to the Pods.
func (b *Bed) serve() error {
	listener, err := net.Listen("tcp", net.JoinHostPort(b.Address, "0"))
	if err != nil {
		return fmt.Errorf("listening for Pods: %w", err)
	}
	mux := http.NewServeMux()
	mux.Handle("/gates/", b.gates)
	mux.Handle("/", b.gitlab)
	b.http = &http.Server{Handler: mux}
	b.url = "http://" + listener.Addr().String()
	go func() { _ = b.http.Serve(listener) }() // ends with Close
	return nil
}

// Close ends the Bed's server; the tenant stays.
func (b *Bed) Close() error { return b.http.Close() }

// WriteConfig writes a configuration of the driver for a namespace, with more
// TOML at its end, and gives its path.
func (b *Bed) WriteConfig(namespace, more string) (string, error) {
	status, err := b.Status(context.Background())
	if err != nil {
		return "", err
	}
	text := fmt.Sprintf(`[cluster]
url = %q
ca_file = %q
cert_file = %q
key_file = %q

[tenant]
ceiling = %d

[kubernetes]
namespace = %q
helper_image = %q
pull_policy = "if-not-present"

[state]
dir = %q

[run]
cancel_grace = "1s"
poll = "1s"
%s`, status.URL,
		filepath.Join(status.AccessDir, "ca.crt"), filepath.Join(status.AccessDir, "client.crt"), filepath.Join(status.AccessDir, "client.key"),
		b.Ceiling, namespace, b.Image("helper"), filepath.Join(b.dir, "state"), more)
	path := filepath.Join(b.dir, "driver-"+rand.Text()+".toml")
	return path, os.WriteFile(path, []byte(text), 0o600)
}

// Image is the full name of one of the registry's images.
func (b *Bed) Image(name string) string { return b.Registry + "/localtenant/" + name + ":1" }

// Job is a job with a script for the busybox image. Callers change it before
// they run it.
func (b *Bed) Job(script ...string) *job.Job {
	id := b.nextID.Add(1)
	token := b.gitlab.NewToken(id)
	no := false
	j := &job.Job{
		ID: id, Token: token, AllowGitFetch: true,
		Info: job.Info{
			Name: fmt.Sprintf("job %d", id), Stage: "test", PipelineID: 1, ProjectID: 7,
			ProjectName: "demo", ProjectFullPath: Project, NamespaceID: 1, RootNamespaceID: 1, OrganizationID: 1,
		},
		Git: job.Git{
			RepoURL:      strings.Replace(b.url, "http://", "http://gitlab-ci-token:"+token+"@", 1) + "/" + Project + ".git",
			ObjectFormat: "sha1", Ref: "main", SHA: b.repo.SHA, BeforeSHA: strings.Repeat("0", 40), RefType: "branch",
			Refspecs: []string{"+refs/pipelines/1:refs/pipelines/1"}, Depth: 20, Protected: &no,
		},
		Runner: job.Runner{Timeout: 600},
		Image:  job.Image{Name: b.Image("busybox")},
		Steps:  []job.Step{{Name: job.StepScript, Script: script, Timeout: 600, When: "on_success"}},
		Features: job.Features{
			TraceSections:  true,
			FailureReasons: []string{"unknown_failure", "script_failure", "runner_system_failure", "job_execution_timeout"},
		},
	}
	j.Variables = job.Variables{
		{Key: "CI_JOB_ID", Value: fmt.Sprint(id), Public: true},
		{Key: "CI_JOB_TOKEN", Value: token, Masked: true},
		{Key: "CI_SERVER_URL", Value: b.url, Public: true},
		{Key: "CI_PROJECT_PATH", Value: Project, Public: true},
		{Key: "CI_PIPELINE_ID", Value: "1", Public: true},
	}
	return j
}

// WithoutSources is a job that clones nothing.
func WithoutSources(j *job.Job) *job.Job {
	j.Variables = append(j.Variables, job.Variable{Key: "GIT_STRATEGY", Value: "none", Public: true})
	return j
}

// AfterScript adds an after_script to a job.
func AfterScript(j *job.Job, script ...string) *job.Job {
	j.Steps = append(j.Steps, job.Step{Name: job.StepAfterScript, Script: script, Timeout: 600, When: "always", AllowFailure: true})
	return j
}

// Outcome is how a job ended and what its log says.
type Outcome struct {
	runner.Result
	Log string
}

// Run runs a job with the Bed's configuration.
func (b *Bed) Run(ctx context.Context, j *job.Job, o runner.Options) (Outcome, error) {
	return b.RunWith(ctx, b.Config, j, o)
}

// RunWith runs a job with a configuration file of its own.
func (b *Bed) RunWith(ctx context.Context, configFile string, j *job.Job, o runner.Options) (Outcome, error) {
	r, err := runner.New(runner.Config{
		Runner:  runnerConfig(b.Driver, b.url, runnerToken, configFile),
		Environ: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + b.dir},
		TempDir: b.dir,
	})
	if err != nil {
		return Outcome{}, err
	}
	var log lockedBuffer
	o.Log = &log
	o.ConcurrentID = int(b.slots.Add(1))
	result, err := r.Run(ctx, j, o)
	return Outcome{Result: result, Log: log.String()}, err
}

// runnerToken is the token of the Bed's runner.
const runnerToken = "glrt-t3_testbedtoken"

func runnerConfig(driver, url, token, configFile string) *config.Runner {
	args := func(stage string) []string { return []string{stage, "--config", configFile} }
	grace := 30
	return &config.Runner{
		Name: "testbed", URL: url, Token: token, Executor: config.Executor,
		OutputLimit: 1 << 20,
		// As examples/runner-config.toml has it.
		SafeDirectoryCheckout: true, CustomBuildDir: config.CustomBuildDir{Enabled: true},
		Custom: &config.Custom{
			ConfigExec: driver, ConfigArgs: args("config"),
			PrepareExec: driver, PrepareArgs: args("prepare"),
			RunExec: driver, RunArgs: args("run"),
			CleanupExec: driver, CleanupArgs: args("cleanup"),
			GracefulKillTimeout: &grace,
		},
	}
}

// Artifacts is the archive that a job has uploaded.
func (b *Bed) Artifacts(j *job.Job) (gitlab.Archive, error) { return b.gitlab.Artifacts(j.ID) }

// lockedBuffer collects a job log that several goroutines write.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// ErrTimeout is the error of a wait that nothing ended.
var ErrTimeout = errors.New("waited in vain")
