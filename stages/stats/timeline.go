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
// With a hold of 0 the nodes count as gone with the last Pod. Seen are the placeholders of the policies.
func Timeline(courses []course.Course, seen []course.Sighting, hold time.Duration, now time.Time) ([]Window, Usage) {
	lanes := lanesOf(courses, seen, hold, now)
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
func lanesOf(courses []course.Course, seen []course.Sighting, hold time.Duration, now time.Time) []Lane {
	type place struct{ cluster, node string }
	byNode := map[place][]stay{}
	waiting := Lane{}
	for i := range courses {
		c := &courses[i]
		if c.Queued().Duration() >= time.Second {
			waiting.add(Waiting, c.Begun, c.Begun.Add(c.Queued().Duration()), c)
		}
		if c.Kind != "" && c.Node != "" {
			at := place{c.Cluster, c.Node}
			byNode[at] = append(byNode[at], stay{onNode(c), end(c, now), c})
		}
	}
	for _, s := range seen {
		at := place{s.Cluster, s.Node}
		byNode[at] = append(byNode[at], stay{s.From, s.To, nil})
	}
	var lanes []Lane
	all := sessionsOf(courses, seen, hold, now)
	for at, of := range byNode {
		lanes = append(lanes, laneOf(at.node, at.cluster, of, all, now))
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

// stay is a Pod on a node: that of a job, or a placeholder of the policies.
type stay struct {
	from, to time.Time
	course   *course.Course
}

// laneOf is what a node did. Pods on one node follow one another; a placeholder
// makes way, a little after it was last seen or before.
func laneOf(node, cluster string, of []stay, all sessions, now time.Time) Lane {
	slices.SortStableFunc(of, func(a, b stay) int { return a.from.Compare(b.from) })
	lane := Lane{Node: node}
	for i, s := range of {
		next := now
		if i+1 < len(of) {
			next = of[i+1].from
		}
		if s.course != nil {
			lane.job(s)
		} else {
			s.to = earliest(s.to, next)
			lane.add(Placeholder, s.from, s.to, nil)
		}
		switch {
		case s.course != nil && s.course.Result(now) == course.Running:
			// It has the node still.
		case i+1 < len(of) && of[i+1].course != nil && of[i+1].course.Kind != course.Cold:
			lane.rest(s, next) // the node was still there
		default:
			lane.rest(s, earliest(next, all.end(cluster, s.from)))
		}
	}
	if len(lane.Spans) == 0 { // a node that was there for no time at all
		lane.Spans = []Span{{Run, of[0].from, of[0].from, of[0].course}}
	}
	return lane
}

// job is what a node did for a job.
func (l *Lane) job(s stay) {
	c := s.course
	taken := c.Begun.Add(c.Waits.Node.Duration())
	l.add(Boot, s.from, taken, c)
	started := taken.Add(c.Waits.Start.Duration())
	l.add(Pull, taken, started, c)
	ready := started
	if prepare, done := c.Step(course.Prepare); done {
		ready = latest(started, prepare.Begun.Add(prepare.Took.Duration()))
	}
	l.add(Reach, started, earliest(ready, s.to), c)
	l.add(Run, ready, s.to, c)
}

// rest is what a node did after a Pod until a time: a placeholder held it, then
// the gateway.
func (l *Lane) rest(after stay, until time.Time) {
	held := after.to
	if after.course != nil {
		held = earliest(after.to.Add(after.course.Linger.Duration()), until)
		l.add(Placeholder, after.to, held, nil)
	}
	l.add(Idle, held, until, nil)
}

// onNode is when a job's node began to be there for it: when its boot began, or
// when it took the Pod.
func onNode(c *course.Course) time.Time {
	return c.Begun.Add(c.Queued().Duration())
}

// end is when the job let go of its node.
func end(c *course.Course, now time.Time) time.Time {
	if c.Result(now) == course.Running {
		return now
	}
	return c.Last()
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
