package job

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"
)

// defaultTimeout is what the runner takes where GitLab names no job time-out
// (common/consts.go:9).
const defaultTimeout = 2 * time.Hour

// Job is what the driver uses of a job. Everything in it but Variables' values
// comes from the response file, which a pipeline cannot forge.
type Job struct {
	ID       int64
	Name     string
	Image    Image
	Services []Image
	// Credentials are logins that GitLab gives to the job.
	Credentials []Credential
	Timeout     time.Duration
	// Variables are the job's variables as GitLab sent them: not expanded, and
	// several of one name where one overrides another.
	Variables []Variable
	// Secrets are the variables that the runner fetches from elsewhere, and
	// whether each is a file.
	Secrets map[string]bool
	Project Project
	Git     Git
	// Steps are the names of the job's steps in their order.
	Steps []string

	// NamesRunner reports whether the job sets the runner's short token itself.
	// RunnerToken is then "", since nobody can tell the job's from the runner's.
	NamesRunner bool
	// RunnerToken is the short token of the runner, "" where none was handed
	// over (a stage run by hand).
	RunnerToken string
	// RunnerName is the runner's description as GitLab sends it, "" where it
	// does not. It is for people only.
	RunnerName string
	// ConcurrentID tells the jobs apart that the runner runs at once, "" where
	// the job sets it itself.
	ConcurrentID string
	// BuildsDir and ProjectDir are where the runner's scripts work. Both are
	// empty until config has answered.
	BuildsDir, ProjectDir string
}

// Image is a container image that the job names.
type Image struct {
	Name         string     `json:"name"`
	Alias        string     `json:"alias"`
	Command      []string   `json:"command"`
	Entrypoint   []string   `json:"entrypoint"`
	Ports        []Port     `json:"ports"`
	Variables    []Variable `json:"variables"`
	PullPolicies []string   `json:"pull_policy"`
	// Options are what the job asks of a kind of executor.
	Options ImageOptions `json:"executor_opts"`
}

// Port is a port of a service that GitLab shows to people (web IDE).
type Port struct {
	Number int32 `json:"number"`
}

// Aliases are the names in Alias, which blanks and commas part
// (common/spec/spec.go:336).
func (i Image) Aliases() []string {
	return strings.FieldsFunc(i.Alias, func(r rune) bool { return r == ',' || unicode.IsSpace(r) })
}

// Project is the GitLab project of the job.
type Project struct {
	ID, NamespaceID, RootNamespaceID int64
	Name, FullPath                   string
}

// Git is what the job builds.
type Git struct {
	URL, Ref, SHA, BeforeSHA string
}

// response is the part of the runner's spec.Job (common/spec/spec.go:542) that
// the driver reads.
type response struct {
	ID      int64 `json:"id"`
	JobInfo struct {
		Name            string `json:"name"`
		ProjectID       int64  `json:"project_id"`
		ProjectName     string `json:"project_name"`
		ProjectFullPath string `json:"project_full_path"`
		NamespaceID     int64  `json:"namespace_id"`
		RootNamespaceID int64  `json:"root_namespace_id"`
	} `json:"job_info"`
	GitInfo struct {
		RepoURL   string `json:"repo_url"`
		Ref       string `json:"ref"`
		SHA       string `json:"sha"`
		BeforeSHA string `json:"before_sha"`
	} `json:"git_info"`
	RunnerInfo struct {
		Timeout int64 `json:"timeout"`
	} `json:"runner_info"`
	Steps []struct {
		Name string `json:"name"`
	} `json:"steps"`
	Credentials []Credential `json:"credentials"`
	Image       Image        `json:"image"`
	Services    []Image      `json:"services"`
	Variables   []Variable   `json:"variables"`
	Secrets     map[string]struct {
		File *bool `json:"file"`
	} `json:"secrets"`
}

// TokenVariable is the runner's short token. The runner sets it
// (common/config.go:2498); GitLab sends it only where a pipeline or a project
// sets it as well, and then that one wins.
const TokenVariable = "CI_RUNNER_SHORT_TOKEN"

// Further facts about the runner that are variables.
const (
	// descriptionVariable comes from GitLab, among the job's first variables
	// (Ci::Runner#predefined_variables).
	descriptionVariable = "CI_RUNNER_DESCRIPTION"
	// slotVariable comes from the runner (common/build.go, getBaseVariablesBeforeJob).
	slotVariable = "CI_CONCURRENT_PROJECT_ID"
)

// ErrNoID is the error of a job file without a job id: it is not a job, or it
// is cut off.
var ErrNoID = errors.New(`no "id" above 0: this is not a job response`)

// Parse reads a job response and joins it with the environment of the stage.
// Unknown keys are passed over, since GitLab adds some with each release.
func Parse(data []byte, env Environment) (Job, error) {
	var r response
	if err := json.Unmarshal(data, &r); err != nil {
		return Job{}, fmt.Errorf("reading the job response: %w", err)
	}
	if r.ID <= 0 {
		return Job{}, fmt.Errorf("reading the job response: %w", ErrNoID)
	}
	j := Job{
		ID:          r.ID,
		Name:        r.JobInfo.Name,
		Image:       r.Image,
		Services:    r.Services,
		Credentials: r.Credentials,
		Variables:   r.Variables,
		Timeout:     time.Duration(r.RunnerInfo.Timeout) * time.Second,
		Project: Project{
			ID:              r.JobInfo.ProjectID,
			NamespaceID:     r.JobInfo.NamespaceID,
			RootNamespaceID: r.JobInfo.RootNamespaceID,
			Name:            r.JobInfo.ProjectName,
			FullPath:        r.JobInfo.ProjectFullPath,
		},
		Git: Git{
			URL:       withoutCredentials(r.GitInfo.RepoURL),
			Ref:       r.GitInfo.Ref,
			SHA:       r.GitInfo.SHA,
			BeforeSHA: r.GitInfo.BeforeSHA,
		},
		BuildsDir:  env.Variable("CI_BUILDS_DIR"),
		ProjectDir: env.Variable("CI_PROJECT_DIR"),
	}
	if j.Timeout <= 0 {
		j.Timeout = defaultTimeout
	}
	for name, secret := range r.Secrets {
		if j.Secrets == nil {
			j.Secrets = map[string]bool{}
		}
		// A secret is a file unless it says otherwise (common/spec/spec.go).
		j.Secrets[name] = secret.File == nil || *secret.File
	}
	j.readRunner(env)
	for _, step := range r.Steps {
		j.Steps = append(j.Steps, step.Name)
	}
	return j, nil
}

// readRunner reads what is known of the runner. A pipeline can set every
// variable, and what it sets wins over the runner's own, so one that the job
// sets itself says nothing.
func (j *Job) readRunner(env Environment) {
	if j.NamesRunner = j.sets(TokenVariable); !j.NamesRunner {
		j.RunnerToken = env.Variable(TokenVariable)
	}
	if !j.sets(slotVariable) {
		j.ConcurrentID = env.Variable(slotVariable)
	}
	// GitLab's own variables come before those of pipelines and projects.
	for _, v := range j.Variables {
		if v.Key == descriptionVariable {
			j.RunnerName = v.Value
			break
		}
	}
}

// sets reports whether the job itself brings a variable or a secret.
func (j *Job) sets(name string) bool {
	_, secret := j.Secrets[name]
	return secret || slices.ContainsFunc(j.Variables, func(v Variable) bool { return v.Key == name })
}

// withoutCredentials is a repository URL that can be shown: GitLab writes the
// job token into it. What is no URL is dropped, since nobody can tell which
// part of it is secret.
func withoutCredentials(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return ""
	}
	u.User = nil
	return u.String()
}

// Host is the GitLab instance, as host or host:port. It comes from the
// repository's address, which GitLab writes; CI_SERVER_URL is a variable that
// a pipeline can set.
func (j Job) Host() string {
	u, err := url.Parse(j.Git.URL)
	if err != nil {
		return ""
	}
	return strings.ToLower(u.Host)
}

// URL is the address of the job's page, "" where the repository's address
// does not tell it.
func (j Job) URL() string {
	if j.Host() == "" {
		return ""
	}
	return fmt.Sprintf("%s/-/jobs/%d", strings.TrimSuffix(j.Git.URL, ".git"), j.ID)
}
