// Package course is the record of how jobs went: when each attempt at a job
// waited for what, and how its stages ended. Each stage adds what it knows to a
// small file on the runner's host. Statistics, metrics and traces are made from
// these files; no job needs them, and none fails for want of them.
//
// A course holds no secret: neither scripts nor output, no variables, no text of
// an error.
package course

import (
	"math"
	"time"

	"github.com/socialweb-computer/tenant-executor/executor/failure"
	"github.com/socialweb-computer/tenant-executor/stages/owner"
)

// Kind is what a job's Pod met when it came to the cluster.
type Kind string

// Kinds of starts.
const (
	// Cold is the start of a job for which a node was booted.
	Cold Kind = "cold"
	// Queued is the start of a job that waited for a node which others had.
	Queued Kind = "queued"
	// Warm is the start of a job on a node that was there and free.
	Warm Kind = "warm"
	// Held is a warm start on a node that a placeholder had held for it.
	Held Kind = "held"
)

// Kinds are all kinds.
func Kinds() []Kind { return []Kind{Cold, Queued, Warm, Held} }

// Seconds is a length of time, in seconds with milliseconds.
type Seconds float64

// SecondsOf rounds to milliseconds, so that the files stay small. What is below
// zero, since a clock was set back, counts as none.
func SecondsOf(d time.Duration) Seconds {
	return Seconds(max(0, math.Round(d.Seconds()*1000)/1000))
}

// Duration is the length of time.
func (s Seconds) Duration() time.Duration { return time.Duration(float64(s) * float64(time.Second)) }

// Course is how one attempt at a job went: from the runner's call of prepare to
// the end of its cleanup. The runner makes up to three attempts.
type Course struct {
	// Key and Attempt name the attempt (job.Job.Key, and the end of its Pod's
	// name). JobID is GitLab's.
	Key     string `json:"key"`
	Attempt string `json:"attempt"`
	JobID   int64  `json:"job"`
	// Name, Project and Ref are for people. Runner is the runner's short token.
	Name    string `json:"name,omitempty"`
	Project string `json:"project,omitempty"`
	Ref     string `json:"ref,omitempty"`
	Runner  string `json:"runner,omitempty"`
	// Begun is when prepare began; Ended, when cleanup ended, is zero while the
	// attempt is under way.
	Begun time.Time `json:"begun"`
	Ended time.Time `json:"ended,omitzero"`
	// Owner is the runner's process, nil for an attempt by hand. Once it is dead
	// nobody ends the attempt any more.
	Owner *owner.Owner `json:"owner,omitempty"`
	// Closed is why the attempt is over where its own cleanup has not said so:
	// in the words of reap (reap.Reason). Empty for all others.
	Closed string `json:"closed,omitempty"`

	// Cluster is the cluster's identity, empty where it was not reached.
	Cluster   string `json:"cluster,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Pod       string `json:"pod,omitempty"`
	Node      string `json:"node,omitempty"`
	// Kind is empty until a node has taken the Pod.
	Kind Kind `json:"kind,omitempty"`
	// Waits are the phases of prepare. Pods that were made anew add to them.
	Waits Waits `json:"waits"`
	// Remakes is how often the Pod was made anew, because it was lost before
	// anything ran in it or by another pull policy.
	Remakes int `json:"remakes,omitempty"`
	// Reaped is how many leftovers of other jobs were removed.
	Reaped int `json:"reaped,omitempty"`
	// Linger is how long the node was held for the next job.
	Linger Seconds `json:"linger,omitempty"`
	// Steps are prepare, the stages of run, and cleanup, in their order.
	Steps []Step `json:"steps,omitempty"`
	// Dropped counts stages that a course has no room for.
	Dropped int `json:"dropped,omitempty"`
}

// Waits are the phases of prepare.
type Waits struct {
	// Node is until a node took the Pod, Start until its containers ran, Reach
	// until a command ran in it, Services until those answered that have a
	// health check.
	Node     Seconds `json:"node"`
	Start    Seconds `json:"start"`
	Reach    Seconds `json:"reach"`
	Services Seconds `json:"services,omitempty"`
	// Queue is the part of Node in which others had the nodes: none could be
	// booted for the job. The rest of Node is the boot.
	Queue Seconds `json:"queue,omitempty"`
}

// Phase is one of the phases of prepare by its name.
type Phase struct {
	Name string
	Wait Seconds
}

// Phases are the waits in their order.
func (w Waits) Phases() []Phase {
	return []Phase{{"node", w.Node}, {"start", w.Start}, {"reach", w.Reach}, {"services", w.Services}}
}

// Total is the sum of the phases.
func (w Waits) Total() Seconds { return w.Node + w.Start + w.Reach + w.Services }

// Names of steps that are no stage of run.
const (
	Prepare = "prepare"
	Cleanup = "cleanup"
)

// Step is one process of the driver.
type Step struct {
	// Name is prepare, cleanup, or the stage of run.
	Name  string    `json:"name"`
	Begun time.Time `json:"begun"`
	// Took is how long it took; Done says that it came to an end. One that did
	// not was killed, or runs.
	Took Seconds `json:"took,omitempty"`
	Done bool    `json:"done,omitempty"`
	// Cause is the cause of its failure (failure.Cause), empty for none; Class is
	// "build" or "system" then.
	Cause string `json:"cause,omitempty"`
	Class string `json:"class,omitempty"`
	// Exit is the script's exit code.
	Exit int `json:"exit,omitempty"`
	// Bytes is how much output it printed.
	Bytes int64 `json:"bytes,omitempty"`
	// Reconnects is how often the connection was lost and found again, Outage
	// for how long altogether.
	Reconnects int     `json:"reconnects,omitempty"`
	Outage     Seconds `json:"outage,omitempty"`
}

// Cancelled reports whether the runner ended the step, for a cancel in GitLab or
// its own shutdown. Nothing failed then.
func (s Step) Cancelled() bool {
	return s.Cause == string(failure.Cancelled) || s.Cause == string(failure.Interrupted)
}

// Classes of failures.
const (
	ClassBuild  = "build"
	ClassSystem = "system"
)

// mostSteps is how many steps a course keeps. A job has about ten; user steps
// may be more.
const mostSteps = 60

// afterScript is the stage whose failure does not fail the job (common/build.go,
// executeAfterScript).
const afterScript = "after_script"

// Failure is the step that decided about the attempt: the first that failed.
// A failure of cleanup is none of the job's.
func (c Course) Failure() (Step, bool) {
	for _, s := range c.Steps {
		if s.Cause != "" && s.Name != Cleanup && s.Name != afterScript {
			return s, true
		}
	}
	return Step{}, false
}

// Queued is how long the job waited without a node that was there or on its way
// for it.
func (c Course) Queued() Seconds {
	if c.Kind == Cold {
		return min(c.Waits.Queue, c.Waits.Node)
	}
	return c.Waits.Node
}

// Finished says whether the attempt has come to its end.
func (c Course) Finished() bool { return !c.Ended.IsZero() }

// Step is the newest step of a name.
func (c Course) Step(name string) (Step, bool) {
	for i := len(c.Steps) - 1; i >= 0; i-- {
		if c.Steps[i].Name == name {
			return c.Steps[i], true
		}
	}
	return Step{}, false
}

// Last is when the attempt was last heard of.
func (c Course) Last() time.Time {
	if c.Finished() {
		return c.Ended
	}
	last := c.Begun
	for _, s := range c.Steps {
		if at := s.Begun.Add(s.Took.Duration()); at.After(last) {
			last = at
		}
	}
	return last
}

// Result is how the attempt ended, or stands: passed, failed (by the job's own
// fault), cancelled (also while it waited), system failure, abandoned (its runner
// died, or its Pod was reaped), running, or unknown where nothing was heard for
// long.
func (c Course) Result(now time.Time) string {
	failed, is := c.Failure()
	switch {
	case is && failed.Cancelled():
		return Cancelled
	case is && failed.Class == ClassBuild:
		return Failed
	case is:
		return SystemFailure
	case c.Closed != "":
		return Abandoned
	case c.Finished():
		return Passed
	case now.Sub(c.Last()) > forgottenAfter:
		return Unknown
	}
	return Running
}

// Results of attempts.
const (
	Passed        = "passed"
	Failed        = "failed"
	Cancelled     = "cancelled"
	SystemFailure = "system failure"
	Abandoned     = "abandoned"
	Running       = "running"
	Unknown       = "unknown"
)

// Results are all results, in the order in which they are told.
func Results() []string {
	return []string{Passed, Failed, Cancelled, SystemFailure, Abandoned, Running, Unknown}
}

// forgottenAfter is when an attempt without news counts as one whose end nobody
// saw: a stage can last as long as GitLab's longest time-out, a month, but few
// do.
const forgottenAfter = 48 * time.Hour
