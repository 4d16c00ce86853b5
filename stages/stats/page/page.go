// Package page shows the statistics of jobs as one HTML page that needs nothing
// else: no script, no font, no request to anybody.
package page

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"strings"
	"time"

	"github.com/socialweb-computer/tenant-executor/executor/joblog"
	"github.com/socialweb-computer/tenant-executor/stages/course"
	"github.com/socialweb-computer/tenant-executor/stages/stats"
)

//go:embed page.html
var text string

// mostWindows is how many parts of the timeline the page shows, the newest ones.
const mostWindows = 12

// Parts are what a page is made of.
type Parts struct {
	Courses []course.Course
	Seen    []course.Sighting
	// Hold is as for stats.Timeline.
	Hold time.Duration
	// Host is where the courses were written down, Version the driver's.
	Host, Version string
	// Now is when the page is made, in the time zone that it shows.
	Now time.Time
}

// Write writes the page.
func Write(out io.Writer, p Parts) error {
	parsed, err := template.New("page").Parse(text)
	if err != nil {
		return fmt.Errorf("the page's template: %w", err)
	}
	if err := parsed.Execute(out, p.view()); err != nil {
		return fmt.Errorf("writing the page: %w", err)
	}
	return nil
}

// view is what the template shows.
type view struct {
	Summary       stats.Summary
	Host, Version string
	Made, Zone    string
	Size          string // how many attempts at how many jobs
	From, To      string
	Cards         []card
	Legend        []legend
	Windows       []window
	Hidden        int
	Starts        []start
	Usage         usage
	Jobs          []row
}

type card struct{ Name, Value, Note string }

type legend struct{ Class, Name, Meaning string }

type window struct {
	Title string
	Ticks []tick
	Lanes []lane
}

type tick struct {
	At   float64
	Text string
}

type lane struct {
	Name string
	Bars []bar
}

// bar is a span; its place is in percent of the window. Link is "" where no job
// belongs to it.
type bar struct {
	Class, Text, Link string
	Left, Width       float64
}

// start is a kind of start with its phases, in percent of the longest one.
type start struct {
	Name  string
	Count int
	Bars  []bar
	Total string
	Cells []string
}

type usage struct {
	Paid, Used, Percent, Hold string
	Nodes                     int
	Bars                      []bar
}

type row struct {
	ID                         string
	Job                        int64
	Name, Project, Ref         string
	Begun, Kind, Node          string
	Waited, Ran, Result, Cause string
	Class                      string
}

func (p Parts) view() view {
	s := stats.Of(p.Courses, p.Now)
	windows, used := stats.Timeline(p.Courses, p.Seen, p.Hold, p.Now)
	v := view{
		Summary: s, Host: p.Host, Version: p.Version,
		Made: p.Now.Format("2006-01-02 15:04"), Zone: p.Now.Format("MST -0700"),
		Cards: cards(s), Legend: legends(), Usage: usageOf(used),
	}
	if s.Attempts > 0 {
		v.Size = joblog.Count(s.Attempts, "attempt") + " at " + joblog.Count(s.Jobs, "job")
		v.From, v.To = p.date(s.From), p.date(s.To)
	}
	v.Starts = startsOf(p.Courses)
	if v.Hidden = max(0, len(windows)-mostWindows); v.Hidden > 0 {
		windows = windows[v.Hidden:]
	}
	for i := len(windows) - 1; i >= 0; i-- {
		v.Windows = append(v.Windows, p.window(windows[i]))
	}
	for i := len(p.Courses) - 1; i >= 0; i-- {
		v.Jobs = append(v.Jobs, p.row(p.Courses[i]))
	}
	return v
}

func (p Parts) date(at time.Time) string { return at.In(p.Now.Location()).Format("2006-01-02 15:04") }

func cards(s stats.Summary) []card {
	var results []string
	for _, r := range s.Results {
		results = append(results, fmt.Sprintf("%d %s", r.Count, r.Name))
	}
	all := []card{{"Attempts", fmt.Sprint(s.Attempts), strings.Join(results, ", ")}}
	for _, start := range s.Starts {
		if start.Kind == course.Cold || start.Kind == course.Warm {
			all = append(all, card{"Start, " + start.Name, stats.Time(start.Median), "median of " + fmt.Sprint(start.Count) + "; 95%: " + stats.Time(start.P95)})
		}
	}
	if s.ColdCost != nil {
		all = append(all, card{"A cold start costs", stats.Time(*s.ColdCost), "more than one on a free node, by the medians"})
	}
	return append(all, card{"Reconnects", fmt.Sprint(s.Reconnects), "connections lost and found again, " + stats.Time(s.Outage) + " altogether"})
}

func legends() []legend {
	meaning := map[stats.Activity]string{
		stats.Waiting:     "a job waits; all nodes are busy, or none is ready",
		stats.Boot:        "a node boots for a job",
		stats.Pull:        "images are pulled, containers start",
		stats.Reach:       "commands reach the Pod, services answer",
		stats.Run:         "the job's stages run",
		stats.Placeholder: "a placeholder holds the node for the next job",
		stats.Idle:        "the node is there, without a Pod",
	}
	var all []legend
	for _, a := range stats.Activities() {
		all = append(all, legend{string(a), string(a), meaning[a]})
	}
	return all
}

// ticks is how many times a window shows.
const ticks = 4

func (p Parts) window(w stats.Window) window {
	from, to := w.From.In(p.Now.Location()), w.To.In(p.Now.Location())
	length := max(to.Sub(from), time.Second)
	made := window{Title: fmt.Sprintf("%s to %s (%s)", from.Format("2006-01-02 15:04:05"), to.Format("15:04:05"), stats.Time(course.SecondsOf(to.Sub(from))))}
	layout := "15:04"
	if length < 10*time.Minute {
		layout = "15:04:05"
	}
	for i := range ticks {
		at := from.Add(length * time.Duration(i) / ticks)
		made.Ticks = append(made.Ticks, tick{100 * float64(i) / ticks, at.Format(layout)})
	}
	for _, l := range w.Lanes {
		drawn := lane{Name: l.Node}
		if l.Node == "" {
			drawn.Name = "waiting jobs"
		}
		for _, s := range l.Spans {
			b := bar{
				Class: string(s.Activity),
				Left:  100 * float64(s.From.Sub(from)) / float64(length), Width: 100 * float64(s.To.Sub(s.From)) / float64(length),
				Text: fmt.Sprintf("%s, %s, from %s", s.Activity, stats.Time(course.SecondsOf(s.To.Sub(s.From))), s.From.In(p.Now.Location()).Format("15:04:05")),
			}
			if s.Course != nil {
				b.Link = "#" + anchor(*s.Course)
				b.Text = fmt.Sprintf("job %d: %s", s.Course.JobID, b.Text)
			}
			drawn.Bars = append(drawn.Bars, b)
		}
		made.Lanes = append(made.Lanes, drawn)
	}
	return made
}

func anchor(c course.Course) string { return "job-" + c.Key + "-" + c.Attempt }

// startsOf compares the phases of the kinds of starts, by their medians.
func startsOf(courses []course.Course) []start {
	class := map[string]string{"start": string(stats.Pull), "reach": string(stats.Reach), "services": "services"}
	times := map[course.Kind]map[string][]course.Seconds{}
	for _, c := range courses {
		if c.Kind == "" {
			continue
		}
		if times[c.Kind] == nil {
			times[c.Kind] = map[string][]course.Seconds{}
		}
		for _, p := range c.Waits.Phases() {
			times[c.Kind][p.Name] = append(times[c.Kind][p.Name], p.Wait)
		}
	}
	var all []start
	var longest course.Seconds
	totals := map[course.Kind]course.Seconds{}
	for _, kind := range course.Kinds() {
		for _, taken := range times[kind] {
			totals[kind] += stats.Quantile(taken, 0.5)
		}
		longest = max(longest, totals[kind])
	}
	for _, kind := range course.Kinds() {
		if times[kind] == nil {
			continue
		}
		made := start{Name: string(kind), Count: len(times[kind]["node"]), Total: stats.Time(totals[kind])}
		left := 0.0
		for _, p := range (course.Waits{}).Phases() {
			taken := times[kind][p.Name]
			median := stats.Quantile(taken, 0.5)
			made.Cells = append(made.Cells, stats.Time(median)+" / "+stats.Time(stats.Quantile(taken, 0.95)))
			if longest == 0 || median == 0 {
				continue
			}
			b := bar{Class: class[p.Name], Left: left, Width: 100 * float64(median) / float64(longest), Text: p.Name + " " + stats.Time(median)}
			if p.Name == "node" {
				b.Class = string(stats.Waiting)
				if kind == course.Cold {
					b.Class = string(stats.Boot)
				}
			}
			left += b.Width
			made.Bars = append(made.Bars, b)
		}
		all = append(all, made)
	}
	return all
}

func usageOf(u stats.Usage) usage {
	minutes := func(d time.Duration) string { return fmt.Sprintf("%.1f", d.Minutes()) }
	made := usage{Paid: minutes(u.Paid), Used: minutes(u.Used), Percent: fmt.Sprintf("%.0f%%", u.Percent()), Nodes: u.NodesCounted}
	if u.HoldAssumed > 0 {
		made.Hold = stats.Time(course.SecondsOf(u.HoldAssumed))
	}
	left := 0.0
	for _, a := range stats.Activities() {
		spent := u.ByActivity[a]
		if a == stats.Waiting || spent <= 0 || u.Paid <= 0 {
			continue
		}
		b := bar{Class: string(a), Left: left, Width: 100 * float64(spent) / float64(u.Paid), Text: fmt.Sprintf("%s %s min", a, minutes(spent))}
		left += b.Width
		made.Bars = append(made.Bars, b)
	}
	return made
}

func (p Parts) row(c course.Course) row {
	made := row{
		ID: anchor(c), Job: c.JobID, Name: c.Name, Project: c.Project, Ref: c.Ref,
		Begun: c.Begun.In(p.Now.Location()).Format("2006-01-02 15:04:05"), Kind: string(c.Kind), Node: c.Node,
		Waited: "-", Ran: stats.Time(stats.Ran(c)), Result: c.Result(p.Now),
	}
	if step, done := c.Step(course.Prepare); done {
		made.Waited = stats.Time(step.Took)
	}
	if step, failed := c.Failure(); failed {
		made.Cause = step.Cause + " in " + step.Name
	}
	made.Class = strings.ReplaceAll(made.Result, " ", "-")
	return made
}
