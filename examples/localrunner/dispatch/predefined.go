package dispatch

import (
	"fmt"
	"net/url"
	"path"
	"regexp"
	"strings"

	"github.com/socialweb-computer/tenant-executor/examples/localrunner/job"
	"github.com/socialweb-computer/tenant-executor/examples/localrunner/pipeline"
)

// predefined are the variables that GitLab gives every job, in so far as
// there is something to say here.
func (p *Project) predefined(j *pipeline.Job, payload *job.Job) job.Variables {
	server := strings.TrimSuffix(p.URL.String(), "/")
	project := p.Repository.Project
	projectURL := server + "/" + project
	vars := job.Variables{}
	add := func(key, value string) {
		vars = append(vars, job.Variable{Key: key, Value: value, Public: true})
	}
	secret := func(key, value string) {
		vars = append(vars, job.Variable{Key: key, Value: value, Masked: true})
	}
	add("CI", "true")
	add("GITLAB_CI", "true")
	add("CI_JOB_ID", fmt.Sprint(payload.ID))
	add("CI_JOB_URL", fmt.Sprintf("%s/-/jobs/%d", projectURL, payload.ID))
	secret("CI_JOB_TOKEN", payload.Token)
	add("CI_JOB_NAME", j.Name)
	add("CI_JOB_NAME_SLUG", slug(j.Name))
	add("CI_JOB_STAGE", j.Stage)
	add("CI_NODE_TOTAL", "1")
	if p.Registry != nil {
		user, password := p.Registry.login(payload.Token)
		add("CI_REGISTRY", p.Registry.Host)
		add("CI_REGISTRY_IMAGE", p.Registry.Host+"/"+project)
		add("CI_REGISTRY_USER", user)
		secret("CI_REGISTRY_PASSWORD", password)
	}
	vars = append(vars, job.Variable{Key: "CI_REPOSITORY_URL", Value: payload.Git.RepoURL})
	add("CI_PIPELINE_ID", fmt.Sprint(p.PipelineID))
	add("CI_PIPELINE_IID", "1")
	add("CI_PIPELINE_SOURCE", "push")
	add("CI_PIPELINE_URL", fmt.Sprintf("%s/-/pipelines/%d", projectURL, p.PipelineID))
	add("CI_SERVER_URL", server)
	add("CI_SERVER_HOST", p.URL.Hostname())
	add("CI_SERVER_PORT", port(p.URL))
	add("CI_SERVER_PROTOCOL", p.URL.Scheme)
	add("CI_SERVER_NAME", "GitLab")
	add("CI_API_V4_URL", server+"/api/v4")
	add("CI_PROJECT_ID", fmt.Sprint(projectID))
	add("CI_PROJECT_NAME", path.Base(project))
	add("CI_PROJECT_TITLE", path.Base(project))
	add("CI_PROJECT_PATH", project)
	add("CI_PROJECT_PATH_SLUG", slug(project))
	add("CI_PROJECT_NAMESPACE", path.Dir(project))
	add("CI_PROJECT_ROOT_NAMESPACE", strings.Split(project, "/")[0])
	add("CI_PROJECT_URL", projectURL)
	add("CI_PROJECT_VISIBILITY", "private")
	add("CI_DEFAULT_BRANCH", payload.Git.Ref)
	add("CI_CONFIG_PATH", ".gitlab-ci.yml")
	add("CI_COMMIT_SHA", payload.Git.SHA)
	add("CI_COMMIT_SHORT_SHA", payload.Git.SHA[:min(8, len(payload.Git.SHA))])
	add("CI_COMMIT_BEFORE_SHA", payload.Git.BeforeSHA)
	add("CI_COMMIT_REF_NAME", payload.Git.Ref)
	add("CI_COMMIT_REF_SLUG", slug(payload.Git.Ref))
	add("CI_COMMIT_BRANCH", payload.Git.Ref)
	add("CI_COMMIT_REF_PROTECTED", "false")
	vars = append(vars, job.Variable{Key: "CI_COMMIT_TITLE", Value: p.Repository.Title, Public: true, Raw: true})
	add("GITLAB_USER_ID", fmt.Sprint(payload.Info.UserID))
	add("GITLAB_USER_LOGIN", "root")
	return vars
}

func port(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Port()
	case u.Scheme == "https":
		return "443"
	default:
		return "80"
	}
}

// slug is a name for use in host names: lower case, letters, digits and
// hyphens, at most 63 characters.
func slug(s string) string {
	s = regexp.MustCompile(`[^a-z0-9]`).ReplaceAllString(strings.ToLower(s), "-")
	return strings.Trim(s[:min(63, len(s))], "-")
}
