package dispatch

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/socialweb-computer/tenant-executor/examples/localrunner/keys"
	"github.com/socialweb-computer/tenant-executor/examples/localrunner/pipeline"
)

// Outcome is how a job of the pipeline ended, as far as the others care.
type Outcome int

// The outcomes. Tolerated is a failure that the job may have.
const (
	Skipped Outcome = iota
	Passed
	Tolerated
	FailedJob
)

// Schedule runs the jobs of a pipeline: stage after stage, the jobs of a
// stage side by side.
type Schedule struct {
	Pipeline *pipeline.Pipeline
	// Parallel is how many jobs may run at a time, at least 1.
	Parallel int
	// Only names the jobs to run; empty means all but those with
	// `when: manual`.
	Only []string
	// Run runs one job. The slot is a number that no other running job has.
	Run func(ctx context.Context, j *pipeline.Job, slot int) Outcome
	// Skip is told about jobs that are not run, and why.
	Skip func(j *pipeline.Job, why string)
}

// Check reports a name in Only that is no job.
func (s *Schedule) Check() error {
	var names []string
	for _, j := range s.Pipeline.Jobs {
		names = append(names, j.Name)
	}
	for _, name := range s.Only {
		if !slices.Contains(names, name) {
			return fmt.Errorf("there is no job %q%s", name, keys.Hint(name, names))
		}
	}
	if s.Parallel < 1 {
		return fmt.Errorf("%d jobs at a time: want at least 1", s.Parallel)
	}
	return nil
}

// All runs the pipeline. Once ctx ends, no further job is begun.
func (s *Schedule) All(ctx context.Context) {
	slots := make(chan int, s.Parallel)
	for i := range s.Parallel {
		slots <- i
	}
	failed := false
	for _, stage := range s.Pipeline.Stages {
		outcomes := s.stage(ctx, stage, slots, failed)
		failed = failed || slices.Contains(outcomes, FailedJob)
	}
}

// result is an outcome to wait for.
type result struct {
	ended   chan struct{}
	outcome Outcome
}

func (s *Schedule) stage(ctx context.Context, stage string, slots chan int, failed bool) []Outcome {
	results := map[string]*result{}
	var jobs []*pipeline.Job
	for _, j := range s.Pipeline.Jobs {
		if j.Stage == stage {
			jobs = append(jobs, j)
			results[j.Name] = &result{ended: make(chan struct{})}
		}
	}
	var all sync.WaitGroup
	for _, j := range jobs {
		all.Go(func() {
			r := results[j.Name]
			defer close(r.ended)
			r.outcome = s.one(ctx, j, slots, failed || neededFailed(j, results))
		})
	}
	all.Wait()
	outcomes := make([]Outcome, len(jobs))
	for i, j := range jobs {
		outcomes[i] = results[j.Name].outcome
	}
	return outcomes
}

// neededFailed waits for the jobs of the same stage that j needs.
func neededFailed(j *pipeline.Job, results map[string]*result) bool {
	failed := false
	for _, need := range j.Needs {
		if r, ok := results[need.Job]; ok {
			<-r.ended
			failed = failed || r.outcome == FailedJob
		}
	}
	return failed
}

func (s *Schedule) one(ctx context.Context, j *pipeline.Job, slots chan int, failed bool) Outcome {
	if why := s.reasonToSkip(j, failed); why != "" {
		s.Skip(j, why)
		return Skipped
	}
	slot := <-slots
	defer func() { slots <- slot }()
	if ctx.Err() != nil {
		s.Skip(j, "the run was stopped")
		return Skipped
	}
	return s.Run(ctx, j, slot)
}

func (s *Schedule) reasonToSkip(j *pipeline.Job, failed bool) string {
	named := slices.Contains(s.Only, j.Name)
	switch {
	case len(s.Only) > 0 && !named:
		return "it was not asked for"
	case j.When == pipeline.WhenNever:
		return "when: never"
	case j.When == pipeline.WhenManual && !named:
		return "when: manual; name the job on the command line to run it"
	case failed && (j.When == pipeline.WhenOnSuccess || j.When == pipeline.WhenManual):
		return "an earlier job failed"
	case !failed && j.When == pipeline.WhenOnFailure:
		return "no earlier job failed"
	}
	return ""
}
