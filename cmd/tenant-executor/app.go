package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"gitlab.com/gitlab-org/gitlab-runner/executors/custom/api"

	"github.com/socialweb-computer/tenant-executor/executor/failure"
	"github.com/socialweb-computer/tenant-executor/executor/job"
	"github.com/socialweb-computer/tenant-executor/executor/joblog"
	"github.com/socialweb-computer/tenant-executor/executor/settings"
	"github.com/socialweb-computer/tenant-executor/stages"
	"github.com/socialweb-computer/tenant-executor/stages/state"
)

// configVariable names the configuration file where no flag does.
const configVariable = "TENANT_EXECUTOR_CONFIG"

// app is the command line: what its flags say and what the process was given.
type app struct {
	process
	environment job.Environment
	// voice speaks to the reader of the job log. It writes to stderr in
	// config, whose stdout is for JSON alone, and in cleanup, whose stdout
	// nobody reads; prepare and run have their own on stdout, since the runner
	// does not keep the order between two pipes.
	voice joblog.Log

	// leave ends the command's context, as the runner's TERM does.
	leave func()

	configFile, jobFile, runner string
	// stage is the stage that this process is, "" for commands of people; see
	// observe.
	stage    string
	observed *observed
	// byHand is true for commands of people: a script's exit code is then the
	// command's own.
	byHand bool
	// unread is why a stage makes do without the configuration; nil where it
	// was read.
	unread error
}

// usageError is a command line that cannot be understood.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func (a *app) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "tenant-executor",
		Short: "Run GitLab jobs as Pods on a tenant cluster",
		Long: `tenant-executor is a driver for GitLab Runner's custom executor. The runner calls
it for each job as config, prepare, run and cleanup; each job becomes one Pod on
a tenant cluster.

Every stage can also be run by hand: --job names a file with the job as GitLab
sent it (the runner's JOB_RESPONSE_FILE). A stage finds the job's Pod by itself,
so that one stage can be tried on a job that runs.`,
		Example: `  # a job by hand on a local tenant cluster (bin/localtenant, see examples/localtenant)
  localtenant up
  localtenant driver-config > driver.toml
  echo '{"id": 1}' > job.json
  tenant-executor prepare --config driver.toml --job job.json
  echo 'id; df -h /builds' > look.sh
  tenant-executor run --config driver.toml --job job.json look.sh build_script
  tenant-executor cleanup --config driver.toml --job job.json`,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return &usageError{err} })
	flags := root.PersistentFlags()
	flags.StringVar(&a.configFile, "config", "", "configuration `FILE` (default $"+configVariable+", else "+settings.DefaultPath+")")
	root.AddCommand(a.configCommand(), a.prepareCommand(), a.runCommand(), a.cleanupCommand(), a.warmCommand(), a.migrateCommand(), a.doctorCommand(), a.statsCommand(), a.versionCommand())
	a.addHand(root)
	return root
}

// jobFlags are the flags of commands that work on one job.
func (a *app) jobFlags(c *cobra.Command) *cobra.Command {
	c.Flags().StringVar(&a.jobFile, "job", "", "`FILE` with the job as GitLab sent it (default $"+api.JobResponseFileVariable+")")
	c.Flags().StringVar(&a.runner, "runner", "", "short `TOKEN` of the runner the job belongs to (default $CUSTOM_ENV_CI_RUNNER_SHORT_TOKEN)")
	return c
}

// noArgs and exactArgs are cobra's, with errors of ours.
func noArgs(c *cobra.Command, args []string) error {
	if err := cobra.NoArgs(c, args); err != nil {
		from := ""
		if isStage(c.Name()) && c.Name() != "run" {
			from = fmt.Sprintf(". The runner's config.toml has them in %s_args", c.Name())
		}
		return &usageError{fmt.Errorf("%s takes no arguments; it got %q%s", c.CommandPath(), strings.Join(args, " "), from)}
	}
	return nil
}

// job reads the job.
func (a *app) job() (job.Job, error) {
	path := a.environment.ResponseFile()
	if a.jobFile != "" {
		path = a.jobFile
	}
	if path == "" {
		return job.Job{}, failure.New(failure.Contract, "%s is not set and no --job FILE is given", api.JobResponseFileVariable)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return job.Job{}, failure.Wrap(failure.Contract, err, "the job")
	}
	j, err := job.Parse(data, a.environment)
	if err != nil {
		return job.Job{}, failure.Wrap(failure.Contract, err, "the job in %s", path)
	}
	if a.runner != "" {
		j.RunnerToken = a.runner
	}
	return j, nil
}

// driver joins the settings and the job. Afresh has the cluster looked up anew;
// other stages start with where it was last.
func (a *app) driver(ctx context.Context, log joblog.Log, afresh bool) (*stages.Driver, error) {
	p, err := a.parts(log, afresh)
	if err != nil {
		return nil, err
	}
	return stages.New(ctx, p)
}

// parts are what a driver of one job is made of.
func (a *app) parts(log joblog.Log, afresh bool) (stages.Parts, error) {
	j, jobErr := a.job()
	s, origin, decided, err := a.settingsOf(j)
	if err == nil {
		err = jobErr
	}
	if err != nil {
		return stages.Parts{}, err
	}
	if origin != nil && origin.Runner.Name != "" {
		j.RunnerName = origin.Runner.Name
	}
	// No job fails for want of the folder: a nil one remembers nothing.
	folder, stateErr := state.Open(s.State.Dir)
	a.observe(s, folder, j)
	return stages.Parts{
		Settings:  s,
		Decided:   decided,
		Origin:    origin,
		Find:      a.finder(folder, s.Cluster, afresh).Find,
		State:     folder,
		StateErr:  stateErr,
		Job:       j,
		PodName:   a.environment[job.HintPod],
		Variables: a.environment,
		Log:       log,
		Clock:     stages.Clock{},
		Course:    a.observed.course(),
		Host:      func() stages.Host { return a.host(folder) },
	}, nil
}

// finder finds the cluster. It is first where the configuration has it that was
// read, then where it is by the configuration of that time: the cluster may have
// moved. Afresh is as for driver.
func (a *app) finder(folder *state.Folder, known settings.Cluster, afresh bool) *stages.Finder {
	first := true
	return &stages.Finder{
		Settings: func() settings.Cluster {
			if first {
				first = false
				return known
			}
			// A file that is halfway through a change counts when it is whole.
			if s, err := a.settings(); err == nil {
				known = s.Cluster
			}
			return known
		},
		Memory:    folder,
		Env:       a.environment,
		Say:       func(text string) { a.voice.Info("%s", text) },
		UserAgent: "tenant-executor/" + version(),
		Afresh:    afresh,
	}
}
