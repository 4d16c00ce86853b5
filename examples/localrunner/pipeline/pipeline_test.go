package pipeline

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/socialweb-computer/tenant-executor/examples/localrunner/job"
)

func TestParse(t *testing.T) {
	p, err := Parse([]byte(`
stages: [build, check]
variables:
  PLAIN: text
  NUMBER: 3
  SECRET: {value: s3cret, masked: true}
  SETTINGS: {value: "a: $b\n", file: true, raw: true}
default:
  image: debian:12
  timeout: 30 minutes
  before_script: [echo first]
.shared: &shared
  tags: [x]
  after_script: [echo shared]
  variables: {A: shared}
one:
  <<: *shared
  stage: build
  image:
    name: alpine:3
    entrypoint: [""]
    pull_policy: if-not-present
    kubernetes: {user: 1000}
  services:
    - redis:7
    - name: postgres:16
      alias: db, pg
      command: [postgres, -N, "5"]
      variables: {P: $A}
      ports: [5432, {number: 80, name: web, protocol: https}]
  script: echo one line
  variables: {A: own}
  artifacts: {paths: [out/], exclude: [out/tmp], when: always, expire_in: 1 week, name: n, untracked: true}
  cache:
    - {key: k, paths: [c], policy: pull, when: always, fallback_keys: [f]}
    - paths: [d]
  hooks: {pre_get_sources_script: [echo pre]}
  allow_failure: {exit_codes: [3, 4]}
  release: {tag_name: v1, description: "say \"hi\""}
two:
  stage: check
  before_script: []
  script:
    - echo a
    - [echo b, [echo c]]
  needs: [{job: one, artifacts: false}, {job: gone, optional: true}]
  timeout: 1h 30m
  when: manual
  allow_failure: true
  environment: production
`))
	if err != nil {
		t.Fatal(err)
	}
	one := &Job{
		Name: "one", Stage: "build", Line: 16, When: WhenOnSuccess, Timeout: 30 * time.Minute,
		Image: job.Image{
			Name: "alpine:3", Entrypoint: []string{""}, PullPolicies: []string{"if-not-present"},
			ExecutorOptions: job.ExecutorOptions{Kubernetes: job.KubernetesOptions{User: "1000"}},
		},
		Services: []job.Image{
			{Name: "redis:7"},
			{
				Name: "postgres:16", Alias: "db, pg", Command: []string{"postgres", "-N", "5"},
				Variables: job.Variables{{Key: "P", Value: "$A", Public: true}},
				Ports:     []job.Port{{Number: 5432, Protocol: "http", Name: "default_port"}, {Number: 80, Protocol: "https", Name: "web"}},
			},
		},
		BeforeScript: []string{"echo first"}, Script: []string{"echo one line"}, AfterScript: []string{"echo shared"},
		Variables: job.Variables{{Key: "A", Value: "own", Public: true}},
		Artifacts: &job.Artifact{
			Name: "n", Untracked: true, Paths: []string{"out/"}, Exclude: []string{"out/tmp"}, When: "always",
			Type: "archive", Format: "zip", ExpireIn: "1 week",
		},
		Cache: []job.Cache{
			{Key: "k", Policy: "pull", Paths: []string{"c"}, When: "always", FallbackKeys: []string{"f"}},
			{Key: "default", Policy: "pull-push", Paths: []string{"d"}, When: "on_success", FallbackKeys: []string{}},
		},
		Hooks:          []job.Hook{{Name: "pre_get_sources_script", Script: []string{"echo pre"}}},
		Release:        &Release{TagName: "v1", Description: `say "hi"`},
		AllowExitCodes: []int{3, 4},
	}
	two := &Job{
		Name: "two", Stage: "check", Line: 40, When: WhenManual, Timeout: 90 * time.Minute,
		Image: job.Image{Name: "debian:12"}, BeforeScript: []string{},
		Script: []string{"echo a", "echo b", "echo c"}, AllowFailure: true,
		Needs: []Need{{Job: "one"}, {Job: "gone", Artifacts: true, Optional: true}},
	}
	want := &Pipeline{
		Stages: []string{".pre", "build", "check", ".post"},
		Variables: job.Variables{
			{Key: "PLAIN", Value: "text", Public: true}, {Key: "NUMBER", Value: "3", Public: true},
			{Key: "SECRET", Value: "s3cret", Masked: true}, {Key: "SETTINGS", Value: "a: $b\n", File: true, Raw: true},
		},
		Jobs:     []*Job{one, two},
		Warnings: []string{`line 50: job "two": environment has no effect here`},
	}
	if diff := cmp.Diff(want, p); diff != "" {
		t.Errorf("pipeline (-want +got):\n%s", diff)
	}
}

func TestParseRefuses(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"empty":               {"", "the file is empty"},
		"no job":              {"stages: [a]", "there is no job"},
		"bad YAML":            {"a: [", "line 1"},
		"key twice":           {"a: {script: x}\na: {script: y}", `"a"`},
		"typing error":        {"a:\n  scripts: [x]", `line 2: job "a": unknown key "scripts"; did you mean "script"?`},
		"typing error at top": {"stagse: [a]\na: {script: x}", `"stagse" is neither a known key nor a job; did you mean "stages"?`},
		"deep typing error":   {"a:\n  script: x\n  artifacts:\n    path: [y]", `line 4: job "a" artifacts: unknown key "path"; did you mean "paths"?`},
		"unsupported":         {"include: other.yml\na: {script: x}", `GitLab's key "include" is not supported here: other files are not read`},
		"rules":               {"a:\n  script: x\n  rules: []", `line 3: job "a": GitLab's key "rules" is not supported here`},
		"no script":           {"a: {stage: test}", `the script is missing`},
		"unknown stage":       {"a: {script: x, stage: tset}", `stage "tset" is not one of`},
		"unknown need":        {"a: {script: x}\nb: {script: x, needs: [aa]}", `needs: there is no job "aa"; did you mean "a"?`},
		"later need":          {"a: {script: x, stage: build, needs: [b]}\nb: {script: x}", `job "b" does not come earlier`},
		"circle":              {"a: {script: x, needs: [b]}\nb: {script: x, needs: [a]}", "needs itself"},
		"same stage":          {"a: {script: x, dependencies: [b]}\nb: {script: x}", "does not come earlier"},
		"reference":           {"a: {script: !reference [.x, script]}", "!reference is not supported here"},
		"bad timeout":         {"a: {script: x, timeout: soon}", `"soon" is not a time`},
		"bad when":            {"a: {script: x, when: on_sucess}", `did you mean "on_success"?`},
		"bad policy":          {"a: {script: x, image: {name: y, pull_policy: sometimes}}", `"sometimes" is not one of`},
		"bad variable":        {"a: {script: x, variables: {A-B: 1}}", `"A-B" is not a name for a variable`},
		"nested variable":     {"a: {script: x, variables: {A: [1]}}", "want plain text"},
		"nameless image":      {"a: {script: x, image: {entrypoint: [y]}}", "the name is missing"},
		"text for a flag":     {"a: {script: x, allow_failure: maybe}", "want true or false"},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := Parse([]byte(c.text))
			if err == nil || !strings.Contains(err.Error(), c.want) || p != nil {
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
		})
	}
}

func TestArtifactsFrom(t *testing.T) {
	p, err := Parse([]byte(`
a: {script: x, stage: build}
b: {script: x, stage: build}
all: {script: x}
some: {script: x, dependencies: [b]}
none: {script: x, dependencies: []}
needs: {script: x, needs: [a, {job: b, artifacts: false}]}
`))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"a": "", "all": "a b", "some": "b", "none": "", "needs": "a"} {
		if got := strings.Join(p.ArtifactsFrom(p.Job(name)), " "); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

func TestParseDuration(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"90": 90 * time.Second, "1h": time.Hour, "1h 30m": 90 * time.Minute, "3h30m": 210 * time.Minute,
		"2 hours and 5 minutes": 125 * time.Minute, "1 day, 1 hour": 25 * time.Hour, "45 mins": 45 * time.Minute,
	} {
		if got, ok := parseDuration(text); !ok || got != want {
			t.Errorf("%q: %v, %v; want %v", text, got, ok, want)
		}
	}
	for _, text := range []string{"x", "1 fortnight", "-5", "1h x", "99999999999999999999", "9999999999999 weeks"} {
		if got, ok := parseDuration(text); ok {
			t.Errorf("%q: %v", text, got)
		}
	}
}
