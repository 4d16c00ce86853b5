package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/socialweb-computer/tenant-executor/examples/localrunner/build"
	"github.com/socialweb-computer/tenant-executor/examples/localrunner/config"
	"github.com/socialweb-computer/tenant-executor/examples/localrunner/job"
	"github.com/socialweb-computer/tenant-executor/examples/localrunner/keys"
	"github.com/socialweb-computer/tenant-executor/examples/localrunner/runner"
	"github.com/socialweb-computer/tenant-executor/examples/localrunner/script"
)

// exportFlags are the flags of `export` beside those of source.
type exportFlags struct {
	source
	config, runner      string
	job, out            string
	buildsDir, cacheDir string
	serve               bool
}

func exportCommand(s surroundings) *cobra.Command {
	var f exportFlags
	c := &cobra.Command{
		Use:   "export --job JOB --out DIR PIPELINE.yml",
		Short: "Write what a driver is handed for a job, to run single stages by hand",
		Long: `Writes into a folder what GitLab Runner hands a driver for one job:

  response.json    the job as GitLab sent it (JOB_RESPONSE_FILE)
  environment.sh   all variables of a driver's environment, for a shell's "."
  scripts/STAGE    the scripts of the run stages, in the order of their numbers

The folder then takes the part of a job's temporary folder (TMPDIR). What
config_exec would add is not there: its job_env is the driver's own, and the
folders are those of config.toml, or --builds-dir and --cache-dir.

The scripts fetch sources and move artifacts: with --serve, localrunner goes
on serving them until it is interrupted.

The files hold the job's secrets. They can be read by you alone.`,
		Example: `  localrunner export --job test --out /tmp/job --serve ci.yml
  # in another terminal:
  (. /tmp/job/environment.sh; cd /tmp/job; DRIVER prepare)
  (. /tmp/job/environment.sh; cd /tmp/job; DRIVER run /tmp/job/scripts/02-get_sources get_sources)`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error { return f.run(c.Context(), s, args[0]) },
	}
	f.source.flags(c)
	fl := c.Flags()
	fl.StringVar(&f.job, "job", "", "name of the job (required)")
	fl.StringVar(&f.out, "out", "", "folder to write to; it must be missing or empty (required)")
	fl.StringVar(&f.config, "config", "", "GitLab Runner's config.toml (default: a runner without settings)")
	fl.StringVar(&f.runner, "runner", "", `name of the [[runners]] section (default: the first with executor = "custom")`)
	fl.StringVar(&f.buildsDir, "builds-dir", "/builds", "builds_dir if config.toml sets none")
	fl.StringVar(&f.cacheDir, "cache-dir", "/cache", "cache_dir if config.toml sets none")
	fl.BoolVar(&f.serve, "serve", false, "serve repository and artifacts until interrupted")
	for _, name := range []string{"job", "out"} {
		if err := c.MarkFlagRequired(name); err != nil {
			panic(err) // the flag is defined above
		}
	}
	return c
}

func (f *exportFlags) run(ctx context.Context, s surroundings, file string) (err error) {
	settings := &config.Runner{Name: "localrunner", Executor: config.Executor}
	if f.config != "" {
		if settings, err = config.Load(f.config, f.runner); err != nil {
			return err
		}
	}
	out, err := emptyFolder(f.out)
	if err != nil {
		return err
	}
	session, err := f.open(ctx, file, time.Now())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, session.close()) }()
	settings.URL = session.project.URL.String()
	b, err := f.build(session, settings)
	if err != nil {
		return err
	}
	if err := write(b, out); err != nil {
		return err
	}
	_, _ = fmt.Fprintf(s.stdout, "written to %s\n", out)
	if !f.serve {
		return nil
	}
	_, _ = fmt.Fprintf(s.stdout, "serving at %s; interrupt to end\n", session.project.URL)
	select {
	case <-s.signals:
	case <-ctx.Done():
	}
	return nil
}

func emptyFolder(path string) (string, error) {
	out, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	entries, err := os.ReadDir(out)
	switch {
	case err == nil && len(entries) > 0:
		return "", fmt.Errorf("--out: %s is not empty", out)
	case err != nil && !errors.Is(err, os.ErrNotExist):
		return "", fmt.Errorf("--out: %w", err)
	}
	if err := os.MkdirAll(filepath.Join(out, "scripts"), 0o700); err != nil {
		return "", fmt.Errorf("--out: %w", err)
	}
	return out, os.Chmod(out, 0o700)
}

func (f *exportFlags) build(s *session, settings *config.Runner) (*build.Build, error) {
	j := s.project.Pipeline.Job(f.job)
	if j == nil {
		var names []string
		for _, o := range s.project.Pipeline.Jobs {
			names = append(names, o.Name)
		}
		return nil, fmt.Errorf("there is no job %q%s", f.job, keys.Hint(f.job, names))
	}
	payload, err := s.project.Payload(j, s.firstID, s.server.NewToken(s.firstID), nil)
	if err != nil {
		return nil, err
	}
	b := build.New(settings, payload, 0)
	b.CacheURL = s.cacheURL
	dirs := build.Dirs{BuildsDir: settings.BuildsDir, CacheDir: settings.CacheDir, Shell: settings.Shell}
	if dirs.BuildsDir == "" {
		dirs.BuildsDir = f.buildsDir
	}
	if dirs.CacheDir == "" {
		dirs.CacheDir = f.cacheDir
	}
	return b, b.Start(dirs)
}

// write writes the files of a started build.
func write(b *build.Build, out string) error {
	response, err := runner.Response(b)
	if err != nil {
		return err
	}
	var env strings.Builder
	for _, entry := range append(runner.Own(out), runner.JobEnvironment(b)...) {
		key, value, _ := strings.Cut(entry, "=")
		fmt.Fprintf(&env, "export %s='%s'\n", key, strings.ReplaceAll(value, "'", `'\''`))
	}
	for name, content := range map[string]string{"response.json": string(response), "environment.sh": env.String()} {
		if err := os.WriteFile(filepath.Join(out, name), []byte(content), 0o600); err != nil {
			return fmt.Errorf("--out: %w", err)
		}
	}
	number := 0
	for _, stage := range stagesOf(b) {
		text, err := script.Generate(b, stage)
		if errors.Is(err, script.ErrNothingToDo) {
			continue
		}
		if err != nil {
			return err
		}
		if stage == script.StepScript {
			stage = script.StepScriptForDriver // the name that a driver gets
		}
		number++
		name := filepath.Join(out, "scripts", fmt.Sprintf("%02d-%s", number, stage))
		if err := os.WriteFile(name, []byte(text), 0o700); err != nil {
			return fmt.Errorf("--out: %w", err)
		}
	}
	return nil
}

// stagesOf are all stages that a job can come to, in order.
func stagesOf(b *build.Build) []string {
	stages := []string{
		script.Prepare, script.GetSources, script.ClearWorktree, script.RestoreCache, script.DownloadArtifacts,
	}
	for _, s := range b.Job.Steps {
		if s.Name != job.StepAfterScript {
			stages = append(stages, script.StepStage(s.Name))
		}
	}
	return append(stages, script.AfterScript,
		script.ArchiveCache, script.ArchiveCacheOnFailure,
		script.UploadOnSuccess, script.UploadOnFailure, script.Cleanup)
}
