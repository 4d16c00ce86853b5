// Package dispatch turns the jobs of a pipeline file into what GitLab would
// send to a runner, and decides which of them run when.
package dispatch

import (
	"errors"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/socialweb-computer/tenant-executor/examples/localrunner/gitlab"
	"github.com/socialweb-computer/tenant-executor/examples/localrunner/job"
	"github.com/socialweb-computer/tenant-executor/examples/localrunner/pipeline"
)

// DefaultTimeout is the time limit of a job whose file sets none, as in
// GitLab.
const DefaultTimeout = time.Hour

const (
	projectID = 1
	gitDepth  = 20
	nullSHA   = "0000000000000000000000000000000000000000"
)

// Registry is a registry that jobs get credentials for.
type Registry struct {
	// Host is HOST or HOST:PORT.
	Host string
	// User and Password may be empty: then they are "gitlab-ci-token" and the
	// job token, as for GitLab's own registry.
	User, Password string
}

// Project is what all jobs of a run share.
type Project struct {
	Pipeline   *pipeline.Pipeline
	PipelineID int64
	Repository *gitlab.Repository
	// URL is the server's address as the jobs reach it.
	URL *url.URL
	// Registry may be nil.
	Registry *Registry
	// Variables count before those of the pipeline file.
	Variables job.Variables
	// Artifacts looks up what an earlier job has left.
	Artifacts func(id int64) (gitlab.Archive, error)
}

// Earlier is a job that has run already.
type Earlier struct {
	ID    int64
	Token string
}

// Payload returns the job as GitLab would send it. Of the jobs in earlier
// come the artifacts.
func (p *Project) Payload(j *pipeline.Job, id int64, token string, earlier map[string]Earlier) (*job.Job, error) {
	timeout := j.Timeout
	if timeout == 0 {
		timeout = DefaultTimeout
	}
	dependencies, err := p.dependencies(j, earlier)
	if err != nil {
		return nil, err
	}
	protected := false
	seconds := int(timeout.Seconds())
	payload := &job.Job{
		ID: id, Token: token, AllowGitFetch: true,
		Info:         p.info(j),
		Git:          p.git(token),
		Runner:       job.Runner{Timeout: seconds},
		Steps:        steps(j, seconds),
		Image:        j.Image,
		Services:     slices.Clone(j.Services),
		Cache:        slices.Clone(j.Cache),
		Credentials:  p.credentials(token),
		Dependencies: dependencies,
		Hooks:        j.Hooks,
		Features: job.Features{
			TraceSections:     true,
			TokenMaskPrefixes: []string{"glpat-"},
			FailureReasons: []string{
				"unknown_failure", "script_failure", "api_failure", "stuck_or_timeout_failure",
				"runner_system_failure", "job_execution_timeout", "image_pull_failure", "unmet_prerequisites",
			},
		},
	}
	payload.Git.Protected = &protected
	if j.Artifacts != nil {
		payload.Artifacts = []job.Artifact{*j.Artifacts}
	}
	vars := append(p.predefined(j, payload), p.Pipeline.Variables...)
	payload.Variables = append(append(vars, j.Variables...), p.Variables...).Flatten()
	if depth := payload.Variables.Value("GIT_DEPTH"); depth != "" {
		if _, err := fmt.Sscanf(depth, "%d", &payload.Git.Depth); err != nil {
			return nil, fmt.Errorf("job %q: GIT_DEPTH %q is not a number", j.Name, depth)
		}
	}
	return payload, nil
}

func (p *Project) info(j *pipeline.Job) job.Info {
	return job.Info{
		Name: j.Name, Stage: j.Stage, PipelineID: p.PipelineID,
		ProjectID: projectID, ProjectName: path.Base(p.Repository.Project), ProjectFullPath: p.Repository.Project,
		NamespaceID: 1, RootNamespaceID: 1, OrganizationID: 1, UserID: 1,
		RunningJobs: "0",
	}
}

func (p *Project) git(token string) job.Git {
	repo := *p.URL
	repo.User = url.UserPassword("gitlab-ci-token", token)
	repo.Path = path.Join(repo.Path, p.Repository.URLPath())
	g := job.Git{
		RepoURL: repo.String(), ObjectFormat: "sha1",
		Ref: p.Repository.Branch, SHA: p.Repository.SHA, BeforeSHA: nullSHA, RefType: "branch",
		Refspecs: []string{fmt.Sprintf("+refs/pipelines/%[1]d:refs/pipelines/%[1]d", p.PipelineID)},
		Depth:    gitDepth,
	}
	if g.Ref != "HEAD" {
		g.Refspecs = append(g.Refspecs, fmt.Sprintf("+refs/heads/%[1]s:refs/remotes/origin/%[1]s", g.Ref))
	}
	return g
}

// steps are the scripts of the job: before_script and script are one.
func steps(j *pipeline.Job, timeout int) []job.Step {
	list := []job.Step{{
		Name: job.StepScript, Script: slices.Concat(j.BeforeScript, j.Script),
		Timeout: timeout, When: pipeline.WhenOnSuccess,
	}}
	if j.Release != nil {
		list = append(list, job.Step{
			Name: "release", Script: []string{releaseCommand(j.Release)},
			Timeout: timeout, When: pipeline.WhenOnSuccess,
		})
	}
	if len(j.AfterScript) > 0 {
		list = append(list, job.Step{
			Name: job.StepAfterScript, Script: j.AfterScript,
			Timeout: timeout, When: pipeline.WhenAlways, AllowFailure: true,
		})
	}
	return list
}

// releaseCommand calls GitLab's tool for releases, which the image must have.
func releaseCommand(r *pipeline.Release) string {
	command := "release-cli create"
	for _, option := range [][2]string{
		{"name", r.Name}, {"description", r.Description}, {"tag-name", r.TagName}, {"ref", r.Ref},
	} {
		if option[1] != "" {
			escaped := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "`", "\\`").Replace(option[1])
			command += fmt.Sprintf(` --%s "%s"`, option[0], escaped)
		}
	}
	return command
}

func (p *Project) credentials(token string) []job.Credentials {
	if p.Registry == nil {
		return []job.Credentials{}
	}
	user, password := p.Registry.login(token)
	return []job.Credentials{{Type: "registry", URL: p.Registry.Host, Username: user, Password: password}}
}

func (r *Registry) login(token string) (user, password string) {
	user, password = r.User, r.Password
	if user == "" {
		user = "gitlab-ci-token"
	}
	if password == "" {
		password = token
	}
	return user, password
}

func (p *Project) dependencies(j *pipeline.Job, earlier map[string]Earlier) ([]job.Dependency, error) {
	list := []job.Dependency{}
	for _, name := range p.Pipeline.ArtifactsFrom(j) {
		e, ok := earlier[name]
		if !ok {
			continue // it has not run
		}
		d := job.Dependency{ID: e.ID, Token: e.Token, Name: name}
		archive, err := p.Artifacts(e.ID)
		switch {
		case err == nil:
			d.ArtifactsFile = job.ArtifactsFile{Filename: archive.Filename, Size: archive.Size}
		case !errors.Is(err, gitlab.ErrNoArtifacts):
			return nil, err
		}
		list = append(list, d)
	}
	return list, nil
}
