// Package stats sums up the courses of jobs for people and programs: how long
// jobs waited for what, what a cold start cost, and which failures there were.
package stats

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/socialweb-computer/tenant-executor/stages/course"
)

// Summary is what some jobs have in common. Its JSON is for programs: keys are
// added and never change their meaning. Times are seconds.
type Summary struct {
	// Attempts are how many attempts at jobs were looked at, Jobs how many jobs
	// they are of. From and To are the beginning of the first and the last news
	// of the last.
	Attempts int       `json:"attempts"`
	Jobs     int       `json:"jobs"`
	From     time.Time `json:"from,omitzero"`
	To       time.Time `json:"to,omitzero"`
	// Results are counts by result.
	Results []Count `json:"results"`
	// Starts are the attempts by what their Pod met, with the whole of prepare.
	Starts []Start `json:"starts"`
	// ColdCost is how much longer the median cold start took than the median
	// start on a free node; nil where there were not both.
	ColdCost *course.Seconds `json:"cold_cost_seconds"`
	// Waits are the phases of prepare, of attempts whose Pod got a node.
	Waits []Spread `json:"waits"`
	// Stages are the stages of run, and cleanup.
	Stages []Spread `json:"stages"`
	// Failures are attempts and cleanups that failed, by cause.
	Failures []Failure `json:"failures"`
	// Reconnects are connections that were lost and found again, Outage for how
	// long altogether, Bytes the output of all stages, Remakes how many Pods
	// were made anew, Reaped leftovers that were removed.
	Reconnects int            `json:"reconnects"`
	Outage     course.Seconds `json:"outage_seconds"`
	Bytes      int64          `json:"bytes"`
	Remakes    int            `json:"remakes"`
	Reaped     int            `json:"reaped"`
}

// Count is how many of something there are.
type Count struct {
	Name  string `json:"name"`
	Count int    `json:"count"`
}

// Failure is a cause of failures.
type Failure struct {
	Cause string `json:"cause"`
	Class string `json:"class"`
	Count int    `json:"count"`
	// Newest is the newest job that failed so.
	Newest int64 `json:"newest_job"`
}

// Spread is how long something took.
type Spread struct {
	Name   string         `json:"name"`
	Count  int            `json:"count"`
	Median course.Seconds `json:"median_seconds"`
	P95    course.Seconds `json:"p95_seconds"`
	Max    course.Seconds `json:"max_seconds"`
}

// Start is a kind of start.
type Start struct {
	Kind course.Kind `json:"kind"`
	Spread
}

// Of sums up courses, as they are at a time.
func Of(courses []course.Course, now time.Time) Summary {
	s := Summary{Attempts: len(courses), Results: []Count{}, Starts: []Start{}, Failures: []Failure{}}
	results := map[string]int{}
	starts := map[course.Kind][]course.Seconds{}
	waits, stages := newSamples(), newSamples()
	jobs := map[string]bool{}
	for _, c := range courses {
		jobs[c.Key] = true
		if s.From.IsZero() || c.Begun.Before(s.From) {
			s.From = c.Begun
		}
		if last := c.Last(); last.After(s.To) {
			s.To = last
		}
		results[c.Result(now)]++
		s.Remakes += c.Remakes
		s.Reaped += c.Reaped
		if c.Kind != "" {
			for _, p := range c.Waits.Phases() {
				waits.add(p.Name, p.Wait)
			}
			if step, done := c.Step(course.Prepare); done && step.Cause == "" {
				starts[c.Kind] = append(starts[c.Kind], step.Took)
			}
		}
		for _, step := range c.Steps {
			s.Bytes += step.Bytes
			s.Reconnects += step.Reconnects
			s.Outage += step.Outage
			if step.Name != course.Prepare {
				stages.add(step.Name, step.Took)
			}
		}
	}
	s.Jobs = len(jobs)
	for _, name := range course.Results() {
		if n := results[name]; n > 0 {
			s.Results = append(s.Results, Count{name, n})
		}
	}
	for _, kind := range course.Kinds() {
		if taken := starts[kind]; len(taken) > 0 {
			s.Starts = append(s.Starts, Start{kind, spread(string(kind), taken)})
		}
	}
	s.ColdCost = coldCost(starts)
	s.Waits, s.Stages = waits.spreads(), stages.spreads()
	s.Failures = failures(courses)
	return s
}

// coldCost compares the medians of cold starts and of those on a free node.
func coldCost(starts map[course.Kind][]course.Seconds) *course.Seconds {
	free := append(slices.Clone(starts[course.Warm]), starts[course.Held]...)
	cold := starts[course.Cold]
	if len(free) == 0 || len(cold) == 0 {
		return nil
	}
	cost := course.SecondsOf((Quantile(cold, 0.5) - Quantile(free, 0.5)).Duration())
	return &cost
}

// failures are the causes, the most frequent first.
func failures(courses []course.Course) []Failure {
	type key struct{ cause, class string }
	found := map[key]*Failure{}
	note := func(c course.Course, step course.Step) {
		k := key{step.Cause, step.Class}
		if found[k] == nil {
			found[k] = &Failure{Cause: step.Cause, Class: step.Class}
		}
		found[k].Count++
		found[k].Newest = c.JobID
	}
	for _, c := range courses {
		if step, failed := c.Failure(); failed {
			note(c, step)
		}
		if step, done := c.Step(course.Cleanup); done && step.Cause != "" {
			note(c, step)
		}
	}
	all := []Failure{}
	for _, f := range found {
		all = append(all, *f)
	}
	slices.SortFunc(all, func(a, b Failure) int {
		return cmp.Or(-cmp.Compare(a.Count, b.Count), cmp.Compare(a.Cause, b.Cause), cmp.Compare(a.Class, b.Class))
	})
	return all
}

// samples are times by name, in the order in which the names came up.
type samples struct {
	names []string
	times map[string][]course.Seconds
}

func newSamples() *samples { return &samples{times: map[string][]course.Seconds{}} }

func (s *samples) add(name string, took course.Seconds) {
	if s.times[name] == nil {
		s.names = append(s.names, name)
	}
	s.times[name] = append(s.times[name], took)
}

// spreads are in the order in which the runner calls the stages, and by name
// where they are the job's own.
func (s *samples) spreads() []Spread {
	all := []Spread{}
	slices.SortStableFunc(s.names, func(a, b string) int { return cmp.Compare(rank(a), rank(b)) })
	for _, name := range s.names {
		all = append(all, spread(name, s.times[name]))
	}
	return all
}

// order is the runner's order of stages (common/build.go).
var order = []string{
	"prepare_script", "get_sources", "clear_worktree", "restore_cache", "download_artifacts",
	"", // the job's own
	"after_script", "archive_cache", "archive_cache_on_failure", "upload_artifacts_on_success", "upload_artifacts_on_failure",
	"cleanup_file_variables", course.Cleanup,
}

func rank(stage string) int {
	if at := slices.Index(order, stage); at >= 0 {
		return at
	}
	return slices.Index(order, "")
}

func spread(name string, times []course.Seconds) Spread {
	return Spread{Name: name, Count: len(times), Median: Quantile(times, 0.5), P95: Quantile(times, 0.95), Max: slices.Max(times)}
}

// Quantile is the nearest-rank quantile: a time that was measured, below or at
// which lie as many of the times as q says. It is 0 for no times.
func Quantile(times []course.Seconds, q float64) course.Seconds {
	if len(times) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(times))
	at := int(math.Ceil(q*float64(len(sorted)))) - 1
	return sorted[min(max(at, 0), len(sorted)-1)]
}

// RunnersOwn says whether a stage is one of the runner's, and none that a job
// names.
func RunnersOwn(stage string) bool { return stage != "" && slices.Contains(order, stage) }
