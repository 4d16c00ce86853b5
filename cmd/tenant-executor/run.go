package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/socialweb-computer/tenant-executor/executor/failure"
	"github.com/socialweb-computer/tenant-executor/executor/joblog"
)

// runArgs are the script and the stage, which the runner adds to run_args
// (executors/custom/custom.go:343).
const runArgs = 2

func (a *app) runCommand() *cobra.Command {
	return a.jobFlags(&cobra.Command{
		Use:   "run SCRIPT STAGE",
		Short: "Run one stage's script in the job's Pod (run_exec)",
		Long: `run sends a script to the job's Pod, runs it and prints its output. STAGE decides
the container: what the runner wrote itself (get_sources, restore_cache and so
on) runs in "helper", everything else in "build".

The exit code is that of the runner's contract, not the script's: 0, or
$BUILD_FAILURE_EXIT_CODE with the script's own code in $BUILD_EXIT_CODE_FILE, or
$SYSTEM_FAILURE_EXIT_CODE. By hand they are 1 and 2.`,
		Example: `  # any command, in the build container of a job that prepare has readied
  echo 'id; ls -la /builds' > look.sh
  tenant-executor run --config driver.toml --job job.json look.sh build_script

  # the same in the helper container
  tenant-executor run --config driver.toml --job job.json look.sh get_sources`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != runArgs || args[1] == "" {
				return &usageError{fmt.Errorf("run takes a script file and a stage name, such as: run script.sh build_script; it got %q", args)}
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			a.leaveUnattended()
			out := joblog.NewOutput(a.stdout)
			a.voice = joblog.New(out)
			if err := a.forgetExitCode(); err != nil {
				return err
			}
			script, err := os.ReadFile(args[0])
			if err != nil {
				return failure.Wrap(failure.Contract, err, "the script of stage %s", args[1])
			}
			a.stage = args[1]
			d, err := a.driver(c.Context(), a.voice, false)
			if err != nil {
				return err
			}
			err = d.Run(c.Context(), script, args[1], out, a.hurry)
			d.TellHold(args[1], err)
			return err
		},
	})
}

// forgetExitCode removes what an earlier stage left: the runner gives one path
// to all stages and would take an old code for this one's.
func (a *app) forgetExitCode() error {
	path := a.environment.ExitCodeFile()
	if path == "" {
		return nil
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return failure.Wrap(failure.Contract, err, "the exit code of an earlier stage")
	}
	return nil
}
