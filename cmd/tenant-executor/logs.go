package main

import (
	"github.com/spf13/cobra"
)

func (a *app) logsCommand() *cobra.Command {
	h := &hand{app: a}
	var follow bool
	c := &cobra.Command{
		Use:   "logs [JOB] [STAGE]",
		Short: "Print the output of a stage from the job's Pod",
		Long: `logs prints what a stage has written, as far as the job's Pod still has it. It
changes nothing: the runner's own driver gets every byte as well. Output that the
driver has printed is freed in the Pod, some megabytes at a time; logs says how
much is gone, and the job log has it.

JOB is a job's id, the name of its Pod, or NAMESPACE/POD; --job FILE names it
otherwise. Without STAGE it is the newest stage that runs, or the newest of all
if none does. STAGE may be the beginning of a name.`,
		Example: `  tenant-executor logs --config driver.toml 4711
  tenant-executor logs --config driver.toml 4711 get_sources
  tenant-executor logs --config driver.toml --job job.json --follow`,
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
			return d.Look(c.Context(), stage, follow, a.stdout)
		},
	}
	h.targetFlags(c)
	h.fileFlag(c)
	c.Flags().BoolVarP(&follow, "follow", "f", false, "go on to the end of the stage, or until Ctrl-C")
	return c
}
