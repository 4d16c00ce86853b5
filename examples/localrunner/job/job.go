// Package job holds one CI job as GitLab sends it to a runner: the content of
// a custom executor's JOB_RESPONSE_FILE, and the variables with the rules by
// which they refer to each other.
//
// The JSON keys are those of GitLab Runner 19.4 (common/spec/spec.go).
package job

// Job is the payload of one job.
type Job struct {
	ID             int64          `json:"id"`
	Token          string         `json:"token"`
	AllowGitFetch  bool           `json:"allow_git_fetch"`
	Info           Info           `json:"job_info"`
	Git            Git            `json:"git_info"`
	Runner         Runner         `json:"runner_info"`
	Inputs         struct{}       `json:"inputs"`
	Variables      Variables      `json:"variables"`
	Steps          []Step         `json:"steps"`
	Image          Image          `json:"image"`
	Services       []Image        `json:"services"`
	Artifacts      []Artifact     `json:"artifacts"`
	Cache          []Cache        `json:"cache"`
	Credentials    []Credentials  `json:"credentials"`
	Dependencies   []Dependency   `json:"dependencies"`
	Features       Features       `json:"features"`
	Hooks          []Hook         `json:"hooks,omitempty"`
	PolicyOptions  PolicyOptions  `json:"policy_options"`
	SuspendOptions SuspendOptions `json:"suspend_options"`
}

// Info says where the job belongs.
type Info struct {
	Name               string  `json:"name"`
	Stage              string  `json:"stage"`
	PipelineID         int64   `json:"pipeline_id"`
	ProjectID          int64   `json:"project_id"`
	ProjectName        string  `json:"project_name"`
	ProjectFullPath    string  `json:"project_full_path"`
	NamespaceID        int64   `json:"namespace_id"`
	RootNamespaceID    int64   `json:"root_namespace_id"`
	OrganizationID     int64   `json:"organization_id"`
	InstanceID         string  `json:"instance_id"`
	InstanceUUID       string  `json:"instance_uuid"`
	UserID             int64   `json:"user_id"`
	ScopedUserID       *int64  `json:"scoped_user_id,omitempty"`
	TimeInQueueSeconds float64 `json:"time_in_queue_seconds"`
	RunningJobs        string  `json:"project_jobs_running_on_instance_runners_count"`
	QueueSize          int64   `json:"queue_size"`
	QueueDepth         int64   `json:"queue_depth"`
}

// Git says what to check out. RepoURL carries the job token.
type Git struct {
	RepoURL      string   `json:"repo_url"`
	ObjectFormat string   `json:"repo_object_format"`
	Ref          string   `json:"ref"`
	SHA          string   `json:"sha"`
	BeforeSHA    string   `json:"before_sha"`
	RefType      string   `json:"ref_type"`
	Refspecs     []string `json:"refspecs"`
	Depth        int      `json:"depth"`
	Protected    *bool    `json:"protected"`
}

// Runner carries the job's time limit, Timeout, in seconds.
type Runner struct {
	UUID    string `json:"uuid"`
	Timeout int    `json:"timeout"`
}

// Step is one script of the job. The names "script" and "after_script" are
// GitLab's own; every other name makes a stage "step_<name>".
type Step struct {
	Name         string   `json:"name"`
	Script       []string `json:"script"`
	Timeout      int      `json:"timeout"`
	When         string   `json:"when"`
	AllowFailure bool     `json:"allow_failure"`
}

// Names of the steps that GitLab Runner knows.
const (
	StepScript      = "script"
	StepAfterScript = "after_script"
)

// Image is the image of the job or of a service.
type Image struct {
	Name            string          `json:"name"`
	Alias           string          `json:"alias,omitempty"`
	Command         []string        `json:"command,omitempty"`
	Entrypoint      []string        `json:"entrypoint,omitempty"`
	Ports           []Port          `json:"ports,omitempty"`
	Variables       Variables       `json:"variables,omitempty"`
	PullPolicies    []string        `json:"pull_policy,omitempty"`
	ExecutorOptions ExecutorOptions `json:"executor_opts"`
}

// Port is a port that a service listens on.
type Port struct {
	Number   int    `json:"number,omitempty"`
	Protocol string `json:"protocol,omitempty"`
	Name     string `json:"name,omitempty"`
}

// ExecutorOptions are the settings of an image for one kind of executor.
type ExecutorOptions struct {
	Docker     DockerOptions     `json:"docker"`
	Kubernetes KubernetesOptions `json:"kubernetes"`
}

// DockerOptions are image:docker of a pipeline file.
type DockerOptions struct {
	Platform string `json:"platform"`
	User     string `json:"user"`
}

// KubernetesOptions are image:kubernetes of a pipeline file. User is "UID" or
// "UID:GID".
type KubernetesOptions struct {
	User string `json:"user"`
}

// Artifact is one archive that the job hands in.
type Artifact struct {
	Name      string   `json:"name"`
	Untracked bool     `json:"untracked"`
	Paths     []string `json:"paths"`
	Exclude   []string `json:"exclude"`
	When      string   `json:"when"`
	Type      string   `json:"artifact_type"`
	Format    string   `json:"artifact_format"`
	ExpireIn  string   `json:"expire_in"`
}

// Cache is one cache of the job.
type Cache struct {
	Key          string   `json:"key"`
	Untracked    bool     `json:"untracked"`
	Policy       string   `json:"policy"`
	Paths        []string `json:"paths"`
	When         string   `json:"when"`
	FallbackKeys []string `json:"fallback_keys"`
}

// Values of `when` for artifacts and caches.
const (
	WhenOnSuccess = "on_success"
	WhenOnFailure = "on_failure"
	WhenAlways    = "always"
)

// Applies reports whether something with this `when` is due after a job that
// ended well (success) or badly. An empty `when` means on_success.
func Applies(when string, success bool) bool {
	switch when {
	case WhenAlways:
		return true
	case WhenOnFailure:
		return !success
	default:
		return success
	}
}

// Credentials let the job pull images. Type is "registry" for GitLab's own.
type Credentials struct {
	Type     string `json:"type"`
	URL      string `json:"url"`
	Username string `json:"username"`
	Password string `json:"password"`
}

// Dependency is an earlier job whose artifacts this one downloads.
type Dependency struct {
	ID            int64         `json:"id"`
	Token         string        `json:"token"`
	Name          string        `json:"name"`
	ArtifactsFile ArtifactsFile `json:"artifacts_file"`
}

// ArtifactsFile is empty when the earlier job left no artifacts.
type ArtifactsFile struct {
	Filename string `json:"filename"`
	Size     int64  `json:"size"`
}

// Features says what the GitLab instance can do.
type Features struct {
	TraceSections     bool      `json:"trace_sections"`
	TokenMaskPrefixes []string  `json:"token_mask_prefixes"`
	FailureReasons    []string  `json:"failure_reasons"`
	Tracing           *struct{} `json:"tracing"`
}

// Hook is a script that runs around get_sources.
type Hook struct {
	Name   string   `json:"name"`
	Script []string `json:"script"`
}

// Names of the hooks.
const (
	HookPreGetSources  = "pre_get_sources_script"
	HookPostGetSources = "post_get_sources_script"
)

// HookScript returns the script of the hook of that name, or nothing.
func (j *Job) HookScript(name string) []string {
	for _, h := range j.Hooks {
		if h.Name == name {
			return h.Script
		}
	}
	return nil
}

// PolicyOptions belongs to GitLab's execution policies; always empty here.
type PolicyOptions struct {
	PolicyJob bool   `json:"execution_policy_job"`
	Name      string `json:"policy_name"`
}

// SuspendOptions belongs to suspendable environments, which a custom executor
// does not support; always empty here.
type SuspendOptions struct{}
