// Package pipeline reads pipeline files: a part of the language of
// .gitlab-ci.yml. What it does not understand it refuses, or names in a
// warning when leaving it out changes nothing that a job does.
package pipeline

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/socialweb-computer/tenant-executor/examples/localrunner/job"
	"github.com/socialweb-computer/tenant-executor/examples/localrunner/keys"
)

// Pipeline is a file that has been read.
type Pipeline struct {
	// Stages are in the order in which they run.
	Stages []string
	// Variables are those of all jobs.
	Variables job.Variables
	// Jobs are in the order of the file.
	Jobs []*Job
	// Warnings name keys that have no effect here, with their lines.
	Warnings []string
}

// Load reads the pipeline file at path.
func Load(path string) (*Pipeline, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the pipeline file: %w", err)
	}
	p, err := Parse(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return p, nil
}

// Parse reads the text of a pipeline file.
func Parse(data []byte) (*Pipeline, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return nil, err
	}
	if len(doc.Content) == 0 {
		return nil, errors.New("the file is empty")
	}
	all, err := fields(doc.Content[0], "pipeline file")
	if err != nil {
		return nil, err
	}
	p := &parser{pipeline: &Pipeline{Stages: []string{"build", "test", "deploy"}}}
	if err := p.globals(all); err != nil {
		return nil, err
	}
	if err := p.jobs(all); err != nil {
		return nil, err
	}
	if err := p.check(); err != nil {
		return nil, err
	}
	return p.pipeline, nil
}

type parser struct {
	pipeline *Pipeline
	defaults defaults
	global   handlers
}

// globals reads the keys of the top level that are not jobs.
func (p *parser) globals(all []field) error {
	p.global = p.defaults.handlers(p, "top level")
	p.global["stages"] = into(&p.pipeline.Stages, "stages", texts)
	p.global["variables"] = into(&p.pipeline.Variables, "variables", variables)
	p.global["default"] = func(n *yaml.Node) error {
		return p.defaults.handlers(p, "default").each(n, "default")
	}
	p.without(p.global, "top level", "include", "workflow", "spec")
	for _, f := range all {
		if handle, ok := p.global[f.key]; ok {
			if err := handle(f.value); err != nil {
				return err
			}
		}
	}
	p.pipeline.Stages = append(append([]string{".pre"}, p.pipeline.Stages...), ".post")
	return nil
}

// jobs reads every other key of the top level as a job. Names that begin with
// a dot are only there for YAML anchors.
func (p *parser) jobs(all []field) error {
	for _, f := range all {
		if _, ok := p.global[f.key]; ok || strings.HasPrefix(f.key, ".") {
			continue
		}
		if !isMapping(f.value) {
			return problem(f.at, "top level: %q is neither a known key nor a job%s", f.key, p.hint(f.key))
		}
		j, err := p.job(f)
		if err != nil {
			return err
		}
		p.pipeline.Jobs = append(p.pipeline.Jobs, j)
	}
	if len(p.pipeline.Jobs) == 0 {
		return errors.New("there is no job")
	}
	return nil
}

func (p *parser) hint(key string) string {
	known := make([]string, 0, len(p.global))
	for k := range p.global {
		known = append(known, k)
	}
	slices.Sort(known)
	return keys.Hint(key, known)
}

// refused are keys of GitLab whose absence would change which jobs run or
// what they do.
func refused(key string) (why string, ok bool) {
	why, ok = map[string]string{
		"include":   "other files are not read; put everything into one file",
		"extends":   "use a YAML anchor and <<",
		"rules":     "conditions are not evaluated; name the jobs to run on the command line",
		"only":      "conditions are not evaluated; name the jobs to run on the command line",
		"except":    "conditions are not evaluated; name the jobs to run on the command line",
		"workflow":  "conditions are not evaluated",
		"inherit":   "defaults and variables go to all jobs",
		"trigger":   "there is no other pipeline to start",
		"parallel":  "write the jobs out",
		"run":       "CI steps are not supported",
		"secrets":   "there is no secret store; use a masked variable",
		"id_tokens": "there is nobody to sign tokens",
		"inputs":    "inputs are not filled in",
		"spec":      "inputs are not filled in",
		"pages":     "there is no Pages server",
	}[key]
	return why, ok
}

// without adds handlers for keys of GitLab that are not supported: some are
// refused, the others named in a warning.
func (p *parser) without(h handlers, what string, unsupported ...string) {
	for _, key := range unsupported {
		h[key] = func(n *yaml.Node) error {
			if why, ok := refused(key); ok {
				return problem(n, "%s: GitLab's key %q is not supported here: %s", what, key, why)
			}
			p.pipeline.Warnings = append(p.pipeline.Warnings,
				fmt.Sprintf("line %d: %s: %s has no effect here", n.Line, what, key))
			return nil
		}
	}
}

// check looks at what the jobs say of each other.
func (p *parser) check() error {
	for _, j := range p.pipeline.Jobs {
		if !slices.Contains(p.pipeline.Stages, j.Stage) {
			return fmt.Errorf("line %d: job %q: stage %q is not one of %q%s",
				j.Line, j.Name, j.Stage, p.pipeline.Stages, keys.Hint(j.Stage, p.pipeline.Stages))
		}
		for _, need := range j.Needs {
			if err := p.checkBefore(j, need.Job, "needs", need.Optional, true); err != nil {
				return err
			}
		}
		for _, name := range j.Dependencies {
			if err := p.checkBefore(j, name, "dependencies", false, j.needs(name)); err != nil {
				return err
			}
		}
	}
	return p.checkCircles()
}

func (j *Job) needs(name string) bool {
	return slices.ContainsFunc(j.Needs, func(n Need) bool { return n.Job == name })
}

// checkBefore makes sure that the other job is there and comes first.
func (p *parser) checkBefore(j *Job, other, key string, optional, sameStage bool) error {
	var names []string
	for _, o := range p.pipeline.Jobs {
		names = append(names, o.Name)
	}
	o := p.pipeline.Job(other)
	if o == nil {
		if optional {
			return nil
		}
		return fmt.Errorf("line %d: job %q: %s: there is no job %q%s", j.Line, j.Name, key, other, keys.Hint(other, names))
	}
	mine, its := p.pipeline.stage(j), p.pipeline.stage(o)
	if its > mine || its == mine && !sameStage {
		return fmt.Errorf("line %d: job %q: %s: job %q does not come earlier", j.Line, j.Name, key, other)
	}
	return nil
}

// checkCircles refuses jobs that wait for each other.
func (p *parser) checkCircles() error {
	const open, done = 1, 2
	state := map[string]int{}
	var visit func(j *Job) error
	visit = func(j *Job) error {
		switch state[j.Name] {
		case done:
			return nil
		case open:
			return fmt.Errorf("line %d: job %q needs itself in the end", j.Line, j.Name)
		}
		state[j.Name] = open
		for _, need := range j.Needs {
			if o := p.pipeline.Job(need.Job); o != nil {
				if err := visit(o); err != nil {
					return err
				}
			}
		}
		state[j.Name] = done
		return nil
	}
	for _, j := range p.pipeline.Jobs {
		if err := visit(j); err != nil {
			return err
		}
	}
	return nil
}

// Job returns the job of that name, or nil.
func (p *Pipeline) Job(name string) *Job {
	for _, j := range p.Jobs {
		if j.Name == name {
			return j
		}
	}
	return nil
}

func (p *Pipeline) stage(j *Job) int { return slices.Index(p.Stages, j.Stage) }

// ArtifactsFrom returns the names of the jobs whose artifacts a job downloads.
func (p *Pipeline) ArtifactsFrom(j *Job) []string {
	var from []string
	switch {
	case j.Dependencies != nil:
		return j.Dependencies
	case j.Needs != nil:
		for _, n := range j.Needs {
			if n.Artifacts && p.Job(n.Job) != nil {
				from = append(from, n.Job)
			}
		}
	default:
		for _, o := range p.Jobs {
			if p.stage(o) < p.stage(j) {
				from = append(from, o.Name)
			}
		}
	}
	return from
}

func quoted(s string) string { return strconv.Quote(s) }
