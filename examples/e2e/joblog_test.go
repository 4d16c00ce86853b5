//go:build e2e

package e2e

import (
	"flag"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/socialweb-computer/tenant-executor/examples/localrunner/job"
	"github.com/socialweb-computer/tenant-executor/examples/testbed"
)

var update = flag.Bool("update", false, "write the logs of docs/job-log.md instead of comparing them")

// page is docs/job-log.md, which several tests look at and write.
var page sync.Mutex

// varying are lines of a job log that may be there more or less often, by the
// timing of the cluster.
type varying struct {
	line *regexp.Regexp
	// least is how often they have to be there.
	least int
	// shown is whether the page has one of those that follow each other; the
	// case is about something else where it is false.
	shown bool
}

// aside are the lines of a job that may come to a cluster without a node where
// that is not the point.
func aside() varying { return varying{line: regexp.MustCompile(`^Waiting for a node`)} }

// recorded compares a whole job log with the one that a section of the page
// shows, and looks at the colours of its lines. What varies is counted, and not
// compared.
func recorded(t *testing.T, section string, out testbed.Outcome, varies ...varying) {
	t.Helper()
	wantColours(t, out.Log)
	got := anonymous(t, out.Log)
	// A machine with more to do takes longer than 20 s to start a Pod.
	varies = append(varies, varying{line: regexp.MustCompile(`^Starting on node \S+: pulling images and starting containers`)})
	for _, v := range varies {
		if n := v.in(got); n < v.least {
			t.Errorf("%s: %d lines %s, want at least %d", section, n, v.line, v.least)
		}
	}
	page.Lock()
	defer page.Unlock()
	path := pagePath(t)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, want, after, err := logOf(string(text), section)
	if err != nil {
		t.Fatal(err)
	}
	diff := gocmp.Diff(steady(want, got, varies), steady(got, want, varies))
	switch {
	case diff == "":
	case *update:
		if err := os.WriteFile(path, []byte(before+shown(got, varies)+after), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("section %q of docs/job-log.md is not what the job log says; see \"make job-log\" (-want +got):\n%s", section, diff)
	}
}

func pagePath(t *testing.T) string {
	t.Helper()
	root, err := testbed.Root()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(root, "docs", "job-log.md")
}

// logOf is the log in a section of the page, with what stands around it.
func logOf(text, section string) (before, log, after string, err error) {
	const begin, end = "```text\n", "```\n"
	at := strings.Index(text, "\n## "+section+"\n")
	if at < 0 {
		return "", "", "", fmt.Errorf("docs/job-log.md has no section %q", section)
	}
	from := strings.Index(text[at:], begin)
	if next := strings.Index(text[at+1:], "\n## "); from < 0 || next >= 0 && next < from {
		return "", "", "", fmt.Errorf("section %q of docs/job-log.md has no log", section)
	}
	from += at + len(begin)
	to := strings.Index(text[from:], end)
	if to < 0 {
		return "", "", "", fmt.Errorf("the log in section %q of docs/job-log.md has no end", section)
	}
	return text[:from], text[from : from+to], text[from+to:], nil
}

// in counts the lines in a log.
func (v varying) in(log string) int {
	n := 0
	for _, line := range strings.Split(log, "\n") {
		if v.line.MatchString(line) {
			n++
		}
	}
	return n
}

// left stands in the page for lines that follow their like.
const left = "…"

// shown is a log as the page has it.
func shown(log string, varies []varying) string {
	var kept []string
	var last *regexp.Regexp
	for _, line := range strings.Split(log, "\n") {
		of := match(line, varies)
		switch {
		case of == nil:
			kept = append(kept, line)
			last = nil
		case !of.shown:
		case of.line != last:
			kept = append(kept, line)
			last = of.line
		case kept[len(kept)-1] != left:
			kept = append(kept, left)
		}
	}
	return strings.Join(kept, "\n")
}

func match(line string, varies []varying) *varying {
	for i := range varies {
		if varies[i].line.MatchString(line) {
			return &varies[i]
		}
	}
	return nil
}

// steady is what two logs of the same case have in common: without the lines that
// vary, and without how long things took. What is known of earlier boots depends
// on which the driver has seen; it counts where both have it.
func steady(log, other string, varies []varying) string {
	boots := regexp.MustCompile(`; (recent boots took [^;\n]*|no recent boot took this long \([^)\n]*\))`)
	var kept []string
	for _, line := range strings.Split(log, "\n") {
		if line != left && match(line, varies) == nil {
			kept = append(kept, line)
		}
	}
	log = strings.Join(kept, "\n")
	if with := "; recent boots took N"; boots.MatchString(log) && boots.MatchString(other) {
		log = boots.ReplaceAllString(log, with)
	} else {
		log = boots.ReplaceAllString(log, "")
	}
	for _, r := range []struct{ pattern, with string }{
		{`\b\d+ min( \d+ s)?|\b\d+ s\b`, "N s"},
		{`\b(node|start|exec) (\d+m)?\d+s\b`, "$1 N"},
		{`gitlab-runner \S+ \(\w+\)`, "gitlab-runner VERSION"},
		{`driver tenant-executor \S+`, "driver tenant-executor VERSION"},
	} {
		log = regexp.MustCompile(r.pattern).ReplaceAllString(log, r.with)
	}
	return log
}

// anonymous is a log as people see it, with the same names in each run.
func anonymous(t *testing.T, log string) string {
	t.Helper()
	status, err := bed.Status(limited(t, jobLimit))
	if err != nil {
		t.Fatal(err)
	}
	server, err := url.Parse(status.URL)
	if err != nil {
		t.Fatal(err)
	}
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	log = plain(log)
	for _, r := range []struct{ pattern, with string }{
		{`job-\d+-[0-9a-f]{8}-[0-9a-f]{6}`, "job-4711-5d41402a-9e107d"},
		{regexp.QuoteMeta(bed.Name) + `-node-[a-z0-9]+`, "vm-7k2m9p"},
		{regexp.QuoteMeta(bed.Registry), "registry.example.com"},
		{regexp.QuoteMeta(server.Host), "127.0.0.1:20038"},
		{`\b10\.\d+\.\d+\.\d+:(\d+)`, "10.0.0.7:$1"},
		{`(?m) via ` + regexp.QuoteMeta(host) + `\.\.\.$`, " via runner-host..."},
	} {
		log = regexp.MustCompile(r.pattern).ReplaceAllString(log, r.with)
	}
	return log
}

// wantColours checks that failures are red and warnings yellow, as the runner has
// them, and that a colour ends with its line.
func wantColours(t *testing.T, log string) {
	t.Helper()
	for _, line := range strings.Split(log, "\n") {
		for word, colour := range map[string]string{"ERROR: ": "\x1b[31;1m", "WARNING: ": "\x1b[0;33m"} {
			if at := strings.Index(line, word); at >= 0 && !strings.HasPrefix(line, "\x1b[32;1m$ ") &&
				(!strings.HasSuffix(line[:at], colour) || !strings.HasSuffix(strings.TrimRight(line, "\r"), "\x1b[0;m")) {
				t.Errorf("the line %q is not coloured as the runner's own", line)
			}
		}
	}
}

// mostOfOurs is how many lines of the driver stand in the log of a job that has a
// node and goes well.
const mostOfOurs = 6

// wantFewOfOurs counts the lines that are not the runner's own.
func wantFewOfOurs(t *testing.T, log string) {
	t.Helper()
	runners := regexp.MustCompile(`^($|Running |  on |Preparing |Using Custom executor |Getting source |Skipping Git |Executing |\$ |Cleaning up |Job succeeded$|WARNING: Starting with version 17.0 the 'build_script' stage)`)
	var ours []string
	for _, line := range strings.Split(plain(log), "\n") {
		if !runners.MatchString(line) {
			ours = append(ours, line)
		}
	}
	if len(ours) == 0 || len(ours) > mostOfOurs {
		t.Errorf("%d lines of the driver, want 1 to %d:\n%s", len(ours), mostOfOurs, strings.Join(ours, "\n"))
	}
}

// task has a job run a command of which its log shows no more than the name.
func task(j *job.Job, command string) *job.Job {
	j.Variables = append(j.Variables, job.Variable{Key: "TASK", Value: command, Public: true, Raw: true})
	for i := range j.Steps {
		if j.Steps[i].Name == job.StepScript {
			j.Steps[i].Script = []string{`eval "$TASK"`}
		}
	}
	return j
}
