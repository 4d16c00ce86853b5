package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/socialweb-computer/tenant-executor/stages"
)

func (a *app) logsCommand() *cobra.Command {
	h := &hand{app: a}
	var o stages.LookOptions
	c := &cobra.Command{
		Use:   "logs [JOB] [STAGE]",
		Short: "Print the output of a stage or of a service from the job's Pod",
		Long: `logs prints what a stage has written, as far as the job's Pod still has it. It
changes nothing: the runner's own driver gets every byte as well. Output that the
driver has printed is freed in the Pod, some megabytes at a time; logs says how
much is gone, and the job log has it.

JOB is a job's id, the name of its Pod, or NAMESPACE/POD; --job FILE names it
otherwise. Without STAGE it is the newest stage that runs, or the newest of all
if none does. STAGE may be the beginning of a name.

With --container it is the newest stage in the container build or helper, or what
a service of the job has said: its name is that of its container, an alias, or one
made of its image. A service has no stages.

With --only it is stdout or stderr alone, of a stage that tells the two apart: by
[run] separate_stderr.`,
		Example: `  tenant-executor logs --config driver.toml 4711
  tenant-executor logs --config driver.toml 4711 get_sources
  tenant-executor logs --config driver.toml 4711 --container redis --follow
  tenant-executor logs --config driver.toml 4711 --only stderr
  tenant-executor logs --config driver.toml --job job.json --tail 20 --follow`,
		Args: func(c *cobra.Command, args []string) error {
			_, err := h.jobAndStage(c, args)
			return err
		},
		ValidArgsFunction: h.completeJobAndStage,
		RunE: func(c *cobra.Command, args []string) error {
			a.byPerson()
			if o.Only != "" && o.Only != stages.OnlyStdout && o.Only != stages.OnlyStderr {
				return &usageError{fmt.Errorf("--only is %q: use %s or %s", o.Only, stages.OnlyStdout, stages.OnlyStderr)}
			}
			var err error
			if o.Stage, err = h.jobAndStage(c, args); err != nil {
				return err
			}
			d, err := h.driverFor(c.Context())
			if err != nil {
				return err
			}
			return d.Look(c.Context(), o, a.stdout)
		},
	}
	h.targetFlags(c)
	h.fileFlag(c)
	h.containerFlag(c, &o.Container, "")
	c.Flags().IntVar(&o.Tail, "tail", -1, "show only the last `LINES` of what is there (-1: all)")
	c.Flags().StringVar(&o.Only, "only", "", "show one `STREAM` alone: "+stages.OnlyStdout+" or "+stages.OnlyStderr)
	_ = c.RegisterFlagCompletionFunc("only", cobra.FixedCompletions([]string{stages.OnlyStdout, stages.OnlyStderr}, cobra.ShellCompDirectiveNoFileComp))
	c.Flags().BoolVarP(&o.Follow, "follow", "f", false, "go on to the end of the stage or the service, or until Ctrl-C")
	return c
}
