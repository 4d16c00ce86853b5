package dispatch

import (
	"context"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/socialweb-computer/tenant-executor/examples/localrunner/gitlab"
	"github.com/socialweb-computer/tenant-executor/examples/localrunner/job"
	"github.com/socialweb-computer/tenant-executor/examples/localrunner/pipeline"
)

func parse(t *testing.T, text string) *pipeline.Pipeline {
	t.Helper()
	p, err := pipeline.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestPayload(t *testing.T) {
	p := &Project{
		Pipeline: parse(t, `
variables: {A: global, B: "$A-b", C: "$B-c"}
first: {script: x, stage: build}
second: {script: x, stage: build}
it:
  image: alpine
  before_script: [one]
  script: [two]
  after_script: [three]
  variables: {A: own, GIT_DEPTH: "3"}
  release: {tag_name: v1, description: 'a "b"'}
`),
		PipelineID: 50,
		Repository: &gitlab.Repository{Project: "group/demo", SHA: strings.Repeat("ab", 20), Branch: "main", Title: "costs $5"},
		URL:        &url.URL{Scheme: "http", Host: "10.0.0.1:80"},
		Registry:   &Registry{Host: "10.0.0.1:5000", User: "me", Password: "pw"},
		Variables:  job.Variables{{Key: "EXTRA", Value: "e"}},
		Artifacts: func(id int64) (gitlab.Archive, error) {
			if id == 1 {
				return gitlab.Archive{Filename: "a.zip", Size: 5}, nil
			}
			return gitlab.Archive{}, gitlab.ErrNoArtifacts
		},
	}
	j, err := p.Payload(p.Pipeline.Job("it"), 77, "tok", map[string]Earlier{"first": {1, "t1"}, "second": {2, "t2"}})
	if err != nil {
		t.Fatal(err)
	}
	if want := "http://gitlab-ci-token:tok@10.0.0.1:80/group/demo.git"; j.Git.RepoURL != want {
		t.Errorf("repository %q, want %q", j.Git.RepoURL, want)
	}
	if j.ID != 77 || j.Runner.Timeout != 3600 || j.Git.Depth != 3 || j.Info.ProjectFullPath != "group/demo" {
		t.Errorf("payload: %+v", j)
	}
	steps := []job.Step{
		{Name: "script", Script: []string{"one", "two"}, Timeout: 3600, When: "on_success"},
		{Name: "release", Script: []string{`release-cli create --description "a \"b\"" --tag-name "v1"`}, Timeout: 3600, When: "on_success"},
		{Name: "after_script", Script: []string{"three"}, Timeout: 3600, When: "always", AllowFailure: true},
	}
	if diff := cmp.Diff(steps, j.Steps); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
	dependencies := []job.Dependency{
		{ID: 1, Token: "t1", Name: "first", ArtifactsFile: job.ArtifactsFile{Filename: "a.zip", Size: 5}},
		{ID: 2, Token: "t2", Name: "second"},
	}
	if diff := cmp.Diff(dependencies, j.Dependencies); diff != "" {
		t.Errorf("dependencies (-want +got):\n%s", diff)
	}
	credentials := []job.Credentials{{Type: "registry", URL: "10.0.0.1:5000", Username: "me", Password: "pw"}}
	if diff := cmp.Diff(credentials, j.Credentials); diff != "" {
		t.Errorf("credentials (-want +got):\n%s", diff)
	}
	values := j.Variables.Expand()
	for key, want := range map[string]string{
		"A": "own", "B": "own-b", "C": "own-b-c", "EXTRA": "e", "CI_JOB_ID": "77", "CI_COMMIT_TITLE": "costs $5",
		"CI_PROJECT_NAMESPACE": "group", "CI_API_V4_URL": "http://10.0.0.1:80/api/v4", "CI_COMMIT_REF_SLUG": "main",
	} {
		if got := values.Value(key); got != want {
			t.Errorf("%s = %q, want %q", key, got, want)
		}
	}
	if masked := strings.Join(values.Masked(), " "); masked != "tok pw" {
		t.Errorf("masked values: %q", masked)
	}
}

func TestSchedule(t *testing.T) {
	text := `
stages: [a, b, c]
a1: {script: x, stage: a}
a2: {script: x, stage: a, needs: [a1]}
b1: {script: x, stage: b}
b2: {script: x, stage: b, when: manual}
b3: {script: x, stage: b, when: on_failure}
c1: {script: x, stage: c, when: always}
c2: {script: x, stage: c, when: never}
`
	for name, c := range map[string]struct {
		only     []string
		outcomes map[string]Outcome
		want     string
	}{
		"all pass":     {nil, nil, "a1 a2 b1 c1"},
		"first fails":  {nil, map[string]Outcome{"a1": FailedJob}, "a1 b3 c1"},
		"may fail":     {nil, map[string]Outcome{"a1": Tolerated}, "a1 a2 b1 c1"},
		"second fails": {nil, map[string]Outcome{"a2": FailedJob}, "a1 a2 b3 c1"},
		"named":        {[]string{"b1", "b2"}, nil, "b1 b2"},
	} {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			var ran []string
			s := &Schedule{
				Pipeline: parse(t, text), Parallel: 1, Only: c.only,
				Run: func(_ context.Context, j *pipeline.Job, slot int) Outcome {
					mu.Lock()
					defer mu.Unlock()
					if slot != 0 {
						t.Errorf("slot %d", slot)
					}
					ran = append(ran, j.Name)
					if o, ok := c.outcomes[j.Name]; ok {
						return o
					}
					return Passed
				},
				Skip: func(*pipeline.Job, string) {},
			}
			if err := s.Check(); err != nil {
				t.Fatal(err)
			}
			s.All(t.Context())
			if name == "named" && len(ran) == 2 && ran[0] == "b2" {
				ran[0], ran[1] = ran[1], ran[0] // jobs of a stage have no order
			}
			if got := strings.Join(ran, " "); got != c.want {
				t.Errorf("ran %q, want %q", got, c.want)
			}
		})
	}
}

func TestScheduleRunsJobsSideBySide(t *testing.T) {
	met := make(chan int)
	s := &Schedule{
		Pipeline: parse(t, "a: {script: x}\nb: {script: x}"), Parallel: 2,
		Run: func(_ context.Context, j *pipeline.Job, slot int) Outcome {
			if j.Name == "a" {
				met <- slot // goes on only when b is running
			} else if other := <-met; other == slot {
				t.Errorf("both jobs have slot %d", slot)
			}
			return Passed
		},
	}
	s.All(t.Context())
}

func TestScheduleStops(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	skipped := ""
	s := &Schedule{
		Pipeline: parse(t, "a: {script: x, stage: build}\nb: {script: x}"), Parallel: 1,
		Run:  func(context.Context, *pipeline.Job, int) Outcome { stop(); return Passed },
		Skip: func(j *pipeline.Job, _ string) { skipped += j.Name },
	}
	s.All(ctx)
	if skipped != "b" {
		t.Errorf("skipped %q", skipped)
	}
}

func TestScheduleCheck(t *testing.T) {
	p := parse(t, "build-it: {script: x}")
	for want, s := range map[string]*Schedule{
		`no job "build_it"; did you mean "build-it"?`: {Pipeline: p, Parallel: 1, Only: []string{"build_it"}},
		"want at least 1": {Pipeline: p},
	} {
		if err := s.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
