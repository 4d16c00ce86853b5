package course

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/socialweb-computer/tenant-executor/executor/failure"
	"github.com/socialweb-computer/tenant-executor/executor/job"
	"github.com/socialweb-computer/tenant-executor/stages/owner"
)

// Entry is what one stage adds to the course of its attempt. Its methods may be
// called by several goroutines; those of a nil Entry do nothing.
type Entry struct {
	book *Book
	now  func() time.Time

	mu     sync.Mutex
	course Course
	step   Step
	ended  bool
}

// Begin begins a step of a job: prepare begins a new course, every other step
// goes on with that of its attempt, or with the job's newest where attempt is
// "". A stage whose course is not there (any more) writes down nothing.
func Begin(book *Book, j job.Job, attempt, step string, now func() time.Time) (*Entry, error) {
	e := &Entry{book: book, now: now, step: Step{Name: short(step), Begun: stamp(now())}}
	if !nameable(attempt) {
		attempt = ""
	}
	var err error
	switch {
	case step == Prepare:
		if attempt == "" {
			attempt = byHand()
		}
		e.course = Course{
			Key: j.Key(), Attempt: attempt, JobID: j.ID, Begun: e.step.Begun,
			Name: short(j.Name), Project: short(j.Project.FullPath), Ref: short(j.Git.Ref), Runner: short(j.RunnerToken),
		}
		if book != nil {
			book.makeRoom()
			err = e.save()
		}
	default:
		found, is := book.find(j.Key(), attempt)
		if !is {
			// It is still a step that can be told of, in the log.
			found, e.book = Course{Key: j.Key(), Attempt: attempt, JobID: j.ID, Begun: e.step.Begun}, nil
		}
		e.course = found
	}
	return e, err
}

// OwnedBy notes the runner's process, before anything of the attempt is made: so
// it is known also of a prepare that is killed.
func (e *Entry) OwnedBy(o *owner.Owner) error {
	if e == nil || o == nil || e.step.Name != Prepare || e.book == nil {
		return nil
	}
	e.Note(func(c *Course) { c.Owner = o })
	return e.save()
}

// CloseOther closes the attempt whose Pod this step has removed.
func (e *Entry) CloseOther(key, attempt, pod, why string) {
	if e == nil || e.book == nil {
		return
	}
	_ = e.book.Close(key, attempt, pod, e.now(), why) // worth no word: it counts as unknown later
}

// nameable says whether an attempt's name is one that the driver makes: short,
// hex digits.
func nameable(attempt string) bool {
	_, err := hex.DecodeString(attempt)
	return err == nil && len(attempt) <= 16
}

// stamp is a time as a course keeps it.
func stamp(t time.Time) time.Time { return t.UTC().Round(0).Truncate(time.Millisecond) }

// byHand names an attempt that no config has named.
func byHand() string {
	b := make([]byte, 3)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

// longest is how much of a name a course keeps, in bytes.
const longest = 255

func short(text string) string { return text[:min(len(text), longest)] }

// Written says whether the course is written down: what the stage gives is then
// all that is known of the attempt.
func (e *Entry) Written() bool { return e != nil && e.book != nil }

// Note changes the course.
func (e *Entry) Note(change func(*Course)) {
	if e == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	change(&e.course)
}

// NoteStep changes the step.
func (e *Entry) NoteStep(change func(*Step)) {
	if e == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	change(&e.step)
}

// Count is a writer that counts what goes through it to out.
func (e *Entry) Count(out io.Writer) io.Writer {
	if e == nil {
		return out
	}
	return &counter{e, out}
}

type counter struct {
	entry *Entry
	out   io.Writer
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.out.Write(p)
	c.entry.NoteStep(func(s *Step) { s.Bytes += int64(n) })
	return n, err
}

// End ends the step with its failure, nil for none, and writes the course down.
// It gives the course as it is now. A second End does nothing.
func (e *Entry) End(err error) (Course, Step, error) {
	if e == nil {
		return Course{}, Step{}, nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ended {
		return e.course, e.step, nil
	}
	e.ended = true
	e.step.Done = true
	e.step.Took = SecondsOf(e.now().Sub(e.step.Begun))
	if err != nil {
		f := failure.Of(err)
		e.step.Cause, e.step.Class, e.step.Exit = string(f.Cause), ClassSystem, f.ExitCode
		if f.Class() == failure.Build {
			e.step.Class = ClassBuild
		}
	}
	e.add()
	if e.step.Name == Cleanup {
		e.course.Ended = e.step.Begun.Add(e.step.Took.Duration())
	}
	if e.book == nil {
		return e.course, e.step, nil
	}
	return e.course, e.step, e.save()
}

// add puts the step into the course. Prepare and cleanup always have room.
func (e *Entry) add() {
	if len(e.course.Steps) >= mostSteps && e.step.Name != Cleanup && e.step.Cause == "" {
		e.course.Dropped++
		return
	}
	if len(e.course.Steps) >= 2*mostSteps {
		e.course.Dropped++
		return
	}
	e.course.Steps = append(e.course.Steps, e.step)
}

func (e *Entry) save() error {
	if e.book == nil {
		return errors.New("there is no folder for the courses of jobs")
	}
	return e.book.write(e.course)
}
