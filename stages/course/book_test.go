package course_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/socialweb-computer/tenant-executor/executor/failure"
	"github.com/socialweb-computer/tenant-executor/executor/job"
	"github.com/socialweb-computer/tenant-executor/stages/course"
)

// clock is a time that a test moves.
type clock struct{ now time.Time }

func newClock() *clock { return &clock{time.Date(2026, 11, 30, 8, 0, 0, 0, time.UTC)} }

func (c *clock) Now() time.Time { return c.now }

func (c *clock) pass(d time.Duration) { c.now = c.now.Add(d) }

func openBook(t *testing.T) (*course.Book, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "state")
	book, err := course.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return book, filepath.Join(dir, "jobs")
}

func aJob(id int64) job.Job {
	return job.Job{
		ID: id, Name: "unit", RunnerToken: "t1", Project: job.Project{FullPath: "group/demo"},
		Git: job.Git{URL: "https://gitlab.example.com/group/demo.git", Ref: "main"},
	}
}

// step plays one step of a job.
func step(t *testing.T, book *course.Book, c *clock, j job.Job, attempt, name string, took time.Duration, failed error, note func(*course.Entry)) {
	t.Helper()
	e, err := course.Begin(book, j, attempt, name, c.Now)
	if err != nil {
		t.Fatal(err)
	}
	c.pass(took)
	if note != nil {
		note(e)
	}
	if _, _, err := e.End(failed); err != nil {
		t.Fatal(err)
	}
}

func TestCourseOfAJob(t *testing.T) {
	book, _ := openBook(t)
	c := newClock()
	j := aJob(7)
	step(t, book, c, j, "aa01", course.Prepare, 61*time.Second, nil, func(e *course.Entry) {
		e.Note(func(c *course.Course) {
			c.Node, c.Kind, c.Waits.Node = "n1", course.Cold, course.SecondsOf(time.Minute+1234567)
		})
	})
	step(t, book, c, j, "aa01", "build_script", 30*time.Second, failure.Script(3), func(e *course.Entry) {
		if _, err := io.WriteString(e.Count(new(bytes.Buffer)), "12345"); err != nil {
			t.Error(err)
		}
		e.NoteStep(func(s *course.Step) { s.Reconnects++ })
	})
	step(t, book, c, j, "", course.Cleanup, time.Second, nil, nil)
	// A second cleanup finds the attempt ended, and changes nothing.
	c.pass(time.Hour)
	step(t, book, c, j, "", course.Cleanup, time.Second, nil, nil)

	got, err := book.Courses(10)
	if err != nil {
		t.Fatal(err)
	}
	at := newClock().now
	want := []course.Course{{
		Key: j.Key(), Attempt: "aa01", JobID: 7, Name: "unit", Project: "group/demo", Ref: "main", Runner: "t1",
		Begun: at, Ended: at.Add(92 * time.Second), Node: "n1", Kind: course.Cold, Waits: course.Waits{Node: 60.001},
		Steps: []course.Step{
			{Name: "prepare", Begun: at, Took: 61, Done: true},
			{Name: "build_script", Begun: at.Add(61 * time.Second), Took: 30, Done: true, Cause: "script_failed", Class: "build", Exit: 3, Bytes: 5, Reconnects: 1},
			{Name: "cleanup", Begun: at.Add(91 * time.Second), Took: 1, Done: true},
		},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if r := got[0].Result(c.now); r != course.Failed {
		t.Errorf("result %q", r)
	}
}

// The runner's second attempt is a course of its own, and cleanup without the
// attempt's name ends the newest.
func TestAttempts(t *testing.T) {
	book, _ := openBook(t)
	c := newClock()
	j := aJob(7)
	step(t, book, c, j, "aa01", course.Prepare, time.Minute, failure.New(failure.NoNode, "no node"), nil)
	step(t, book, c, j, "", course.Cleanup, time.Second, nil, nil)
	step(t, book, c, j, "aa02", course.Prepare, time.Minute, nil, nil)
	step(t, book, c, aJob(8), "aa03", course.Prepare, time.Second, nil, nil)
	step(t, book, c, j, "", course.Cleanup, time.Second, failure.New(failure.Unreachable, "gone"), nil)
	all, err := book.Courses(10)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, one := range all {
		got = append(got, fmt.Sprintf("%d %s %s %d", one.JobID, one.Attempt, one.Result(c.now), len(one.Steps)))
	}
	want := []string{"7 aa01 system failure 2", "7 aa02 passed 2", "8 aa03 running 1"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if r := all[2].Result(c.now.Add(72 * time.Hour)); r != course.Unknown {
		t.Errorf("an attempt without news is %q", r)
	}
}

func TestResult(t *testing.T) {
	at := newClock().now
	for name, test := range map[string]struct {
		steps []course.Step
		want  string
	}{
		"passed":              {nil, course.Passed},
		"script":              {[]course.Step{{Name: "build_script", Cause: "script_failed", Class: "build"}}, course.Failed},
		"cancelled":           {[]course.Step{{Name: "build_script", Cause: "cancelled", Class: "build"}}, course.Cancelled},
		"system":              {[]course.Step{{Name: "prepare", Cause: "no_node", Class: "system"}}, course.SystemFailure},
		"the first decides":   {[]course.Step{{Name: "build_script", Cause: "script_failed", Class: "build"}, {Name: "x", Cause: "pod_lost", Class: "system"}}, course.Failed},
		"after_script":        {[]course.Step{{Name: "after_script", Cause: "script_failed", Class: "build"}}, course.Passed},
		"cleanup of a passed": {[]course.Step{{Name: "cleanup", Cause: "unreachable", Class: "system"}}, course.Passed},
	} {
		c := course.Course{Begun: at, Ended: at.Add(time.Minute), Steps: test.steps}
		if got := c.Result(at); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// What a crash leaves at any byte is passed over, and nothing is lost with it.
func TestDamagedFiles(t *testing.T) {
	book, dir := openBook(t)
	c := newClock()
	for id := range int64(3) {
		step(t, book, c, aJob(id+1), "aa01", course.Prepare, time.Second, nil, nil)
	}
	names, err := book.Names()
	if err != nil || len(names) != 3 {
		t.Fatal(names, err)
	}
	whole, err := os.ReadFile(filepath.Join(dir, names[1]))
	if err != nil {
		t.Fatal(err)
	}
	// The last byte is the line's end.
	for size := range len(whole) - 1 {
		if err := os.WriteFile(filepath.Join(dir, names[1]), whole[:size], 0o600); err != nil {
			t.Fatal(err)
		}
		all, err := book.Courses(10)
		if err != nil || len(all) != 2 {
			t.Fatalf("cut at %d: %d courses, %v", size, len(all), err)
		}
		// A stage of that job goes on without its course.
		e, err := course.Begin(book, aJob(2), "aa01", "build_script", c.Now)
		if err != nil {
			t.Fatal(err)
		}
		if _, s, err := e.End(nil); err != nil || !s.Done {
			t.Fatalf("cut at %d: %+v, %v", size, s, err)
		}
	}
	for _, stray := range []string{"job-x", "job-1-2", "job-0000000000001-aa-bb-cc", "other"} {
		if err := os.WriteFile(filepath.Join(dir, stray), []byte("{}"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if names, err := book.Names(); err != nil || len(names) != 3 {
		t.Errorf("strange files count: %q, %v", names, err)
	}
}

func TestTheOldestGiveWay(t *testing.T) {
	book, dir := openBook(t)
	c := newClock()
	for id := range int64(course.Most + 5) {
		step(t, book, c, aJob(id+1), "aa01", course.Prepare, time.Second, nil, nil)
	}
	all, err := book.Courses(2 * course.Most)
	if err != nil || len(all) != course.Most || all[0].JobID != 6 {
		t.Errorf("%d courses, %v", len(all), err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != course.Most {
		t.Errorf("%d files, %v", len(entries), err)
	}
	if few, _ := book.Courses(2); len(few) != 2 || few[1].JobID != course.Most+5 {
		t.Errorf("the newest two are %+v", few)
	}
}

// However many steps a job has, and however long its names, its file stays
// within the bound of a state file.
func TestALongCourse(t *testing.T) {
	book, _ := openBook(t)
	c := newClock()
	j := aJob(1)
	j.Name = strings.Repeat("n", 5000)
	step(t, book, c, j, "aa01", course.Prepare, time.Second, nil, nil)
	for range 200 {
		step(t, book, c, j, "aa01", "step_"+strings.Repeat("s", 300), time.Second, failure.Script(1), nil)
	}
	step(t, book, c, j, "aa01", course.Cleanup, time.Second, nil, nil)
	all, err := book.Courses(1)
	if err != nil || len(all) != 1 || !all[0].Finished() || all[0].Dropped == 0 {
		t.Errorf("%+v, %v", all, err)
	}
}

// Who only looks makes nothing.
func TestLook(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	book, err := course.Look(dir)
	if book != nil || err != nil {
		t.Errorf("%v, %v", book, err)
	}
	if all, err := book.Courses(1); len(all) != 0 || err != nil {
		t.Errorf("%v, %v", all, err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it was made: %v", err)
	}
	made, err := course.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	step(t, made, newClock(), aJob(1), "aa01", course.Prepare, time.Second, nil, nil)
	if book, err = course.Look(dir); err != nil {
		t.Fatal(err)
	}
	if all, err := book.Courses(1); len(all) != 1 || err != nil {
		t.Errorf("%v, %v", all, err)
	}
}

// Without a folder a stage goes on, and the names that others choose do no harm.
func TestWithoutABook(t *testing.T) {
	c := newClock()
	e, err := course.Begin(nil, aJob(1), "", course.Prepare, c.Now)
	if err != nil {
		t.Error(err)
	}
	c.pass(time.Second)
	_, s, err := e.End(errors.New("unexpected"))
	if err != nil || s.Cause != "internal" || s.Took != 1 {
		t.Errorf("%+v, %v", s, err)
	}
	var none *course.Entry
	none.Note(nil)
	none.NoteStep(nil)
	if _, _, err := none.End(nil); err != nil {
		t.Error(err)
	}
	book, dir := openBook(t)
	for _, attempt := range []string{"../../x", "a-b", strings.Repeat("a", 100), "zz"} {
		c.pass(time.Second)
		step(t, book, c, aJob(1), attempt, course.Prepare, time.Second, nil, nil)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 4 {
		t.Errorf("%v, %v", entries, err)
	}
}
