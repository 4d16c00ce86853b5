package main

import (
	"github.com/spf13/cobra"
)

func (a *app) attachCommand() *cobra.Command {
	h := &hand{app: a}
	c := &cobra.Command{
		Use:   "attach [JOB] [STAGE]",
		Short: "Take over a stage that runs on without its driver",
		Long: `attach shows the output of a stage from where the Pod still has it, follows it to
its end, and exits with the script's exit code. A stage runs on in its Pod when the driver
that started it is killed. Ctrl-C detaches and leaves the stage alone.

What attach has shown is freed in the Pod, as for the driver itself. To look at
a stage whose driver lives, use logs --follow.

JOB is a job's id, the name of its Pod, or NAMESPACE/POD; --job FILE names it
otherwise. Without STAGE it is the newest stage that runs, or the newest of all
if none does. STAGE may be the beginning of a name.`,
		Example: `  tenant-executor attach --config driver.toml 4711
  tenant-executor attach --config driver.toml --job job.json build_script`,
		Args: func(c *cobra.Command, args []string) error {
			_, err := h.jobAndStage(c, args)
			return err
		},
		ValidArgsFunction: h.completeJobAndStage,
		RunE: func(c *cobra.Command, args []string) error {
			a.byPerson()
			stage, err := h.jobAndStage(c, args)
			if err != nil {
				return err
			}
			d, err := h.driverFor(c.Context())
			if err != nil {
				return err
			}
			return d.Attach(c.Context(), stage, a.stdout)
		},
	}
	h.targetFlags(c)
	h.fileFlag(c)
	return c
}
