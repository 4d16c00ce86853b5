package pipeline

import (
	"slices"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/socialweb-computer/tenant-executor/examples/localrunner/job"
)

// Job is a job of the file, with the defaults filled in.
type Job struct {
	Name, Stage string
	// Line is where the job begins in the file.
	Line int

	Image        job.Image
	Services     []job.Image
	BeforeScript []string
	Script       []string
	AfterScript  []string
	Variables    job.Variables
	Artifacts    *job.Artifact
	Cache        []job.Cache
	Hooks        []job.Hook
	Release      *Release
	// Timeout is 0 when the file sets none.
	Timeout time.Duration

	// Needs are jobs that must have ended before; nil when the file has no
	// such key.
	Needs []Need
	// Dependencies are the jobs whose artifacts are wanted; nil when the file
	// has no such key, which means all jobs of earlier stages.
	Dependencies []string

	AllowFailure bool
	// AllowExitCodes are the exit codes with which the job may fail.
	AllowExitCodes []int
	// When is one of the When constants.
	When string
}

// Values of a job's `when`.
const (
	WhenOnSuccess = "on_success"
	WhenOnFailure = "on_failure"
	WhenAlways    = "always"
	WhenManual    = "manual"
	WhenNever     = "never"
)

// Need is one entry of `needs`.
type Need struct {
	Job       string
	Artifacts bool
	Optional  bool
}

// Release is the `release` of a job, which becomes a second step.
type Release struct {
	TagName, Name, Description, Ref string
}

// defaults are what `default:` and the top level of the file give all jobs.
type defaults struct {
	image        job.Image
	services     []job.Image
	beforeScript []string
	afterScript  []string
	artifacts    *job.Artifact
	cache        []job.Cache
	hooks        []job.Hook
	timeout      time.Duration
}

func (d *defaults) handlers(p *parser, what string) handlers {
	h := handlers{
		"image":         into(&d.image, what+" image", image),
		"services":      into(&d.services, what+" services", images),
		"before_script": into(&d.beforeScript, what+" before_script", texts),
		"after_script":  into(&d.afterScript, what+" after_script", texts),
		"artifacts":     into(&d.artifacts, what+" artifacts", artifact),
		"cache":         into(&d.cache, what+" cache", caches),
		"hooks":         into(&d.hooks, what+" hooks", hooks),
		"timeout":       into(&d.timeout, what+" timeout", duration),
		"tags":          func(*yaml.Node) error { return nil },
	}
	p.without(h, what, "retry", "interruptible", "id_tokens")
	return h
}

// job reads one job.
func (p *parser) job(f field) (*Job, error) {
	what := "job " + quoted(f.key)
	j := &Job{
		Name: f.key, Line: f.at.Line, Stage: "test", When: WhenOnSuccess,
		Image: p.defaults.image, Services: p.defaults.services,
		BeforeScript: p.defaults.beforeScript, AfterScript: p.defaults.afterScript,
		Artifacts: p.defaults.artifacts, Cache: p.defaults.cache,
		Hooks: p.defaults.hooks, Timeout: p.defaults.timeout,
	}
	h := handlers{
		"stage":         into(&j.Stage, what+" stage", text),
		"image":         into(&j.Image, what+" image", image),
		"services":      into(&j.Services, what+" services", images),
		"before_script": into(&j.BeforeScript, what+" before_script", texts),
		"script":        into(&j.Script, what+" script", texts),
		"after_script":  into(&j.AfterScript, what+" after_script", texts),
		"variables":     into(&j.Variables, what+" variables", variables),
		"artifacts":     into(&j.Artifacts, what+" artifacts", artifact),
		"cache":         into(&j.Cache, what+" cache", caches),
		"hooks":         into(&j.Hooks, what+" hooks", hooks),
		"release":       into(&j.Release, what+" release", release),
		"needs":         into(&j.Needs, what+" needs", needs),
		"dependencies":  into(&j.Dependencies, what+" dependencies", names),
		"timeout":       into(&j.Timeout, what+" timeout", duration),
		"when":          into(&j.When, what+" when", oneOf(WhenOnSuccess, WhenOnFailure, WhenAlways, WhenManual, WhenNever)),
		"allow_failure": func(n *yaml.Node) error { return j.allowFailure(n, what+" allow_failure") },
		"tags":          func(*yaml.Node) error { return nil },
	}
	p.without(h, what,
		"rules", "only", "except", "extends", "inherit", "trigger", "parallel", "run", "secrets", "id_tokens", "inputs",
		"pages", "retry", "environment", "coverage", "interruptible", "resource_group", "start_in", "manual_confirmation",
		"identity", "dast_configuration")
	if err := h.each(f.value, what); err != nil {
		return nil, err
	}
	if len(j.Script) == 0 {
		return nil, problem(f.at, "%s: the script is missing or empty", what)
	}
	return j, nil
}

func (j *Job) allowFailure(n *yaml.Node, what string) error {
	if !isMapping(n) {
		return into(&j.AllowFailure, what, boolean)(n)
	}
	return handlers{"exit_codes": into(&j.AllowExitCodes, what+" exit_codes",
		func(n *yaml.Node, what string) ([]int, error) { return list(n, what, number) })}.each(n, what)
}

// MayFail reports whether a failure with that exit code leaves the pipeline
// as it is.
func (j *Job) MayFail(exitCode int) bool {
	return j.AllowFailure || slices.Contains(j.AllowExitCodes, exitCode)
}

// names reads a list that may be empty, which is not the same as missing.
func names(n *yaml.Node, what string) ([]string, error) {
	v, err := texts(n, what)
	if v == nil && err == nil {
		v = []string{}
	}
	return v, err
}

func needs(n *yaml.Node, what string) ([]Need, error) {
	all, err := list(n, what, func(n *yaml.Node, what string) (Need, error) {
		need := Need{Artifacts: true}
		if !isMapping(n) {
			name, err := text(n, what)
			need.Job = name
			return need, err
		}
		err := handlers{
			"job":       into(&need.Job, what+" job", text),
			"artifacts": into(&need.Artifacts, what+" artifacts", boolean),
			"optional":  into(&need.Optional, what+" optional", boolean),
		}.each(n, what)
		if err == nil && need.Job == "" {
			err = problem(n, "%s: the name of the job is missing", what)
		}
		return need, err
	})
	if all == nil && err == nil {
		all = []Need{}
	}
	return all, err
}

func hooks(n *yaml.Node, what string) ([]job.Hook, error) {
	all, err := fields(n, what)
	if err != nil {
		return nil, err
	}
	var out []job.Hook
	known := handlers{job.HookPreGetSources: nil, job.HookPostGetSources: nil}
	for _, f := range all {
		if _, ok := known[f.key]; !ok {
			return nil, known.unknown(f, what)
		}
		script, err := texts(f.value, what+" "+f.key)
		if err != nil {
			return nil, err
		}
		out = append(out, job.Hook{Name: f.key, Script: script})
	}
	return out, nil
}

func release(n *yaml.Node, what string) (*Release, error) {
	r := &Release{}
	err := handlers{
		"tag_name":    into(&r.TagName, what+" tag_name", text),
		"name":        into(&r.Name, what+" name", text),
		"description": into(&r.Description, what+" description", text),
		"ref":         into(&r.Ref, what+" ref", text),
	}.each(n, what)
	if err == nil && r.TagName == "" {
		err = problem(n, "%s: tag_name is missing", what)
	}
	return r, err
}
