package main

import (
	"github.com/spf13/cobra"

	"github.com/socialweb-computer/tenant-executor/executor/joblog"
	"github.com/socialweb-computer/tenant-executor/stages/course"
)

func (a *app) prepareCommand() *cobra.Command {
	return a.jobFlags(&cobra.Command{
		Use:   "prepare",
		Short: "Make the job's Pod and wait until it can be used (prepare_exec)",
		Long: `prepare makes the job's Pod and waits until stages can run in it: until a node
takes it, until its images are pulled and its containers run, and until commands
reach it. Each phase has a budget of its own in the configuration ([wait]).`,
		Example: `  # driver.toml and job.json as "tenant-executor --help" makes them for a local tenant cluster
  tenant-executor prepare --config driver.toml --job job.json`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			a.leaveUnattended()
			a.voice = joblog.New(a.stdout)
			a.stage = course.Prepare
			d, err := a.driver(c.Context(), a.voice, true)
			if err != nil {
				return err
			}
			return d.Prepare(c.Context())
		},
	})
}
