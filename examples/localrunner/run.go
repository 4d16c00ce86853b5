package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/socialweb-computer/tenant-executor/examples/localrunner/config"
	"github.com/socialweb-computer/tenant-executor/examples/localrunner/dispatch"
	"github.com/socialweb-computer/tenant-executor/examples/localrunner/runner"
)

// runFlags are the flags of `run` beside those of source.
type runFlags struct {
	source
	config, runner  string
	parallel        int
	report, logDir  string
	sections        string
	timestamps      bool
	cancelAfter     time.Duration
	keepTemp        bool
	tempDir         string
	shutdownTimeout time.Duration
	verbose         bool
}

func runCommand(s surroundings) *cobra.Command {
	var f runFlags
	c := &cobra.Command{
		Use:   "run --config config.toml PIPELINE.yml [JOB...]",
		Short: "Run the jobs of a pipeline file",
		Long: `Runs the jobs of a pipeline file, or only those that are named, and prints
their logs. config.toml is GitLab Runner's: the [[runners]] section with
executor = "custom" says how the driver is called. Its url is not used; jobs
talk to the server inside localrunner.

Interrupt (Ctrl-C) once for what "Cancel" does in GitLab: the script is
stopped, after_script and the later stages still run. Interrupt again to abort
the jobs. SIGTERM is what it is to GitLab Runner: the jobs are aborted, and
those that take longer than --shutdown-timeout are left as they are.

Exit code: 0 all jobs passed or may fail; 1 a job failed; 2 wrong usage or
configuration; 3 a job failed for a reason that is not its own.`,
		Example: `  localrunner run --config config.toml .gitlab-ci.yml
  localrunner run --config config.toml --listen 10.77.0.1:0 --report report.json ci.yml build test`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return f.run(c.Context(), s, args[0], args[1:])
		},
	}
	f.source.flags(c)
	fl := c.Flags()
	fl.StringVar(&f.config, "config", "", "GitLab Runner's config.toml (required)")
	fl.StringVar(&f.runner, "runner", "", `name of the [[runners]] section (default: the first with executor = "custom")`)
	fl.IntVar(&f.parallel, "parallel", 1, "how many jobs of a stage run at a time")
	fl.StringVar(&f.report, "report", "", "file for a report in JSON")
	fl.StringVar(&f.logDir, "log-dir", "", "folder for the jobs' logs as GitLab would get them")
	fl.StringVar(&f.sections, "sections", "auto", "how logs are printed: raw, plain, or auto (plain on a terminal or with several jobs at a time)")
	fl.BoolVar(&f.timestamps, "timestamps", false, "put time and stream before each line of the logs")
	fl.DurationVar(&f.cancelAfter, "cancel-after", 0, "cancel each job gracefully this long after its start")
	fl.BoolVar(&f.keepTemp, "keep-temp", false, "keep the jobs' temporary folders, secrets included")
	fl.StringVar(&f.tempDir, "temp-dir", "", "folder for the jobs' temporary folders (default: the system's)")
	fl.DurationVar(&f.shutdownTimeout, "shutdown-timeout", 30*time.Second, "how long jobs may take to end after SIGTERM")
	fl.BoolVarP(&f.verbose, "verbose", "v", false, "also print what the driver's cleanup writes to stdout")
	if err := c.MarkFlagRequired("config"); err != nil {
		panic(err) // the flag is defined above
	}
	return c
}

func (f *runFlags) run(ctx context.Context, s surroundings, file string, only []string) (err error) {
	settings, err := config.Load(f.config, f.runner)
	if err != nil {
		return err
	}
	screen, err := newScreen(s, f.sections, f.parallel)
	if err != nil {
		return err
	}
	if f.cancelAfter < 0 {
		return fmt.Errorf("--cancel-after %v: want a time above 0", f.cancelAfter)
	}
	if f.logDir != "" {
		if err := os.MkdirAll(f.logDir, 0o755); err != nil {
			return fmt.Errorf("--log-dir: %w", err)
		}
	}
	session, err := f.open(ctx, file, time.Now())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, session.close()) }()
	settings.URL = session.project.URL.String()
	f.warn(screen, session, settings)

	r, err := runner.New(runner.Config{
		Runner: settings, Environ: s.environ,
		TempDir: f.tempDir, KeepTemp: f.keepTemp, Timestamps: f.timestamps,
		ShutdownTimeout: f.shutdownTimeout,
		Logger:          screen.logger(f.verbose),
		CacheURL:        session.cacheURL,
	})
	if err != nil {
		return err
	}
	p := &play{
		flags: f, session: session, runner: r, screen: screen,
		stopper: newStopper(screen.say), earlier: map[string]dispatch.Earlier{},
	}
	return p.all(ctx, s, only)
}

// warn says what of the files has no effect.
func (f *runFlags) warn(screen *screen, s *session, settings *config.Runner) {
	for _, w := range s.project.Pipeline.Warnings {
		screen.say("warning: " + w)
	}
	if s.project.Repository.Changed {
		screen.say("warning: the repository has changes that are not committed; the jobs see the last commit")
	}
	if ip := net.ParseIP(s.project.URL.Hostname()); ip != nil && ip.IsLoopback() {
		screen.say(fmt.Sprintf("note: the repository is at %s, which only this machine can reach; "+
			"for jobs in Pods give --listen an address that the Pods can reach", s.project.URL))
	}
	if len(settings.Cache) > 0 {
		screen.say("warning: [runners.cache] is not used; see --cache-store")
	}
}

// logger is the runner's own log: the driver's cleanup writes to it.
func (s *screen) logger(verbose bool) *slog.Logger {
	level := slog.LevelInfo
	if verbose {
		level = slog.LevelDebug
	}
	return slog.New(slog.NewTextHandler(lockedWriter{s}, &slog.HandlerOptions{Level: level}))
}
