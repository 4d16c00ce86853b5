// Package hostlog is what the driver says to the people who run the host: a line
// for each step of a job, in a file that many processes add to. The job log is
// another thing, and is not repeated here.
package hostlog

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/socialweb-computer/tenant-executor/executor/failure"
	"github.com/socialweb-computer/tenant-executor/executor/job"
	"github.com/socialweb-computer/tenant-executor/executor/joblog"
	"github.com/socialweb-computer/tenant-executor/executor/settings"
	"github.com/socialweb-computer/tenant-executor/stages/course"
)

// fileMode keeps others from reading the names of jobs.
const fileMode = 0o640

// Log writes the lines of one step. A nil Log writes none.
type Log struct {
	file   *os.File
	logger *logrus.Logger
	fields logrus.Fields
	mask   *strings.Replacer
}

// Open opens the log for a step of a job, nil where the settings name no file.
// What the job's author wants masked is masked here as well.
func Open(s settings.Log, j job.Job, env job.Environment, step string) (*Log, error) {
	if s.File == "" {
		return nil, nil
	}
	level, err := logrus.ParseLevel(s.Level)
	if err != nil {
		return nil, fmt.Errorf("log.level: %w", err)
	}
	// Every line is one write at the end of the file, so lines do not mix.
	file, err := os.OpenFile(s.File, os.O_WRONLY|os.O_APPEND|os.O_CREATE, fileMode)
	if err != nil {
		return nil, fmt.Errorf("the log (log.file): %w", err)
	}
	logger := logrus.New()
	logger.SetOutput(file)
	logger.SetLevel(level)
	if s.Format == "json" {
		logger.SetFormatter(&logrus.JSONFormatter{TimestampFormat: time.RFC3339Nano})
	} else {
		logger.SetFormatter(&logrus.TextFormatter{DisableColors: true, FullTimestamp: true, TimestampFormat: time.RFC3339Nano})
	}
	return &Log{file: file, logger: logger, mask: mask(j, env), fields: logrus.Fields{
		"job": j.ID, "key": j.Key(), "step": step, "project": j.Project.FullPath, "name": j.Name, "runner": j.RunnerToken,
	}}, nil
}

// masked is what stands for a masked value, as in the job log.
const masked = "[MASKED]"

// mask replaces the values of masked variables, as they are set and as they are
// expanded, and what GitLab gave as passwords. The longest come first: one may
// be a part of another.
func mask(j job.Job, env job.Environment) *strings.Replacer {
	var secrets []string
	for _, v := range j.Variables {
		if v.Masked {
			secrets = append(secrets, v.Value, env.Variable(v.Key))
		}
	}
	for _, c := range j.Credentials {
		secrets = append(secrets, c.Password)
	}
	slices.SortFunc(secrets, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	var pairs []string
	for _, secret := range secrets {
		if secret != "" {
			pairs = append(pairs, secret, masked)
		}
	}
	return strings.NewReplacer(pairs...)
}

// Begin says that the step begins.
func (l *Log) Begin() {
	if l != nil {
		l.logger.WithFields(l.fields).Debug("step begins")
	}
}

// Warn says what is wrong beside the job.
func (l *Log) Warn(err error) {
	if l != nil {
		l.logger.WithFields(l.fields).Warn(joblog.Harmless(l.mask.Replace(err.Error())))
	}
}

// End says how the step has ended, with the failure that ended it, nil for none.
func (l *Log) End(c course.Course, s course.Step, failed error) {
	if l == nil {
		return
	}
	entry := l.logger.WithFields(l.fields).WithFields(fieldsOf(c, s))
	if failed == nil {
		entry.Info("step ended")
		return
	}
	f := failure.Of(failed)
	level := logrus.ErrorLevel
	if f.Class() == failure.Build || s.Cancelled() {
		level = logrus.WarnLevel
	}
	entry.Log(level, "step failed: "+joblog.Harmless(l.mask.Replace(f.Error())))
}

// Close closes the file.
func (l *Log) Close() error {
	if l == nil {
		return nil
	}
	return l.file.Close()
}

// fieldsOf are what is known of a step. Times are seconds.
func fieldsOf(c course.Course, s course.Step) logrus.Fields {
	fields := logrus.Fields{"took": float64(s.Took)}
	set := func(name string, value any, known bool) {
		if known {
			fields[name] = value
		}
	}
	set("attempt", c.Attempt, c.Attempt != "")
	set("namespace", c.Namespace, c.Namespace != "")
	set("pod", c.Pod, c.Pod != "")
	set("node", c.Node, c.Node != "")
	set("cause", s.Cause, s.Cause != "")
	set("class", s.Class, s.Class != "")
	set("exit", s.Exit, s.Exit != 0)
	set("bytes", s.Bytes, s.Bytes != 0)
	set("reconnects", s.Reconnects, s.Reconnects != 0)
	set("outage", float64(s.Outage), s.Outage != 0)
	if s.Name == course.Prepare {
		set("start", string(c.Kind), c.Kind != "")
		for _, p := range c.Waits.Phases() {
			set("wait_"+p.Name, float64(p.Wait), p.Wait != 0)
		}
		set("wait_queue", float64(c.Waits.Queue), c.Waits.Queue != 0)
		set("remakes", c.Remakes, c.Remakes != 0)
	}
	set("reaped", c.Reaped, c.Reaped != 0 && (s.Name == course.Prepare || s.Name == course.Cleanup))
	return fields
}
