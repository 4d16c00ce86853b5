package stats_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/socialweb-computer/tenant-executor/stages/course"
	"github.com/socialweb-computer/tenant-executor/stages/stats"
)

// job is an attempt on a node that begins after so many seconds: it waits for
// the node, starts for 5 s, is reached within 1 s and runs.
func job(id int64, node string, kind course.Kind, begins, wait, runs int) course.Course {
	at := start().Add(time.Duration(begins) * time.Second)
	ready := at.Add(time.Duration(wait+6) * time.Second)
	return course.Course{
		Key: fmt.Sprint(id), JobID: id, Node: node, Kind: kind, Begun: at, Ended: ready.Add(time.Duration(runs) * time.Second),
		Waits: course.Waits{Node: course.Seconds(wait), Start: 5, Reach: 1},
		Steps: []course.Step{{Name: course.Prepare, Begun: at, Took: course.Seconds(wait + 6), Done: true}},
	}
}

// drawn are the lanes of windows: a line each, in seconds from the start.
func drawn(windows []stats.Window) []string {
	since := func(at time.Time) string { return fmt.Sprint(at.Sub(start()).Seconds()) }
	var all []string
	for _, w := range windows {
		all = append(all, "window "+since(w.From)+"-"+since(w.To))
		for _, lane := range w.Lanes {
			line := lane.Node + ":"
			for _, s := range lane.Spans {
				line += fmt.Sprintf(" %s %s-%s", s.Activity, since(s.From), since(s.To))
			}
			all = append(all, line)
		}
	}
	return all
}

func TestTimeline(t *testing.T) {
	lingers := job(1, "n1", course.Cold, 0, 60, 34)
	lingers.Linger = 20
	elsewhere := job(2, "n1", course.Cold, 90, 10, 194)
	elsewhere.Cluster = "other"
	tests := map[string]struct {
		courses    []course.Course
		hold       time.Duration
		want       []string
		paid, used time.Duration
	}{
		"nothing": {nil, time.Minute, nil, 0, 0},
		"one cold job, then the hold": {
			[]course.Course{job(1, "n1", course.Cold, 0, 60, 34)}, 30 * time.Second,
			[]string{"window 0-130", "n1: boot 0-60 pull 60-65 reach 65-66 run 66-100 idle 100-130"}, 130 * time.Second, 34 * time.Second,
		},
		"a placeholder, then the next job": {
			[]course.Course{lingers, job(2, "n1", course.Held, 110, 0, 4)}, 0,
			[]string{"window 0-120", "n1: boot 0-60 pull 60-65 reach 65-66 run 66-100 placeholder 100-110 pull 110-115 reach 115-116 run 116-120"}, 120 * time.Second, 38 * time.Second,
		},
		"idle between two jobs, although nobody knows the hold": {
			[]course.Course{job(1, "n1", course.Cold, 0, 60, 34), job(2, "n1", course.Warm, 200, 0, 4)}, 0,
			[]string{"window 0-210", "n1: boot 0-60 pull 60-65 reach 65-66 run 66-100 idle 100-200 pull 200-205 reach 205-206 run 206-210"}, 210 * time.Second, 38 * time.Second,
		},
		"the node was gone in between": {
			[]course.Course{job(1, "n1", course.Cold, 0, 60, 34), job(2, "n1", course.Cold, 200, 10, 4)}, 30 * time.Second,
			[]string{"window 0-250", "n1: boot 0-60 pull 60-65 reach 65-66 run 66-100 idle 100-130 boot 200-210 pull 210-215 reach 215-216 run 216-220 idle 220-250"}, 180 * time.Second, 38 * time.Second,
		},
		"nodes stay while another one has a job, and go together": {
			[]course.Course{job(1, "n1", course.Cold, 0, 60, 34), job(2, "n2", course.Cold, 90, 10, 194)}, 30 * time.Second,
			[]string{
				"window 0-330", "n1: boot 0-60 pull 60-65 reach 65-66 run 66-100 idle 100-330",
				"n2: boot 90-100 pull 100-105 reach 105-106 run 106-300 idle 300-330",
			}, 570 * time.Second, 228 * time.Second,
		},
		"nodes of another cluster do not": {
			[]course.Course{job(1, "n1", course.Cold, 0, 60, 34), elsewhere}, 0,
			[]string{"window 0-300", "n1: boot 0-60 pull 60-65 reach 65-66 run 66-100", "n1: boot 90-100 pull 100-105 reach 105-106 run 106-300"},
			310 * time.Second, 228 * time.Second,
		},
		"a queued job waits beside the nodes": {
			[]course.Course{job(1, "n1", course.Cold, 0, 60, 34), job(2, "n1", course.Queued, 50, 50, 4)}, 0,
			[]string{"window 0-110", ": waiting 50-100", "n1: boot 0-60 pull 60-65 reach 65-66 run 66-100 pull 100-105 reach 105-106 run 106-110"}, 110 * time.Second, 38 * time.Second,
		},
		"a long pause parts two windows": {
			[]course.Course{job(1, "n1", course.Cold, 0, 60, 34), job(2, "n2", course.Cold, 7200, 10, 4)}, 0,
			[]string{"window 0-100", "n1: boot 0-60 pull 60-65 reach 65-66 run 66-100", "window 7200-7220", "n2: boot 7200-7210 pull 7210-7215 reach 7215-7216 run 7216-7220"}, 120 * time.Second, 38 * time.Second,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			windows, usage := stats.Timeline(test.courses, nil, test.hold, start().Add(3*time.Hour))
			if diff := cmp.Diff(test.want, drawn(windows)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if usage.Paid != test.paid || usage.Used != test.used {
				t.Errorf("paid %s, used %s; want %s and %s", usage.Paid, usage.Used, test.paid, test.used)
			}
		})
	}
}

// A job that runs goes on until now; one that never got a node is on none.
func TestTimelineOfWhatIsUnderWay(t *testing.T) {
	running := job(1, "n1", course.Cold, 0, 60, 34)
	running.Ended = time.Time{}
	late := job(2, "", "", 10, 20, 0)
	windows, usage := stats.Timeline([]course.Course{running, late}, nil, time.Minute, start().Add(200*time.Second))
	want := []string{"window 0-200", ": waiting 10-30", "n1: boot 0-60 pull 60-65 reach 65-66 run 66-200"}
	if diff := cmp.Diff(want, drawn(windows)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if usage.Percent() != 67 {
		t.Errorf("%v percent", usage.Percent())
	}
}

// Placeholders of the policies hold nodes as well, with or without a job after
// them, and as long as one is there no node goes.
func TestTimelineWithPlaceholders(t *testing.T) {
	at := func(seconds int) time.Time { return start().Add(time.Duration(seconds) * time.Second) }
	seen := []course.Sighting{{Node: "n2", From: at(20), To: at(155)}, {Node: "n1", From: at(120), To: at(400)}}
	windows, usage := stats.Timeline([]course.Course{job(1, "n1", course.Cold, 0, 60, 34), job(2, "n2", course.Warm, 150, 0, 44)}, seen, 30*time.Second, at(3600))
	want := []string{
		"window 0-430",
		"n1: boot 0-60 pull 60-65 reach 65-66 run 66-100 idle 100-120 placeholder 120-400 idle 400-430",
		"n2: placeholder 20-150 pull 150-155 reach 155-156 run 156-200 idle 200-430",
	}
	if diff := cmp.Diff(want, drawn(windows)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if usage.Used != 78*time.Second || usage.ByActivity[stats.Placeholder] != 410*time.Second {
		t.Errorf("%+v", usage)
	}
}
