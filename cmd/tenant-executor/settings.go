package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"github.com/socialweb-computer/tenant-executor/executor/failure"
	"github.com/socialweb-computer/tenant-executor/executor/inherit"
	"github.com/socialweb-computer/tenant-executor/executor/job"
	"github.com/socialweb-computer/tenant-executor/executor/settings"
	"github.com/socialweb-computer/tenant-executor/stages"
	"github.com/socialweb-computer/tenant-executor/stages/course"
)

// configPath is the configuration file that is meant.
func (a *app) configPath() string {
	switch {
	case a.configFile != "":
		return a.configFile
	case a.environment[configVariable] != "":
		return a.environment[configVariable]
	}
	return settings.DefaultPath
}

// settings reads the configuration, with what it inherits.
func (a *app) settings() (settings.Settings, error) {
	s, _, err := a.settingsAndOrigin()
	return s, err
}

// settingsAndOrigin reads the configuration; the origin is the runner's own
// file, nil where nothing is inherited.
func (a *app) settingsAndOrigin() (settings.Settings, *stages.Origin, error) {
	path := a.configPath()
	text, err := os.ReadFile(path)
	if err != nil {
		return settings.Settings{}, nil, failure.Wrap(failure.Settings, err, "the configuration; name another file with --config or %s", configVariable)
	}
	draft, err := settings.Read(path, text)
	if err != nil {
		return settings.Settings{}, nil, failure.Wrap(failure.Settings, err, "the configuration")
	}
	if draft.InheritFrom() != "" {
		return a.inherit(draft)
	}
	s, err := draft.Settings()
	if err != nil {
		return settings.Settings{}, nil, failure.Wrap(failure.Settings, err, "the configuration")
	}
	return s, nil, nil
}

// settingsOf are the settings for a stage of job j. What config has decided
// holds for the whole job, and is enough for the stages after prepare where the
// configuration cannot be read any more. Without it cleanup makes do with what
// it finds.
func (a *app) settingsOf(j job.Job) (settings.Settings, *stages.Origin, *stages.Decided, error) {
	if err := a.trust(j); err != nil {
		return settings.Settings{}, nil, nil, err
	}
	s, origin, err := a.settingsAndOrigin()
	decided := stages.ReadDecided(a.environment, j)
	switch {
	case err == nil && decided == nil:
	case err == nil:
		s = decided.Settings.Over(s)
	case decided != nil && a.stage != course.Prepare:
		a.unread, err = err, nil
		s = decided.Settings.Alone()
	case a.stage == course.Cleanup:
		if found, bare := a.essential(); bare == nil {
			a.unread, err = err, nil
			s = found
		}
	}
	return s, origin, decided, err
}

// essential are the settings that deleting Pods takes.
func (a *app) essential() (settings.Settings, error) {
	text, err := os.ReadFile(a.configPath())
	if err != nil {
		return settings.Settings{}, err
	}
	return settings.Essential(a.configPath(), text)
}

// inherit joins the configuration with the runner's own.
func (a *app) inherit(draft settings.Draft) (settings.Settings, *stages.Origin, error) {
	const what = "what the configuration inherits (inherit.config_file)"
	file, err := readRunnerConfig(draft.InheritFrom())
	if err != nil {
		return settings.Settings{}, nil, failure.Wrap(failure.Settings, err, what)
	}
	runner, err := a.ownRunner(file)
	if err != nil {
		return settings.Settings{}, nil, failure.Wrap(failure.Settings, err, what)
	}
	keys, rows := inherit.Carry(runner)
	if err := inherit.Refusals(rows); err != nil {
		return settings.Settings{}, nil, failure.Wrap(failure.Settings, err, "runner %s in %s", runner.Label(), file.Name)
	}
	s, err := draft.Over(keys, file.Name)
	if err != nil {
		return settings.Settings{}, nil, failure.Wrap(failure.Settings, err, "the configuration")
	}
	return s, &stages.Origin{File: file, Runner: runner, Rows: rows}, nil
}

// ownRunner is the runner that this process works for. A command of people
// need not name it where there is but one.
func (a *app) ownRunner(file inherit.File) (inherit.Runner, error) {
	short := a.runner
	if short == "" {
		short = a.environment.Variable(job.TokenVariable)
	}
	if short == "" {
		return file.Only()
	}
	return file.Find(short)
}

// trust refuses a job that could pass for one of another runner, and get that
// one's settings and labels: a job's variables win over the runner's own.
func (a *app) trust(j job.Job) error {
	if !j.NamesRunner || a.runner != "" {
		return nil
	}
	return failure.New(failure.JobInvalid, "the job sets the variable %s, by which the driver knows its runner", job.TokenVariable)
}

// readRunnerConfig reads the runner's config.toml.
func readRunnerConfig(path string) (inherit.File, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrPermission) {
		return inherit.File{}, fmt.Errorf("%w; %s. Run the driver as the runner's own user, or write the settings into the driver's configuration (tenant-executor migrate)", err, owners(path))
	}
	if err != nil {
		return inherit.File{}, err
	}
	return inherit.Read(path, text)
}

// owners says who may read a file and who tries to.
func owners(path string) string {
	whose := "this is user " + fmt.Sprint(os.Geteuid())
	info, err := os.Stat(path)
	if err != nil {
		return whose
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return fmt.Sprintf("it belongs to user %d, with mode %04o, and %s", stat.Uid, info.Mode().Perm(), whose)
	}
	return whose
}
