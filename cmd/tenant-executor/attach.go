package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/socialweb-computer/tenant-executor/executor/joblog"
)

func (a *app) attachCommand() *cobra.Command {
	return a.jobFlags(&cobra.Command{
		Use:   "attach [STAGE]",
		Short: "Show a stage that runs on without its driver",
		Long: `attach shows the output of a stage from where the Pod still has it, follows it to
its end, and exits with the script's exit code. A stage runs on in its Pod when the driver
that started it is killed. Ctrl-C detaches and leaves the stage alone.

Without STAGE it is the newest stage that runs, or the newest of all if none
does. STAGE may be the beginning of a name.`,
		Example: `  tenant-executor attach --config driver.toml --job job.json
  tenant-executor attach --config driver.toml --job job.json build_script`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return &usageError{fmt.Errorf("attach takes one stage at the most; it got %q", args)}
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			// The output goes to stdout alone, so that it can be kept.
			a.voice = joblog.New(a.stderr)
			a.byHand = true
			d, err := a.driver(c.Context(), a.voice, false)
			if err != nil {
				return err
			}
			stage := ""
			if len(args) == 1 {
				stage = args[0]
			}
			return d.Attach(c.Context(), stage, a.stdout)
		},
	})
}
