// Package migrate writes what a runner of the kubernetes executor needs to go
// on with the driver: its entry in the runner's config.toml, the driver's own
// configuration, and what becomes of each key.
package migrate

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"

	"github.com/socialweb-computer/tenant-executor/executor/failure"
	"github.com/socialweb-computer/tenant-executor/executor/inherit"
	"github.com/socialweb-computer/tenant-executor/executor/job"
	"github.com/socialweb-computer/tenant-executor/executor/pod"
	"github.com/socialweb-computer/tenant-executor/executor/settings"
)

// Options are what the caller chooses.
type Options struct {
	// Program is the path of tenant-executor on the runner's host.
	Program string
	// Folder is where the driver's configuration is to be.
	Folder string
	// Inherit leaves the settings in the runner's file, for the driver to read
	// there.
	Inherit bool
}

// Migration is what one runner needs.
type Migration struct {
	Runner     string `json:"runner"`
	ShortToken string `json:"short_token"`
	// RunnerConfig is for the runner's entry in its config.toml, Global for the
	// top of that file; "" where nothing has to change there.
	RunnerConfig string `json:"runner_config"`
	Global       string `json:"global_config,omitempty"`
	// DriverPath and DriverConfig are the driver's configuration. The values of
	// services' variables, which may be passwords, are left out of it.
	DriverPath   string `json:"driver_path"`
	DriverConfig string `json:"driver_config"`
	// DriverFile is DriverConfig with all its values, for a file alone.
	DriverFile string `json:"-"`
	// Missing is what the operator has still to set or correct in it.
	Missing []string `json:"missing,omitempty"`
	// Warnings are what else to look at.
	Warnings []string `json:"warnings,omitempty"`
	// Keys are all keys that were found.
	Keys []inherit.Row `json:"keys"`
}

// ErrNone is the error of a file without a runner of the kubernetes executor.
var ErrNone = errors.New("no runner in it has settings of the kubernetes executor ([runners.kubernetes])")

// Plan makes the migrations of the file's runners with a [runners.kubernetes]
// section: of all, or of the one whose name or short token is only.
func Plan(file inherit.File, only string, o Options) ([]Migration, error) {
	var chosen []inherit.Runner
	for _, r := range file.Runners {
		if r.Kubernetes != nil && (only == "" || only == r.Name || only == r.ShortToken) {
			chosen = append(chosen, r)
		}
	}
	switch {
	case len(chosen) == 0 && only != "":
		return nil, fmt.Errorf("%s: no runner with the name or short token %q has a section [runners.kubernetes]", file.Name, only)
	case len(chosen) == 0:
		return nil, fmt.Errorf("%s: %w", file.Name, ErrNone)
	}
	var all []Migration
	taken := map[string]bool{}
	for _, r := range chosen {
		place := path.Join(o.Folder, path.Base(settings.DefaultPath))
		if len(chosen) > 1 && !o.Inherit {
			place = unused(taken, o.Folder, r)
		}
		m, err := plan(file, r, place, o)
		if err != nil {
			return nil, err
		}
		all = append(all, m)
	}
	return all, nil
}

// unused is a file name of the runner's own.
func unused(taken map[string]bool, folder string, r inherit.Runner) string {
	name := strings.Trim(strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' {
			return c
		}
		return '-'
	}, strings.ToLower(r.Name)), "-")
	if name == "" || taken[name] {
		name = strings.TrimPrefix(name+"-"+r.ShortToken, "-")
	}
	taken[name] = true
	return path.Join(folder, name+".toml")
}

func plan(file inherit.File, r inherit.Runner, place string, o Options) (Migration, error) {
	keys, rows := inherit.Carry(r)
	m := Migration{Runner: r.Name, ShortToken: r.ShortToken, DriverPath: place, Keys: rows, RunnerConfig: entry(r, place, o.Program)}
	if file.ShutdownTimeout < shutdownTimeout {
		m.Global = fmt.Sprintf("# Cleanup of the last jobs has to fit in it.\nshutdown_timeout = %d\n", shutdownTimeout)
	}
	written := keys
	if o.Inherit {
		written = settings.Inherited{"inherit": {"config_file": file.Name}}
	}
	text, err := toml.Marshal(written)
	if err != nil {
		return m, fmt.Errorf("writing the configuration of runner %s: %w", r.Label(), err)
	}
	shown, err := toml.Marshal(withoutValues(written))
	if err != nil {
		return m, fmt.Errorf("showing the configuration of runner %s: %w", r.Label(), err)
	}
	title := "# Configuration of tenant-executor for the runner " + quoted(r.Label()) + ".\n"
	m.DriverFile, m.DriverConfig = title+string(text), title+string(shown)
	if err := inherit.Refusals(rows); err != nil {
		m.Missing = strings.Split(err.Error(), "\n")
	}
	m.Missing = append(m.Missing, missing(m.DriverPath, text, keys, file.Name)...)
	defaults := settings.Defaults()
	if text := inherit.Slots(file, r, defaults.Tenant.Ceiling); text != "" {
		m.Warnings = append(m.Warnings, text)
	}
	m.Warnings = append(m.Warnings, tooShort(r, defaults.Wait)...)
	return m, nil
}

// quoted keeps a runner's name in one line of a comment.
func quoted(name string) string { return fmt.Sprintf("%q", name) }

// missing is what the driver would say of its configuration.
func missing(name string, text []byte, keys settings.Inherited, from string) []string {
	var s settings.Settings
	draft, err := settings.Read(name, text)
	if err == nil {
		s, err = draft.Over(keys, from)
	}
	if err == nil {
		return unbuildable(s)
	}
	var all []string
	for _, line := range strings.Split(err.Error(), "\n") {
		line = strings.TrimPrefix(line, name+", with what it inherits from "+from+": ")
		all = append(all, strings.TrimPrefix(line, name+": "))
	}
	return all
}

// unbuildable is what a job's Pod would be refused for, whatever the job: some of
// what settings say shows only in the Pod.
func unbuildable(s settings.Settings) []string {
	plan := pod.Plan{
		Job:       job.Job{ID: 1, Image: job.Image{Name: "image"}},
		Settings:  s.Kubernetes,
		BuildsDir: s.Job.BuildsDir, CacheDir: s.Job.CacheDir,
		Attempt: "a", Keeper: []string{"sh"}, Folder: "/tenant-executor",
		ReadFile: func(string) ([]byte, error) { return nil, errElsewhere },
	}
	_, err := plan.Build()
	if err == nil || errors.Is(err, errElsewhere) || failure.Of(err).Cause != failure.Settings {
		return nil
	}
	return []string{err.Error()}
}

// errElsewhere keeps a look at settings from reading the files that they name:
// those of another host, perhaps.
var errElsewhere = errors.New("the file is on the runner's host")

// hidden stands for a value that is not shown.
const hidden = "(not shown)"

// withoutValues are keys without the values of services' variables.
func withoutValues(keys settings.Inherited) settings.Inherited {
	shown := settings.Inherited{}
	for table, inside := range keys {
		shown[table] = maps.Clone(inside)
	}
	services, _ := shown["kubernetes"]["services"].([]any)
	list := make([]any, len(services))
	for i, service := range services {
		list[i] = service
		if table, ok := service.(map[string]any); ok {
			table = maps.Clone(table)
			if variables, ok := table["environment"].([]any); ok {
				table["environment"] = namesAlone(variables)
			}
			list[i] = table
		}
	}
	if len(services) > 0 {
		shown["kubernetes"]["services"] = list
	}
	return shown
}

// namesAlone are variables (NAME=value) with their values left out.
func namesAlone(variables []any) []any {
	all := make([]any, len(variables))
	for i, v := range variables {
		text, _ := v.(string)
		name, _, _ := strings.Cut(text, "=")
		all[i] = name + "=" + hidden
	}
	return all
}

// tooShort warns of time-outs that end prepare before the driver's own budgets.
func tooShort(r inherit.Runner, wait settings.Wait) []string {
	limit, err := time.ParseDuration(r.Text("prepare_timeout"))
	if budget := budget(wait); err == nil && limit > 0 && limit < budget {
		return []string{fmt.Sprintf("prepare_timeout = %q ends prepare before its own budgets do: wait.node, wait.start and wait.reach are %s together", r.Text("prepare_timeout"), budget)}
	}
	return nil
}

// budget is how long prepare waits at most.
func budget(wait settings.Wait) time.Duration {
	return wait.Node.Value() + wait.Start.Value() + wait.Reach.Value()
}
