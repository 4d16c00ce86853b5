package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/socialweb-computer/tenant-executor/executor/failure"
	"github.com/socialweb-computer/tenant-executor/executor/joblog"
	"github.com/socialweb-computer/tenant-executor/executor/settings"
	"github.com/socialweb-computer/tenant-executor/stages"
	"github.com/socialweb-computer/tenant-executor/stages/course"
	"github.com/socialweb-computer/tenant-executor/stages/stats"
	"github.com/socialweb-computer/tenant-executor/stages/stats/page"
)

// statsFlags are what stats is asked for.
type statsFlags struct {
	last         int
	output, html string
	jobs         bool
}

func (a *app) statsCommand() *cobra.Command {
	var f statsFlags
	c := &cobra.Command{
		Use:   "stats",
		Short: "Sum up the jobs of late: waits, cold starts, stages, failures",
		Long: fmt.Sprintf(`stats sums up the last jobs that ran from this host: how they ended, how long they
waited for what, how long their stages took, what a cold start cost, and which
failures there were. For each it shows the median, the time that 95%% of them did
not exceed, and the longest.

Starts are cold (a node was booted for the job), queued (it waited for a node that
others had), warm (a node was there) or held (a placeholder had held it). The waits
are those of prepare: for a node, for the start of the containers with the pull of
their images, until commands reached them, and for services with a health check.

--html writes one page for the browser: nodes over time with the jobs on them,
waits by phase, node-minutes paid and used. It needs nothing else and asks nobody;
how long the gateway holds its nodes is tenant.hold of the configuration.

The stages write down what they meet in the state folder, for the last %d attempts
at jobs. Run stats as the runner's user. It asks no cluster.`, course.Most),
		Example: `  tenant-executor stats --config driver.toml
  tenant-executor stats --config driver.toml --last 20 --jobs
  tenant-executor stats --config driver.toml --output json | jq .summary.cold_cost_seconds
  tenant-executor stats --config driver.toml --html jobs.html`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			switch {
			case f.output != tableFormat && f.output != jsonFormat:
				return &usageError{fmt.Errorf("--output is %q: use %s or %s", f.output, tableFormat, jsonFormat)}
			case f.last < 1:
				return &usageError{fmt.Errorf("--last is %d: it has to be at least 1", f.last)}
			}
			return a.stats(f)
		},
	}
	c.Flags().IntVar(&f.last, "last", 100, "how many attempts at jobs are looked at, the newest `N`")
	c.Flags().BoolVar(&f.jobs, "jobs", false, "list the jobs too")
	c.Flags().StringVar(&f.output, "output", tableFormat, "`FORMAT` of the output: "+tableFormat+" or "+jsonFormat)
	c.Flags().StringVar(&f.html, "html", "", "write a page for the browser to `FILE`, - for stdout")
	c.Flags().StringVar(&a.runner, "runner", "", "only jobs of the runner with this short `TOKEN`")
	return c
}

func (a *app) stats(f statsFlags) error {
	s, err := a.settings()
	if err != nil {
		return err
	}
	courses, seen, err := a.courses(s, f.last)
	if err != nil {
		return err
	}
	now := stages.Clock{}.Now()
	switch {
	case f.html != "":
		return a.writePage(f.html, s.Tenant.Hold.Value(), courses, seen, now)
	case f.output == jsonFormat:
		return a.writeStatsJSON(courses, now)
	}
	return a.writeStats(f, courses, now)
}

// courses are the newest of this host, or of one runner, and the placeholders
// that were seen since they began.
func (a *app) courses(s settings.Settings, last int) ([]course.Course, []course.Sighting, error) {
	book, err := a.look(s.State.Dir)
	if err != nil {
		return nil, nil, failure.Wrap(failure.Settings, err, "the state folder; run this as the runner's user")
	}
	all, err := book.Courses(course.Most)
	if err != nil {
		return nil, nil, failure.Wrap(failure.Settings, err, "the courses of jobs")
	}
	if a.runner != "" {
		all = slices.DeleteFunc(all, func(c course.Course) bool { return c.Runner != a.runner })
	}
	all = all[max(0, len(all)-last):]
	if len(all) == 0 {
		return nil, nil, nil
	}
	seen := book.Sightings()
	return all, slices.DeleteFunc(seen, func(s course.Sighting) bool { return s.To.Before(all[0].Begun) }), nil
}

// statsJSON is what --output json writes.
type statsJSON struct {
	Summary stats.Summary   `json:"summary"`
	Jobs    []course.Course `json:"jobs"`
}

func (a *app) writeStatsJSON(courses []course.Course, now time.Time) error {
	encoder := json.NewEncoder(a.stdout)
	encoder.SetIndent("", "  ")
	return written(encoder.Encode(statsJSON{stats.Of(courses, now), append([]course.Course{}, courses...)}))
}

func written(err error) error {
	if err != nil {
		return failure.Wrap(failure.Internal, err, "writing the statistics")
	}
	return nil
}

func (a *app) writeStats(f statsFlags, courses []course.Course, now time.Time) error {
	s := stats.Of(courses, now)
	if s.Attempts == 0 {
		_, err := fmt.Fprintln(a.stdout, "No job has been written down in this host's state folder yet.")
		return written(err)
	}
	var out bytes.Buffer
	var results []string
	for _, r := range s.Results {
		results = append(results, fmt.Sprintf("%d %s", r.Count, r.Name))
	}
	local := func(at time.Time) string { return at.In(now.Location()).Format("2006-01-02 15:04") }
	_, _ = fmt.Fprintf(&out, "%s at %s, %s to %s: %s\n", joblog.Count(s.Attempts, "attempt"), joblog.Count(s.Jobs, "job"), local(s.From), local(s.To), strings.Join(results, ", "))

	var starts []stats.Spread
	for _, start := range s.Starts {
		starts = append(starts, start.Spread)
	}
	writeSpreads(&out, "START", starts)
	if s.ColdCost != nil {
		_, _ = fmt.Fprintf(&out, "A cold start took %s longer than one on a free node, by the medians.\n", stats.Time(*s.ColdCost))
	}
	writeSpreads(&out, "WAIT FOR", s.Waits)
	writeSpreads(&out, "STAGE", s.Stages)
	writeFailures(&out, s.Failures)
	_, _ = fmt.Fprintf(&out, "\nReconnects: %d (%s altogether). Output: %s. Pods made anew: %d. Leftovers removed: %d.\n",
		s.Reconnects, stats.Time(s.Outage), size(s.Bytes), s.Remakes, s.Reaped)
	if f.jobs {
		writeJobs(&out, courses, now)
	}
	_, err := a.stdout.Write(out.Bytes())
	return written(err)
}

// newTable is a table with a line above it. What is written to out does not
// fail.
func newTable(out *bytes.Buffer, head string) *tabwriter.Writer {
	out.WriteString("\n")
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, head)
	return table
}

func writeSpreads(out *bytes.Buffer, what string, all []stats.Spread) {
	if len(all) == 0 {
		return
	}
	table := newTable(out, what+"\tCOUNT\tMEDIAN\t95%\tLONGEST")
	for _, s := range all {
		_, _ = fmt.Fprintf(table, "%s\t%d\t%s\t%s\t%s\n", s.Name, s.Count, stats.Time(s.Median), stats.Time(s.P95), stats.Time(s.Max))
	}
	_ = table.Flush()
}

func writeFailures(out *bytes.Buffer, all []stats.Failure) {
	if len(all) == 0 {
		return
	}
	table := newTable(out, "FAILURE\tCLASS\tCOUNT\tNEWEST JOB")
	for _, f := range all {
		_, _ = fmt.Fprintf(table, "%s\t%s\t%d\t%d\n", f.Cause, f.Class, f.Count, f.Newest)
	}
	_ = table.Flush()
}

// writeJobs lists jobs, the newest first.
func writeJobs(out *bytes.Buffer, courses []course.Course, now time.Time) {
	table := newTable(out, "JOB\tNAME\tPROJECT\tBEGUN\tSTART\tNODE\tPREPARE\tSTAGES\tRESULT\tCAUSE")
	for _, c := range slices.Backward(courses) {
		prepare, cause := "-", ""
		if step, done := c.Step(course.Prepare); done {
			prepare = stats.Time(step.Took)
		}
		if step, failed := c.Failure(); failed {
			cause = step.Cause + " in " + step.Name
		}
		_, _ = fmt.Fprintf(table, "%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", c.JobID, dash(oneLine(c.Name)), dash(oneLine(c.Project)),
			c.Begun.In(now.Location()).Format("2006-01-02 15:04:05"), dash(string(c.Kind)), dash(c.Node), prepare, stats.Time(stats.Ran(c)), c.Result(now), dash(cause))
	}
	_ = table.Flush()
}

// dash stands for nothing.
func dash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// oneLine keeps what others named from breaking a table, or a terminal.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, text)
}

// size is a number of bytes as people say it.
func size(bytes int64) string {
	units := []string{"bytes", "KiB", "MiB", "GiB", "TiB"}
	value, unit := float64(bytes), 0
	for value >= 1024 && unit < len(units)-1 {
		value, unit = value/1024, unit+1
	}
	if unit == 0 {
		return fmt.Sprintf("%d bytes", bytes)
	}
	return fmt.Sprintf("%.1f %s", value, units[unit])
}

// writePage writes the page to a file, as a whole or not at all, or to stdout.
func (a *app) writePage(file string, hold time.Duration, courses []course.Course, seen []course.Sighting, now time.Time) error {
	host, err := os.Hostname()
	if err != nil {
		host = "this host"
	}
	var text bytes.Buffer
	if err := page.Write(&text, page.Parts{Courses: courses, Seen: seen, Hold: hold, Host: host, Version: version(), Now: now}); err != nil {
		return failure.Wrap(failure.Internal, err, "the page")
	}
	if file == "-" {
		_, err := a.stdout.Write(text.Bytes())
		return written(err)
	}
	if err := replaceFile(file, text.Bytes()); err != nil {
		return failure.Wrap(failure.Settings, err, "the page in %s (--html)", file)
	}
	_, err = fmt.Fprintf(a.stdout, "Wrote %s: %s at jobs. Open it in a browser.\n", file, joblog.Count(len(courses), "attempt"))
	return written(err)
}

// replaceFile replaces a file as a whole, with the mode that the umask leaves.
func replaceFile(path string, data []byte) (err error) {
	made, err := os.OpenFile(filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".new"), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o666)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(made.Name())
		}
	}()
	_, err = made.Write(data)
	if err = errors.Join(err, made.Close()); err != nil {
		return err
	}
	return os.Rename(made.Name(), path)
}
