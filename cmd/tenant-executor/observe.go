package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/socialweb-computer/tenant-executor/executor/job"
	"github.com/socialweb-computer/tenant-executor/executor/settings"
	"github.com/socialweb-computer/tenant-executor/kube/crash"
	"github.com/socialweb-computer/tenant-executor/stages"
	"github.com/socialweb-computer/tenant-executor/stages/course"
	"github.com/socialweb-computer/tenant-executor/stages/hostlog"
	"github.com/socialweb-computer/tenant-executor/stages/metrics"
	"github.com/socialweb-computer/tenant-executor/stages/state"
	"github.com/socialweb-computer/tenant-executor/stages/traces"
)

// observed is how one stage is seen from outside: what it adds to the course of
// its job, what it says to the host, what is counted when the job ends. Nothing
// of it is worth a failed job, nor a line in the job log. The methods of a nil
// observed do nothing.
type observed struct {
	settings settings.Settings
	env      job.Environment
	stage    string
	book     *course.Book
	entry    *course.Entry
	log      *hostlog.Log
	// warn tells of what cannot be written; nil where that would be the job log.
	warn func(err error)
	// trouble is what the operator wants and does not get; unwritten is why the
	// course is not written down, which nobody has asked for.
	trouble, unwritten error
}

// crashFile has, in the state folder, what the Go runtime said when a stage crashed.
const crashFile = "crash.log"

// observe begins the observation of the stage that this process is.
func (a *app) observe(s settings.Settings, folder *state.Folder, j job.Job) {
	if a.stage == "" || a.observed != nil {
		return
	}
	o := &observed{settings: s, env: a.environment, stage: a.stage}
	if a.stage == course.Cleanup {
		// The runner shows it to the host alone (executors/custom/custom.go,
		// Cleanup).
		o.warn = func(err error) { a.voice.Warn("%v", err) }
	}
	var noBook, noEntry, noLog error
	o.book, noBook = course.Open(s.State.Dir)
	o.entry, noEntry = course.Begin(o.book, j, attemptOf(a.environment, j), a.stage, stages.Clock{}.Now)
	if a.stage == course.Prepare || a.stage == course.Cleanup {
		host := a.host(folder)
		noEntry = errors.Join(noEntry, o.entry.OwnedBy(host.Owner))
		o.book.Judge(host.Over)
	}
	o.log, noLog = hostlog.Open(s.Log, j, a.environment, a.stage)
	if _, err := state.Open(s.State.Dir); err == nil {
		// Of what ends the process without a word there is a trace at least.
		_ = crash.Keep(filepath.Join(s.State.Dir, crashFile))
	}
	o.trouble, o.unwritten = noLog, errors.Join(noBook, noEntry)
	o.log.Begin()
	a.observed = o
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
func (o *observed) end(failed error) {
	if o == nil {
		return
	}
	c, step, err := o.entry.End(failed)
	o.unwritten = errors.Join(o.unwritten, err)
	o.log.End(c, step, failed)
	if o.stage == course.Cleanup {
		o.unwritten = errors.Join(o.unwritten, o.book.Settle())
	}
	if o.stage == course.Cleanup && o.settings.Metrics.Used() {
		o.trouble = errors.Join(o.trouble, o.count())
	}
	if o.stage == course.Cleanup {
		o.trouble = errors.Join(o.trouble, o.trace(c))
	}
	if o.trouble != nil && o.warn != nil {
		o.warn(o.trouble)
	}
	if all := errors.Join(o.trouble, o.unwritten); all != nil {
		o.log.Warn(all)
	}
	_ = o.log.Close() // the lines are written
}

// count counts the job whose cleanup ends.
func (o *observed) count() error {
	if o.book == nil {
		return fmt.Errorf("counting for the metrics: %w", o.unwritten)
	}
	now := stages.Clock{}.Now()
	if path := o.settings.Metrics.Textfile; path != "" {
		return metrics.WriteTextfile(path, o.book, now, buildInfo())
	}
	_, _, err := metrics.Fold(o.book, now)
	return err
}

// trace sends the course of the attempt that has ended to whoever gathers
// traces, if the environment of the runner names one.
func (o *observed) trace(c course.Course) error {
	wanted, err := traces.Wanted(o.env)
	if !wanted || !o.entry.Written() {
		return err // a cleanup that was done before has nothing more to tell
	}
	ctx, cancel := context.WithTimeout(context.Background(), traces.Limit)
	defer cancel()
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	return traces.Export(ctx, c, version(), host)
}

// buildInfo tells which driver it is.
func buildInfo() metrics.Gauge {
	return metrics.Gauge{Name: "tenant_executor_build_info", Help: "The driver, by its version; always 1.", Labels: []string{"version", version()}, Value: 1}
}
