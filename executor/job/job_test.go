package job_test

import (
	"errors"
	"os"
	"regexp"
	"testing"
	"testing/quick"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/socialweb-computer/tenant-executor/executor/job"
)

func response(t *testing.T) []byte {
	t.Helper()
	data, err := os.ReadFile("testdata/response.json")
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestParse(t *testing.T) {
	env := job.ParseEnvironment([]string{
		"CUSTOM_ENV_CI_RUNNER_SHORT_TOKEN=t3_abcdef",
		"CUSTOM_ENV_CI_CONCURRENT_PROJECT_ID=2",
		"CUSTOM_ENV_CI_JOB_ID=1", // what a pipeline may claim
	})
	got, err := job.Parse(response(t), env)
	if err != nil {
		t.Fatal(err)
	}
	want := job.Job{
		ID:    4711,
		Name:  "build: [a, b] 1/3",
		Image: job.Image{Name: "debian:12", PullPolicies: []string{"always"}},
		Services: []job.Image{
			{Name: "redis:7", Alias: "cache,kv"},
		},
		Timeout:   30 * time.Minute,
		Variables: []job.Variable{{Key: "CI_JOB_ID", Value: "4711", Public: true}},
		Project:   job.Project{ID: 7, NamespaceID: 3, RootNamespaceID: 2, Name: "demo", FullPath: "group/sub/demo"},
		Git: job.Git{
			URL: "https://gitlab.example.com:8443/group/sub/demo.git",
			Ref: "main", SHA: "3f477c1c87c4fd1df8d20b00f6ec34599e56fea9", BeforeSHA: "0000000000000000000000000000000000000000",
		},
		Steps:        []string{"script", "after_script"},
		RunnerToken:  "t3_abcdef",
		ConcurrentID: "2",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("parsed job (-want +got):\n%s", diff)
	}
	if got, want := got.URL(), "https://gitlab.example.com:8443/group/sub/demo/-/jobs/4711"; got != want {
		t.Errorf("URL = %q, want %q", got, want)
	}
}

// A pipeline can set every variable, and what it sets wins over the runner's
// own: what is known of the runner does not come from there.
func TestAJobCannotForgeItsRunner(t *testing.T) {
	env := job.ParseEnvironment([]string{
		"CUSTOM_ENV_CI_RUNNER_SHORT_TOKEN=forged", "CUSTOM_ENV_CI_RUNNER_DESCRIPTION=forged", "CUSTOM_ENV_CI_CONCURRENT_PROJECT_ID=forged",
	})
	for name, text := range map[string]string{
		"variables": `{"id": 1, "variables": [{"key": "CI_RUNNER_DESCRIPTION", "value": "the runner's own"},
			{"key": "CI_RUNNER_SHORT_TOKEN", "value": "forged"}, {"key": "CI_RUNNER_DESCRIPTION", "value": "forged"},
			{"key": "CI_CONCURRENT_PROJECT_ID", "value": "forged"}]}`,
		"secrets": `{"id": 1, "variables": [{"key": "CI_RUNNER_DESCRIPTION", "value": "the runner's own"}],
			"secrets": {"CI_RUNNER_SHORT_TOKEN": {}, "CI_CONCURRENT_PROJECT_ID": {}, "CI_RUNNER_DESCRIPTION": {}}}`,
	} {
		j, err := job.Parse([]byte(text), env)
		if err != nil {
			t.Fatal(err)
		}
		if j.RunnerToken != "" || !j.NamesRunner || j.ConcurrentID != "" || j.RunnerName != "the runner's own" {
			t.Errorf("%s: token %q (named by the job: %t), slot %q, name %q", name, j.RunnerToken, j.NamesRunner, j.ConcurrentID, j.RunnerName)
		}
	}
	j, err := job.Parse([]byte(`{"id": 1}`), env)
	if err != nil || j.RunnerToken != "forged" || j.NamesRunner || j.ConcurrentID != "forged" {
		t.Errorf("what the runner itself says: %+v, %v", j, err)
	}
}

func TestParseRefuses(t *testing.T) {
	for name, text := range map[string]string{
		"nothing":       "",
		"cut off":       `{"id": 12, "job_info": {`,
		"no id":         `{"job_info": {"name": "x"}}`,
		"negative id":   `{"id": -1}`,
		"not an object": `[1]`,
	} {
		t.Run(name, func(t *testing.T) {
			if j, err := job.Parse([]byte(text), nil); err == nil {
				t.Errorf("Parse gave %+v, want an error", j)
			}
		})
	}
	if _, err := job.Parse([]byte(`{}`), nil); !errors.Is(err, job.ErrNoID) {
		t.Errorf("error of {} is %v, want ErrNoID", err)
	}
}

func TestParseDefaultTimeout(t *testing.T) {
	j, err := job.Parse([]byte(`{"id": 1}`), nil)
	if err != nil || j.Timeout != 2*time.Hour {
		t.Errorf("timeout %s, error %v; want 2h", j.Timeout, err)
	}
}

func TestURLIsHiddenWhereItCannotBeRead(t *testing.T) {
	j, err := job.Parse([]byte(`{"id": 1, "git_info": {"repo_url": "http://user:secret@[broken/x.git"}}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	if j.Git.URL != "" || j.URL() != "" {
		t.Errorf("URL %q and job URL %q of a repository address that cannot be read; want none", j.Git.URL, j.URL())
	}
}

func TestParseEnvironment(t *testing.T) {
	env := job.ParseEnvironment([]string{"A=1", "B=x=y\nz=", "A=2", "C", "D="})
	want := job.Environment{"A": "2", "B": "x=y\nz=", "D": ""}
	if diff := cmp.Diff(want, env); diff != "" {
		t.Errorf("environment (-want +got):\n%s", diff)
	}
}

// The key has to be the same in four processes, which share nothing but the
// job file and the runner's token; and it has to tell jobs apart.
func TestKey(t *testing.T) {
	base := job.Job{ID: 1, RunnerToken: "t", Git: job.Git{URL: "https://gitlab.example.com/a/b.git"}}
	other := func(change func(*job.Job)) job.Job { j := base; change(&j); return j }
	if base.Key() != other(func(j *job.Job) { j.Name, j.Git.Ref, j.ProjectDir = "x", "y", "/builds/z" }).Key() {
		t.Error("the key depends on more than host, id and runner")
	}
	if base.Key() != other(func(j *job.Job) { j.Git.URL = "https://GitLab.example.com/c/d.git" }).Key() {
		t.Error("the key depends on the spelling of the host or on the project")
	}
	for name, j := range map[string]job.Job{
		"id":       other(func(j *job.Job) { j.ID = 2 }),
		"runner":   other(func(j *job.Job) { j.RunnerToken = "u" }),
		"instance": other(func(j *job.Job) { j.Git.URL = "https://gitlab.example.org/a/b.git" }),
		"port":     other(func(j *job.Job) { j.Git.URL = "https://gitlab.example.com:8443/a/b.git" }),
		"shifted":  other(func(j *job.Job) { j.ID, j.RunnerToken = 11, "" }),
	} {
		if j.Key() == base.Key() {
			t.Errorf("another %s has the same key", name)
		}
	}
	if !regexp.MustCompile(`^[0-9a-f]{16}$`).MatchString(base.Key()) {
		t.Errorf("key %q is not 16 hex digits", base.Key())
	}
}

func TestPodNameIsAlwaysValid(t *testing.T) {
	valid := func(id uint32, token, host string) bool {
		j := job.Job{ID: int64(id) << 20, RunnerToken: token, Git: job.Git{URL: "https://" + host + "/a.git"}}
		return len(validation.IsDNS1123Label(j.PodName("a1b2c3"))) == 0
	}
	if err := quick.Check(valid, nil); err != nil {
		t.Error(err)
	}
}

func TestContainerFor(t *testing.T) {
	for stage, want := range map[string]job.Container{
		"prepare_script": job.Helper, "get_sources": job.Helper, "clear_worktree": job.Helper,
		"restore_cache": job.Helper, "download_artifacts": job.Helper,
		"archive_cache": job.Helper, "archive_cache_on_failure": job.Helper,
		"upload_artifacts_on_success": job.Helper, "upload_artifacts_on_failure": job.Helper,
		"cleanup_file_variables": job.Helper, "boot_verify_probes": job.Helper,
		"build_script": job.Build, "step_script": job.Build, "step_release": job.Build,
		"after_script": job.Build, "something_new": job.Build,
	} {
		if got := job.ContainerFor(stage); got != want {
			t.Errorf("stage %s runs in %s, want %s", stage, got, want)
		}
	}
}
