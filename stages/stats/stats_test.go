package stats_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/socialweb-computer/tenant-executor/stages/course"
	"github.com/socialweb-computer/tenant-executor/stages/stats"
)

func start() time.Time { return time.Date(2026, 11, 30, 8, 0, 0, 0, time.UTC) }

func TestQuantile(t *testing.T) {
	hundred := make([]course.Seconds, 100)
	for i := range hundred {
		hundred[i] = course.Seconds(100 - i)
	}
	for _, test := range []struct {
		times []course.Seconds
		q     float64
		want  course.Seconds
	}{
		{nil, 0.5, 0},
		{[]course.Seconds{7}, 0.5, 7},
		{[]course.Seconds{7}, 0.95, 7},
		{[]course.Seconds{3, 1, 2}, 0.5, 2},
		{[]course.Seconds{4, 3, 1, 2}, 0.5, 2},
		{hundred, 0.5, 50},
		{hundred, 0.95, 95},
		{hundred, 1, 100},
		{hundred, 0, 1},
	} {
		if got := stats.Quantile(test.times, test.q); got != test.want {
			t.Errorf("Quantile(%v, %v) = %v, want %v", test.times, test.q, got, test.want)
		}
	}
}

// attempt is a course with a prepare of so many seconds, and a script.
func attempt(id int64, kind course.Kind, prepare course.Seconds, steps ...course.Step) course.Course {
	at := start().Add(time.Duration(id) * time.Minute)
	c := course.Course{
		Key: string(rune('a' + id)), Attempt: "1", JobID: id, Kind: kind, Node: "n1", Begun: at, Ended: at.Add(time.Minute),
		Waits: course.Waits{Node: prepare - 1, Start: 1}, Remakes: 1, Reaped: 2,
		Steps: append([]course.Step{{Name: course.Prepare, Begun: at, Took: prepare, Done: true}}, steps...),
	}
	return c
}

func spread(name string, count int, median, p95, most course.Seconds) stats.Spread {
	return stats.Spread{Name: name, Count: count, Median: median, P95: p95, Max: most}
}

func TestOf(t *testing.T) {
	now := start().Add(time.Hour)
	lost := attempt(6, "", 900)
	lost.Steps[0].Cause, lost.Steps[0].Class = "no_node", course.ClassSystem
	running := attempt(7, course.Warm, 2)
	running.Ended = time.Time{}
	got := stats.Of([]course.Course{
		attempt(1, course.Cold, 60, course.Step{Name: "build_script", Took: 10, Bytes: 5, Reconnects: 2, Outage: 3}),
		attempt(2, course.Cold, 40, course.Step{Name: "build_script", Took: 20, Cause: "script_failed", Class: course.ClassBuild}),
		attempt(3, course.Warm, 3, course.Step{Name: "get_sources", Took: 1}, course.Step{Name: course.Cleanup, Took: 1, Cause: "unreachable", Class: course.ClassSystem}),
		attempt(4, course.Held, 2, course.Step{Name: "build_script", Took: 20, Cause: "script_failed", Class: course.ClassBuild}),
		attempt(5, course.Queued, 30),
		lost, running,
	}, now)
	cost := course.Seconds(38)
	want := stats.Summary{
		Attempts: 7, Jobs: 7, From: start().Add(time.Minute), To: start().Add(7*time.Minute + 2*time.Second),
		Results: []stats.Count{{Name: "passed", Count: 3}, {Name: "failed", Count: 2}, {Name: "system failure", Count: 1}, {Name: "running", Count: 1}},
		Starts: []stats.Start{
			{Kind: course.Cold, Spread: spread("cold", 2, 40, 60, 60)},
			{Kind: course.Queued, Spread: spread("queued", 1, 30, 30, 30)},
			{Kind: course.Warm, Spread: spread("warm", 2, 2, 3, 3)},
			{Kind: course.Held, Spread: spread("held", 1, 2, 2, 2)},
		},
		ColdCost: &cost,
		Waits: []stats.Spread{
			spread("node", 6, 2, 59, 59), spread("start", 6, 1, 1, 1), spread("reach", 6, 0, 0, 0), {"services", 6, 0, 0, 0},
		},
		Stages: []stats.Spread{spread("get_sources", 1, 1, 1, 1), spread("build_script", 3, 20, 20, 20), spread("cleanup", 1, 1, 1, 1)},
		Failures: []stats.Failure{
			{Cause: "script_failed", Class: "build", Count: 2, Newest: 4}, {Cause: "no_node", Class: "system", Count: 1, Newest: 6}, {Cause: "unreachable", Class: "system", Count: 1, Newest: 3},
		},
		Reconnects: 2, Outage: 3, Bytes: 5, Remakes: 7, Reaped: 14,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// No jobs are no division by zero, and lists in JSON that are there.
func TestOfNothing(t *testing.T) {
	got := stats.Of(nil, start())
	want := stats.Summary{
		Results: []stats.Count{}, Starts: []stats.Start{}, Waits: []stats.Spread{}, Stages: []stats.Spread{}, Failures: []stats.Failure{},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
