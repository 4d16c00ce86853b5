package main

import (
	"strings"

	"github.com/socialweb-computer/tenant-executor/executor/job"
	"github.com/socialweb-computer/tenant-executor/executor/settings"
	"github.com/socialweb-computer/tenant-executor/stages"
	"github.com/socialweb-computer/tenant-executor/stages/course"
)

// observed is how one stage is seen from outside: what it adds to the course of
// its job. Nothing of it is worth a failed job, nor a line in the job log. The
// methods of a nil observed do nothing.
type observed struct {
	entry *course.Entry
}

// observe begins the observation of the stage that this process is.
func (a *app) observe(s settings.Settings, j job.Job) {
	if a.stage == "" || a.observed != nil {
		return
	}
	// Without the folder the course is not written down.
	book, _ := course.Open(s.State.Dir)
	entry, _ := course.Begin(book, j, attemptOf(a.environment, j), a.stage, stages.Clock{}.Now)
	a.observed = &observed{entry: entry}
}

// attemptOf is the name that config gave to this attempt, "" where no config
// ran.
func attemptOf(env job.Environment, j job.Job) string {
	attempt, ours := strings.CutPrefix(env[job.HintPod], j.PodName(""))
	if !ours {
		return ""
	}
	return attempt
}

func (o *observed) course() *course.Entry {
	if o == nil {
		return nil
	}
	return o.entry
}

// end ends the observation with the failure of the stage, nil for none.
func (o *observed) end(err error) {
	if o == nil {
		return
	}
	_, _, _ = o.entry.End(err)
}
