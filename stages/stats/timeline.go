package stats

import (
	"cmp"
	"slices"
	"time"

	"github.com/socialweb-computer/tenant-executor/stages/course"
)

// Activity is what a node does at a time.
type Activity string

// Activities of a node, in their order in a job's life.
const (
	// Boot is until a node that was booted for a job has taken its Pod.
	Boot Activity = "boot"
	// Pull is until the Pod's containers run: mostly the pull of images.
	Pull Activity = "pull"
	// Reach is until the job's first stage: commands reach the Pod, services
	// answer.
	Reach Activity = "reach"
	// Run is the job's stages.
	Run Activity = "run"
	// Placeholder is a node that a placeholder holds after a job.
	Placeholder Activity = "placeholder"
	// Idle is a node that the gateway holds without a Pod.
	Idle Activity = "idle"
	// Waiting is a job that has no node. It is none of a node's.
	Waiting Activity = "waiting"
)

// Activities are all of them.
func Activities() []Activity { return []Activity{Waiting, Boot, Pull, Reach, Run, Placeholder, Idle} }

// Span is an activity for a time. Course is the attempt it belongs to, nil for
// none.
type Span struct {
	Activity Activity
	From, To time.Time
	Course   *course.Course
}

// Lane is a node and what it did, in order. Without a name it is the lane of
// jobs that wait for a node.
type Lane struct {
	Node  string
	Spans []Span
}

// Window is a time in which jobs were there, without a long pause.
type Window struct {
	From, To time.Time
	Lanes    []Lane
}

// Usage is the time of nodes. Paid is all of it, as far as the courses tell;
// Used that in which jobs' stages ran.
type Usage struct {
	Paid, Used   time.Duration
	ByActivity   map[Activity]time.Duration
	HoldAssumed  time.Duration
	NodesCounted int
}

// Percent is how much of what was paid was used.
func (u Usage) Percent() float64 {
	if u.Paid <= 0 {
		return 0
	}
	return 100 * float64(u.Used) / float64(u.Paid)
}

// pause is how long nothing happens between two windows.
const pause = 30 * time.Minute

// Timeline lays jobs out over time and nodes. The gateway keeps all nodes of a
// cluster while a Pod is there, and drops all once none was there for the hold.
// The courses do not tell the hold; with none the nodes count as gone with the
// last job.
func Timeline(courses []course.Course, hold time.Duration, now time.Time) ([]Window, Usage) {
	lanes := lanesOf(courses, hold, now)
	usage := Usage{ByActivity: map[Activity]time.Duration{}, HoldAssumed: hold}
	for _, lane := range lanes {
		if lane.Node != "" {
			usage.NodesCounted++
		}
		for _, s := range lane.Spans {
			usage.ByActivity[s.Activity] += s.To.Sub(s.From)
			if s.Activity != Waiting {
				usage.Paid += s.To.Sub(s.From)
			}
		}
	}
	usage.Used = usage.ByActivity[Run]
	return windows(lanes), usage
}

// lanesOf makes a lane for each node, and one for jobs without.
func lanesOf(courses []course.Course, hold time.Duration, now time.Time) []Lane {
	type place struct{ cluster, node string }
	byNode := map[place][]*course.Course{}
	waiting := Lane{}
	for i := range courses {
		c := &courses[i]
		if c.Kind != course.Cold && c.Waits.Node.Duration() >= time.Second {
			waiting.add(Waiting, c.Begun, c.Begun.Add(c.Waits.Node.Duration()), c)
		}
		if c.Kind != "" && c.Node != "" {
			at := place{c.Cluster, c.Node}
			byNode[at] = append(byNode[at], c)
		}
	}
	var lanes []Lane
	all := sessionsOf(courses, hold, now)
	for at, of := range byNode {
		lanes = append(lanes, laneOf(at.node, of, all, now))
	}
	slices.SortFunc(lanes, func(a, b Lane) int {
		return cmp.Or(a.Spans[0].From.Compare(b.Spans[0].From), cmp.Compare(a.Node, b.Node))
	})
	if len(waiting.Spans) > 0 {
		slices.SortFunc(waiting.Spans, func(a, b Span) int { return a.From.Compare(b.From) })
		lanes = append([]Lane{waiting}, lanes...)
	}
	return lanes
}

func (l *Lane) add(what Activity, from, to time.Time, c *course.Course) {
	if to.After(from) {
		l.Spans = append(l.Spans, Span{what, from, to, c})
	}
}

// laneOf is what a node did. Jobs on one node follow one another.
func laneOf(node string, of []*course.Course, all sessions, now time.Time) Lane {
	slices.SortFunc(of, func(a, b *course.Course) int { return onNode(a).Compare(onNode(b)) })
	lane := Lane{Node: node}
	for i, c := range of {
		at := onNode(c)
		if i > 0 && c.Kind == course.Cold {
			lane.between(of[i-1], earliest(at, all.end(of[i-1])))
		} else if i > 0 {
			lane.between(of[i-1], at) // it was still there
		}
		taken := c.Begun.Add(c.Waits.Node.Duration())
		lane.add(Boot, at, taken, c)
		started := taken.Add(c.Waits.Start.Duration())
		lane.add(Pull, taken, started, c)
		ready, end := started, end(c, now)
		if prepare, done := c.Step(course.Prepare); done {
			ready = latest(started, prepare.Begun.Add(prepare.Took.Duration()))
		}
		lane.add(Reach, started, earliest(ready, end), c)
		lane.add(Run, ready, end, c)
	}
	last := of[len(of)-1]
	if last.Result(now) != course.Running {
		lane.between(last, earliest(all.end(last), now))
	}
	if len(lane.Spans) == 0 { // a node that was there for no time at all
		lane.Spans = []Span{{Run, onNode(last), onNode(last), last}}
	}
	return lane
}

// onNode is when a job's node began to be there for it: when its boot began, or
// when it took the Pod.
func onNode(c *course.Course) time.Time {
	if c.Kind == course.Cold {
		return c.Begun
	}
	return c.Begun.Add(c.Waits.Node.Duration())
}

// end is when the job let go of its node.
func end(c *course.Course, now time.Time) time.Time {
	if c.Result(now) == course.Running {
		return now
	}
	return c.Last()
}

// between is what a node did from the end of a job until a time: a placeholder
// held it, then the gateway.
func (l *Lane) between(before *course.Course, until time.Time) {
	from := before.Last()
	held := earliest(from.Add(before.Linger.Duration()), until)
	l.add(Placeholder, from, held, nil)
	l.add(Idle, held, until, nil)
}

func earliest(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// windows parts the lanes where nothing happens for long. Each window has the
// lanes that do something in it.
func windows(lanes []Lane) []Window {
	var all []Span
	for _, lane := range lanes {
		all = append(all, lane.Spans...)
	}
	slices.SortFunc(all, func(a, b Span) int { return a.From.Compare(b.From) })
	var parts []Window
	for _, s := range all {
		if n := len(parts); n > 0 && s.From.Sub(parts[n-1].To) < pause {
			parts[n-1].To = latest(parts[n-1].To, s.To)
		} else {
			parts = append(parts, Window{From: s.From, To: s.To})
		}
	}
	for i := range parts {
		w := &parts[i]
		for _, lane := range lanes {
			here := Lane{Node: lane.Node}
			for _, s := range lane.Spans {
				if !s.From.Before(w.From) && !s.To.After(w.To) {
					here.Spans = append(here.Spans, s)
				}
			}
			if len(here.Spans) > 0 {
				w.Lanes = append(w.Lanes, here)
			}
		}
	}
	return parts
}
