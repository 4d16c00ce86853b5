package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/socialweb-computer/tenant-executor/cmd/tenant-executor/show"
	"github.com/socialweb-computer/tenant-executor/executor/failure"
	"github.com/socialweb-computer/tenant-executor/executor/settings"
	"github.com/socialweb-computer/tenant-executor/stages"
	"github.com/socialweb-computer/tenant-executor/stages/doctor"
	"github.com/socialweb-computer/tenant-executor/stages/state"
)

// doctorFailed is the exit code for an examination that has found failures.
const doctorFailed = 1

// quietExit ends a command that has said all there is to say.
type quietExit struct{ code int }

func (e *quietExit) Error() string { return fmt.Sprintf("exit code %d", e.code) }

// doctorFlags are what doctor is asked for.
type doctorFlags struct {
	output, runnerFile, gitlab string
	probe                      bool
}

func (a *app) doctorCommand() *cobra.Command {
	var flags doctorFlags
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Look for what would stop jobs, before a job finds out",
		Long: `doctor checks the configuration, the credentials, the way to the cluster, the
driver's rights there, the nodes, GitLab Runner's own configuration and what is
kept on this host. Each line is a check with its state, what it is known by, and
what to do. It changes nothing and takes a few seconds, also when nobody answers.
Run it on the runner's host, as the runner's user.

With --probe it makes a Pod as a job has one: a node boots if none is free,
images are pulled, a command runs in the Pod, and GitLab is reached from there.
It waits as a job does (wait.node and so on); the Pod is deleted at the end, also
after Ctrl-C.

States:
  ok        as it should be
  warning   jobs run, and it is or will be trouble
  failure   it stops jobs, or lets them wait or end without a word
  skipped   not looked at, for the reason given

Exit codes:
  0   no failure; there may be warnings
  1   at least one failure
  2   doctor itself could not be run as asked

Checks:
` + checkList(),
		Example: `  tenant-executor doctor
  tenant-executor doctor --probe --gitlab https://gitlab.example.com
  tenant-executor doctor --runner-config /etc/gitlab-runner/config.toml

  # what is wrong, for a program
  tenant-executor doctor --output json | jq -r '.checks[] | select(.state == "failure") | .check'`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if _, err := show.ParseFormat(flags.output, doctorFormats()); err != nil {
				return &usageError{err}
			}
			if flags.gitlab != "" && !strings.HasPrefix(flags.gitlab, "https://") && !strings.HasPrefix(flags.gitlab, "http://") {
				return &usageError{fmt.Errorf("--gitlab is %q: write GitLab's address, such as https://gitlab.example.com", flags.gitlab)}
			}
			return a.doctor(c, flags)
		},
	}
	c.Flags().StringVarP(&flags.output, "output", "o", tableFormat, "`FORMAT` of the output: "+show.Names(doctorFormats()))
	c.Flags().StringVar(&flags.runnerFile, "runner-config", "", "`FILE` with GitLab Runner's configuration (default "+doctor.DefaultRunnerConfig+", if it is there)")
	c.Flags().StringVar(&a.runner, "runner", "", "short `TOKEN` of the runner (default all in its configuration that call the driver)")
	c.Flags().BoolVar(&flags.probe, "probe", false, "make a Pod and look at it")
	c.Flags().StringVar(&flags.gitlab, "gitlab", "", "with --probe: `URL` of GitLab (default that of the runner)")
	return c
}

// checkList is the table of checks, for people.
func checkList() string {
	var b strings.Builder
	for _, check := range doctor.Checks() {
		fmt.Fprintf(&b, "  %-19s %s\n", check.Name, check.Question)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func (a *app) doctor(c *cobra.Command, flags doctorFlags) error {
	a.byPerson()
	screen := newDoctorScreen(a.stdout, a.environment)
	file := flags.runnerFile
	if file == "" {
		file = doctor.DefaultRunnerConfig
	}
	told, format := screen.tell, show.Format(flags.output)
	if !format.Table() {
		told = func(doctor.Finding) {}
	}
	report := doctor.Examine(c.Context(), doctor.Parts{
		ConfigFile: whole(a.configPath()), Settings: a.plainSettings,
		RunnerFile: file, Named: flags.runnerFile != "", Runner: a.runner,
		Env: a.environment, UserAgent: "tenant-executor/" + version(),
		Clock: stages.Clock{}, Host: a.hostUnchanged,
		Probe: flags.probe, GitLab: flags.gitlab, Log: a.voice,
	}, told)
	var err error
	if format.Table() {
		err = screen.summary(report)
	} else {
		err = format.Write(a.stdout, a.doctorReport(report))
	}
	if err != nil {
		return failure.Wrap(failure.Internal, err, "writing what was found")
	}
	if report.Count(doctor.Failure) > 0 {
		return &quietExit{doctorFailed}
	}
	return nil
}

// whole is the whole path of a file: the runner's configuration names it so.
func whole(file string) string {
	if path, err := filepath.Abs(file); err == nil {
		return path
	}
	return file
}

// plainSettings are the settings, with an error that does not say whose they
// are.
func (a *app) plainSettings() (settings.Settings, error) {
	s, err := a.settings()
	if err == nil {
		return s, nil
	}
	if inner := failure.Of(err).Err; inner != nil {
		err = inner
	}
	return s, err
}

// hostUnchanged is host where the folder knows this host already; else it would
// be made known, by whoever runs doctor.
func (a *app) hostUnchanged(folder *state.Folder) stages.Host {
	if _, err := folder.ReadFile(hostFile); err != nil {
		return stages.Host{}
	}
	return a.host(folder)
}

// doctorReport is the output for programs.
type doctorReport struct {
	Version string               `json:"version"`
	Host    string               `json:"host"`
	Config  string               `json:"config"`
	Time    time.Time            `json:"time"`
	Counts  map[doctor.State]int `json:"counts"`
	Checks  []doctor.Finding     `json:"checks"`
}

func (a *app) doctorReport(report doctor.Report) doctorReport {
	counts := map[doctor.State]int{}
	for _, s := range []doctor.State{doctor.OK, doctor.Warning, doctor.Failure, doctor.Skipped} {
		counts[s] = report.Count(s)
	}
	hostname, _ := os.Hostname()
	return doctorReport{
		Version: version(), Host: hostname, Config: a.configPath(),
		Time: stages.Clock{}.Now().UTC().Truncate(time.Second), Counts: counts, Checks: report.Findings,
	}
}

func doctorFormats() []show.Format {
	return []show.Format{show.TableFormat, show.JSONFormat, show.YAMLFormat}
}
