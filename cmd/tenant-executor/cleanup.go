package main

import (
	"github.com/spf13/cobra"

	"github.com/socialweb-computer/tenant-executor/stages/course"
)

func (a *app) cleanupCommand() *cobra.Command {
	return a.jobFlags(&cobra.Command{
		Use:   "cleanup",
		Short: "Delete the job's Pods (cleanup_exec)",
		Long: `cleanup deletes every Pod of the job, also those of attempts that failed. It says
nothing when all went well, and may be called again.`,
		Example: `  # driver.toml and job.json as "tenant-executor --help" makes them for a local tenant cluster
  tenant-executor cleanup --config driver.toml --job job.json`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			a.stage = course.Cleanup
			d, err := a.driver(c.Context(), a.voice, false)
			if err != nil {
				return err
			}
			return d.Cleanup(c.Context())
		},
	})
}
