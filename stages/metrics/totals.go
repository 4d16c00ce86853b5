// Package metrics counts the courses of jobs for Prometheus. Nobody has to run
// all the time for that: the counts are in a file, and whoever ends a job adds to
// them.
package metrics

import (
	"slices"
	"strings"
	"time"

	"github.com/socialweb-computer/tenant-executor/executor/failure"
	"github.com/socialweb-computer/tenant-executor/stages/course"
	"github.com/socialweb-computer/tenant-executor/stages/stats"
)

// metric is what is counted under a name. It is a histogram if it has bounds.
type metric struct {
	name, help string
	labels     []string
	bounds     []float64
}

// waitBounds reach from a Pod on a warm node to the budget of a wait, in
// seconds; stageBounds to a long job.
func waitBounds() []float64 {
	return []float64{0.25, 0.5, 1, 2, 3, 5, 10, 20, 30, 45, 60, 90, 120, 180, 300, 600, 900}
}

func stageBounds() []float64 {
	return []float64{0.5, 1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 14400}
}

// Names of the metrics.
const (
	attempts   = "tenant_executor_attempts_total"
	starts     = "tenant_executor_starts_total"
	waits      = "tenant_executor_wait_seconds"
	prepares   = "tenant_executor_prepare_seconds"
	stages     = "tenant_executor_stage_seconds"
	failures   = "tenant_executor_failures_total"
	nodeTime   = "tenant_executor_node_seconds_total"
	reconnects = "tenant_executor_reconnects_total"
	outages    = "tenant_executor_outage_seconds_total"
	output     = "tenant_executor_output_bytes_total"
	remakes    = "tenant_executor_pods_remade_total"
	reaped     = "tenant_executor_leftovers_reaped_total"
)

// metrics are all that is counted. Labels have few values each: Prometheus keeps
// a series for each.
func metrics() []metric {
	return []metric{
		{attempts, "Attempts at jobs that have ended, by result.", []string{"result"}, nil},
		{starts, "Jobs whose Pod got a node: cold (one was booted for it), queued (it waited for one that others had), warm (one was free) or held (a placeholder had held it).", []string{"start"}, nil},
		{waits, "How long jobs waited in prepare, by phase: node, start (pull of the images and start of the containers), reach (until a command ran) and services.", []string{"phase"}, waitBounds()},
		{prepares, "How long prepare took where it succeeded, by the kind of start.", []string{"start"}, waitBounds()},
		{stages, "How long the stages of run, and cleanup, took. A job's own steps are counted as one stage, step.", []string{"stage"}, stageBounds()},
		{failures, "Steps of jobs that failed, by cause and class (build or system): prepare, run or cleanup.", []string{"step", "cause", "class"}, nil},
		{nodeTime, "Time of nodes for jobs, by what they did: boot, pull, reach or run.", []string{"activity"}, nil},
		{reconnects, "Connections to stages that were lost and found again.", nil, nil},
		{outages, "How long stages could not be reached.", nil, nil},
		{output, "Output of stages.", nil, nil},
		{remakes, "Pods that were made anew, because they were lost before anything ran in them or by another pull policy.", nil, nil},
		{reaped, "Leftovers of earlier jobs that were removed.", nil, nil},
	}
}

func find(name string) (metric, bool) {
	all := metrics()
	at := slices.IndexFunc(all, func(m metric) bool { return m.name == name })
	if at < 0 {
		return metric{}, false
	}
	return all[at], true
}

// series is a metric with values of its labels.
type series struct {
	Name   string   `json:"name"`
	Labels []string `json:"labels,omitempty"`
	// Value is the count, or the sum of a histogram.
	Value float64 `json:"value"`
	// Buckets are how many values lay within each bound and above the one
	// before; the last is for those above all.
	Buckets []uint64 `json:"buckets,omitempty"`
}

func (s series) key() string { return strings.Join(append([]string{s.Name}, s.Labels...), "\x00") }

// valid says whether the series is one that this driver knows.
func (s series) valid() bool {
	m, known := find(s.Name)
	return known && len(s.Labels) == len(m.labels) && (m.bounds == nil && s.Buckets == nil || m.bounds != nil && len(s.Buckets) == len(m.bounds)+1)
}

// Totals are the counts of all time.
type Totals struct{ all map[string]*series }

// NewTotals are none yet. Counts without labels begin at 0, so that a rate is
// seen from their first step on.
func NewTotals() *Totals {
	t := &Totals{map[string]*series{}}
	for _, m := range metrics() {
		if m.labels == nil {
			t.at(m.name)
		}
	}
	for _, kind := range course.Kinds() {
		t.at(starts, string(kind))
	}
	for _, result := range []string{course.Passed, course.Failed, course.Cancelled, course.SystemFailure, course.Abandoned} {
		t.at(attempts, label(result))
	}
	return t
}

// label is a name as a label's value.
func label(name string) string { return strings.ReplaceAll(name, " ", "_") }

func (t *Totals) at(name string, labels ...string) *series {
	s := series{Name: name, Labels: labels}
	if m, _ := find(name); m.bounds != nil {
		s.Buckets = make([]uint64, len(m.bounds)+1)
	}
	if t.all[s.key()] == nil {
		t.all[s.key()] = &s
	}
	return t.all[s.key()]
}

func (t *Totals) count(by float64, name string, labels ...string) { t.at(name, labels...).Value += by }

func (t *Totals) observe(value course.Seconds, name string, labels ...string) {
	s := t.at(name, labels...)
	s.Value += float64(value)
	m, _ := find(name)
	at, _ := slices.BinarySearch(m.bounds, float64(value))
	s.Buckets[at]++
}

// Add counts an attempt that has ended, or of which nothing was heard for long.
func (t *Totals) Add(c course.Course, now time.Time) {
	t.count(1, attempts, label(c.Result(now)))
	if c.Kind != "" && slices.Contains(course.Kinds(), c.Kind) {
		t.count(1, starts, string(c.Kind))
		for _, p := range c.Waits.Phases() {
			t.observe(p.Wait, waits, p.Name)
		}
		if step, done := c.Step(course.Prepare); done && step.Cause == "" {
			t.observe(step.Took, prepares, string(c.Kind))
		}
		_, usage := stats.Timeline([]course.Course{c}, nil, 0, now)
		for _, a := range []stats.Activity{stats.Boot, stats.Pull, stats.Reach, stats.Run} {
			t.count(usage.ByActivity[a].Seconds(), nodeTime, string(a))
		}
	}
	for _, s := range c.Steps {
		t.step(s)
	}
	t.count(float64(c.Remakes), remakes)
	t.count(float64(c.Reaped), reaped)
}

func (t *Totals) step(s course.Step) {
	name := "run"
	if s.Name == course.Prepare || s.Name == course.Cleanup {
		name = s.Name
	}
	if s.Cause != "" {
		t.count(1, failures, name, knownCause(s.Cause), knownClass(s.Class))
	}
	if name != course.Prepare {
		t.observe(s.Took, stages, knownStage(s.Name))
	}
	t.count(float64(s.Bytes), output)
	t.count(float64(s.Reconnects), reconnects)
	t.count(float64(s.Outage), outages)
}

// other is a label's value for what this driver does not know.
const other = "other"

func knownCause(cause string) string {
	for _, d := range failure.Causes() {
		if string(d.Cause) == cause {
			return cause
		}
	}
	return other
}

func knownClass(class string) string {
	if class == course.ClassBuild {
		return class
	}
	return course.ClassSystem
}

// knownStage is a stage of the runner's own by its name, and "step" for what a
// job names itself.
func knownStage(name string) string {
	switch {
	case name == "build_script" || name == "step_script":
		return "build_script" // the runner's old and new name of it
	case stats.RunnersOwn(name):
		return name
	}
	return "step"
}
