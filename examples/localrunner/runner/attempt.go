package runner

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"

	"gitlab.com/gitlab-org/gitlab-runner/executors/custom/api"

	"github.com/socialweb-computer/tenant-executor/examples/localrunner/build"
	"github.com/socialweb-computer/tenant-executor/examples/localrunner/config"
	"github.com/socialweb-computer/tenant-executor/examples/localrunner/joblog"
	"github.com/socialweb-computer/tenant-executor/examples/localrunner/script"
)

// attempt is one try at preparing a job, and the stages and the cleanup that
// follow: what GitLab Runner calls an executor. Each has a temporary folder
// of its own.
type attempt struct {
	x      *execution
	number int
	custom *config.Custom
	dir    string
	jobEnv map[string]string
}

// prepare calls config_exec and prepare_exec (executors/custom/custom.go).
func (a *attempt) prepare(ctx context.Context) error {
	if err := a.configured(); err != nil {
		return err
	}
	if err := a.makeDir(); err != nil {
		return err
	}
	out, err := a.config(ctx)
	if err != nil {
		return err
	}
	a.greet(out.Driver)

	b := a.x.build
	dirs := build.Dirs{BuildsDir: b.Runner.BuildsDir, CacheDir: b.Runner.CacheDir, Shell: b.Runner.Shell}
	take(&b.Hostname, out.Hostname)
	take(&dirs.BuildsDir, out.BuildsDir)
	take(&dirs.CacheDir, out.CacheDir)
	take(&dirs.Shared, out.BuildsDirIsShared)
	take(&dirs.Shell, out.Shell)
	take(&a.jobEnv, out.JobEnv)
	if err := b.Start(dirs); err != nil {
		return err
	}
	if a.custom.PrepareExec == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, config.Seconds(a.custom.PrepareExecTimeout, config.DefaultExecTimeout))
	defer cancel()
	return a.logged(ctx, "prepare", 0, command(a.custom.PrepareExec, a.custom.PrepareArgs))
}

// take overwrites a setting with what the driver gave, if it gave anything.
func take[T any](setting, given *T) {
	if given != nil {
		*setting = *given
	}
}

func (a *attempt) configured() error {
	a.custom = a.x.build.Runner.Custom
	switch {
	case a.custom == nil:
		return &build.Failure{Err: errors.New("custom executor not configured"), Reason: build.ReasonConfiguration}
	case a.custom.RunExec == "":
		return &build.Failure{Err: errors.New("custom executor is missing RunExec"), Reason: build.ReasonConfiguration}
	}
	return nil
}

// makeDir makes the temporary folder, mode 0700, with the job's payload in a
// file of mode 0600.
func (a *attempt) makeDir() error {
	dir, err := os.MkdirTemp(a.x.runner.cfg.TempDir, "custom-executor")
	if err != nil {
		return fmt.Errorf("making the attempt's temporary folder: %w", err)
	}
	a.dir = dir
	data, err := Response(a.x.build)
	if err != nil {
		return err
	}
	if err := os.WriteFile(responseFile(dir), data, 0o600); err != nil {
		return fmt.Errorf("creating job response file: %w", err)
	}
	return nil
}

// Response is the content of the file with the job's payload.
func Response(b *build.Build) ([]byte, error) {
	data, err := json.Marshal(b.Job)
	if err != nil {
		return nil, fmt.Errorf("encoding job response file: %w", err)
	}
	return append(data, '\n'), nil
}

// config calls config_exec. Its stdout is one JSON object or empty; only its
// stderr is shown.
func (a *attempt) config(ctx context.Context) (api.ConfigExecOutput, error) {
	var out api.ConfigExecOutput
	if a.custom.ConfigExec == "" {
		return out, nil
	}
	ctx, cancel := context.WithTimeout(ctx, config.Seconds(a.custom.ConfigExecTimeout, config.DefaultExecTimeout))
	defer cancel()
	a.x.build.Refresh()
	stderr := a.x.log.Stream(0, joblog.Stderr)
	defer stderr.Close()
	var stdout bytes.Buffer
	err := a.call(ctx, "config", command(a.custom.ConfigExec, a.custom.ConfigArgs), &stdout, stderr)
	if err != nil || stdout.Len() == 0 {
		return out, err
	}
	if err := json.Unmarshal(stdout.Bytes(), &out); err != nil {
		return out, fmt.Errorf("error while parsing JSON output: %w", err)
	}
	return out, nil
}

func (a *attempt) greet(driver *api.DriverInfo) {
	line := "Using Custom executor"
	if driver != nil && driver.Name != nil {
		line += " with driver " + *driver.Name
		if driver.Version != nil {
			line += " " + *driver.Version
		}
	}
	a.x.log.Println(line + "...")
}

// run calls run_exec with the script of a stage in a fresh folder.
func (a *attempt) run(ctx context.Context, stage, text string) error {
	dir, err := os.MkdirTemp(a.dir, "script")
	if err != nil {
		return fmt.Errorf("making a folder for the script: %w", err)
	}
	file := filepath.Join(dir, "script")
	if err := os.WriteFile(file, []byte(text), 0o700); err != nil {
		return fmt.Errorf("writing the script: %w", err)
	}
	if stage == script.StepScript {
		// The custom executor still tells its drivers the old name of this
		// stage, and says so in every job log (executors/custom/custom.go,
		// Run; https://gitlab.com/groups/gitlab-org/-/epics/6112).
		a.x.log.Warn("Starting with version 17.0 the 'build_script' stage will be replaced with 'step_script': " +
			"https://gitlab.com/groups/gitlab-org/-/epics/6112")
		stage = script.StepScriptForDriver
	}
	argv := command(a.custom.RunExec, a.custom.RunArgs)
	return a.logged(ctx, stage, 1, append(argv, file, stage))
}

// cleanup calls cleanup_exec and removes the temporary folder. It has a time
// limit of its own, which neither the job's limit nor a cancel shortens. Its
// output goes to the runner's own log, unmasked, and not to the job log.
func (a *attempt) cleanup() {
	if err := a.configured(); err != nil {
		a.x.log.Warn(err.Error())
		return
	}
	defer a.removeDir()
	if a.custom.CleanupExec == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(a.x.alive),
		config.Seconds(a.custom.CleanupExecTimeout, config.DefaultExecTimeout))
	defer cancel()
	stdout := a.runnerLog(slog.LevelDebug, "out")
	stderr := a.runnerLog(slog.LevelWarn, "err")
	err := a.call(ctx, "cleanup", command(a.custom.CleanupExec, a.custom.CleanupArgs), stdout, stderr)
	_, _ = stdout.Close(), stderr.Close() // never fail
	if err != nil && !errors.Is(err, errAbandoned) {
		a.x.log.Warn("Cleanup script failed: " + err.Error())
		a.x.logger.Warn("Cleanup script failed", "error", err.Error())
	}
}

func (a *attempt) removeDir() {
	if a.dir == "" || a.x.runner.cfg.KeepTemp || a.x.alive.Err() != nil {
		return // a runner that has stopped removes nothing any more
	}
	if err := os.RemoveAll(a.dir); err != nil {
		a.x.logger.Warn("removing the temporary folder", "error", err.Error())
	}
}

func (a *attempt) runnerLog(level slog.Level, std string) io.WriteCloser {
	logger := a.x.logger.With("cleanup_std", std)
	return &joblog.Lines{F: func(line string) { logger.Log(context.Background(), level, line) }}
}

func command(executable string, args []string) []string {
	return append([]string{executable}, args...)
}

// logged makes a call whose output goes to the job log.
func (a *attempt) logged(ctx context.Context, stage string, stream int, argv []string) error {
	stdout, stderr := a.x.log.Stream(stream, joblog.Stdout), a.x.log.Stream(stream, joblog.Stderr)
	defer func() { _, _ = stdout.Close(), stderr.Close() }()
	return a.call(ctx, stage, argv, stdout, stderr)
}

func (a *attempt) call(ctx context.Context, stage string, argv []string, stdout, stderr io.Writer) error {
	if a.x.alive.Err() != nil {
		a.x.leave()
		return errAbandoned
	}
	call := Call{Stage: stage, Attempt: a.number, Dir: a.dir, Started: a.x.runner.cfg.Now()}
	p := process{
		argv: argv, dir: a.dir, env: a.environment(),
		stdout: stdout, stderr: stderr,
		graceful: config.Seconds(a.custom.GracefulKillTimeout, config.DefaultGracefulKillTimeout),
		force:    config.Seconds(a.custom.ForceKillTimeout, config.DefaultForceKillTimeout),
		started: func(pid int) {
			call.PID = pid
			if f := a.x.opts.OnCall; f != nil {
				f(call)
			}
		},
	}
	ended := p.run(ctx, a.x.alive)
	err := classify(ended, a.dir+"/build_exit_code")
	if errors.Is(ended, errAbandoned) {
		a.x.leave()
	}
	call.Duration = a.x.runner.cfg.Now().Sub(call.Started)
	call.ExitCode, call.Err = exitCode(ended), err
	a.x.record(call)
	return err
}

// environment is in the order of GitLab Runner; of two entries for the same
// name the later one counts (executors/custom/command/command.go).
func (a *attempt) environment() []string {
	env := slices.Concat(a.x.runner.cfg.Environ, Own(a.dir))
	for key, value := range a.jobEnv {
		env = append(env, key+"="+value)
	}
	return append(env, JobEnvironment(a.x.build)...)
}
