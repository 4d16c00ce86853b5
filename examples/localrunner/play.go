package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"sync"

	"github.com/socialweb-computer/tenant-executor/examples/localrunner/dispatch"
	"github.com/socialweb-computer/tenant-executor/examples/localrunner/pipeline"
	"github.com/socialweb-computer/tenant-executor/examples/localrunner/runner"
)

// play is one run of a pipeline.
type play struct {
	flags   *runFlags
	session *session
	runner  *runner.Runner
	screen  *screen
	stopper *stopper

	mu      sync.Mutex
	begun   int64
	earlier map[string]dispatch.Earlier
	report  report
	errs    []error
}

// all runs the jobs and returns the error that ends the program, if any.
func (p *play) all(ctx context.Context, s surroundings, only []string) error {
	schedule := &dispatch.Schedule{
		Pipeline: p.session.project.Pipeline, Parallel: p.flags.parallel, Only: only,
		Run: p.job,
		Skip: func(j *pipeline.Job, why string) {
			if why != "it was not asked for" {
				p.screen.say(fmt.Sprintf("job %q is skipped: %s", j.Name, why))
			}
			p.note(jobReport{Name: j.Name, Stage: j.Stage, Status: "skipped", Message: why})
		},
	}
	if err := schedule.Check(); err != nil {
		return err
	}
	done := make(chan struct{})
	go p.stopper.watch(s.signals, done)
	begin, stop := context.WithCancel(ctx)
	stopped := p.stopper.stopped()
	go func() {
		select {
		case <-stopped:
			stop()
		case <-done:
		}
	}()
	schedule.All(begin)
	close(done)
	stop()

	if err := p.report.write(p.flags.report); err != nil {
		p.errs = append(p.errs, err)
	}
	return p.verdict()
}

// verdict turns what happened into the program's end.
func (p *play) verdict() error {
	if err := errors.Join(p.errs...); err != nil {
		return &exitError{exitSystem, err}
	}
	code, failed := exitPassed, 0
	for _, j := range p.report.Jobs {
		if j.Status == "skipped" || j.Status == string(runner.Success) || j.AllowedToFail {
			continue
		}
		failed++
		code = max(code, exitFailed)
		if j.systemFailure {
			code = exitSystem
		}
	}
	if code == exitPassed {
		return nil
	}
	return &exitError{code, fmt.Errorf("%d of %d jobs did not pass", failed, len(p.report.Jobs))}
}

// job runs one job; see dispatch.Schedule.
func (p *play) job(_ context.Context, j *pipeline.Job, slot int) dispatch.Outcome {
	id := p.nextID()
	path := p.logPath(id, j.Name)
	res, err := p.attend(j, id, slot, path)
	r := newJobReport(j, id, path, res)
	if err != nil {
		p.fail(fmt.Errorf("job %q: %w", j.Name, err))
		r.Status, r.Message, r.systemFailure = string(runner.Failed), err.Error(), true
	}
	r.AllowedToFail = r.Status != string(runner.Success) && res.Status == runner.Failed && j.MayFail(res.ExitCode)
	p.note(r)
	switch {
	case r.Status == string(runner.Success):
		return dispatch.Passed
	case r.AllowedToFail:
		return dispatch.Tolerated
	default:
		return dispatch.FailedJob
	}
}

func (p *play) attend(j *pipeline.Job, id int64, slot int, path string) (res runner.Result, err error) {
	token := p.session.server.NewToken(id)
	payload, err := p.session.project.Payload(j, id, token, p.before())
	if err != nil {
		return res, err
	}
	file, err := logFile(path)
	if err != nil {
		return res, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	show := p.screen.log(j.Name)
	defer func() { err = errors.Join(err, show.Close()) }()

	ended := make(chan struct{})
	defer close(ended)
	// Jobs are not tied to the context: a signal stops them in its own way.
	res, err = p.runner.Run(context.Background(), payload, runner.Options{
		Log:          io.MultiWriter(file, show),
		Cancel:       p.stopper.after(p.flags.cancelAfter, ended),
		Abort:        p.stopper.abort,
		Shutdown:     p.stopper.shutdown,
		ConcurrentID: slot,
	})
	p.remember(j.Name, dispatch.Earlier{ID: id, Token: token})
	if p.flags.keepTemp {
		p.sayFolders(j.Name, res)
	}
	return res, err
}

// sayFolders says where the temporary folders of a job's attempts are.
func (p *play) sayFolders(name string, res runner.Result) {
	said := ""
	for _, c := range res.Calls {
		if c.Dir != said {
			said = c.Dir
			p.screen.say(fmt.Sprintf("job %q: the temporary folder of attempt %d is %s", name, c.Attempt, c.Dir))
		}
	}
}

func (p *play) nextID() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.begun++
	return p.session.firstID + p.begun - 1
}

func (p *play) logPath(id int64, name string) string {
	if p.flags.logDir == "" {
		return ""
	}
	safe := regexp.MustCompile(`[^A-Za-z0-9_.-]+`).ReplaceAllString(name, "_")
	return filepath.Join(p.flags.logDir, fmt.Sprintf("%d-%s.log", id, safe))
}

func (p *play) before() map[string]dispatch.Earlier {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := map[string]dispatch.Earlier{}
	for name, e := range p.earlier {
		all[name] = e
	}
	return all
}

func (p *play) remember(name string, e dispatch.Earlier) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.earlier[name] = e
}

func (p *play) note(r jobReport) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.report.Jobs = append(p.report.Jobs, r)
}

func (p *play) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.errs = append(p.errs, err)
}
