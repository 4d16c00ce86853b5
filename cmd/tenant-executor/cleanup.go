package main

import (
	"github.com/spf13/cobra"
)

func (a *app) cleanupCommand() *cobra.Command {
	return a.jobFlags(&cobra.Command{
		Use:   "cleanup",
		Short: "Delete the job's Pods (cleanup_exec)",
		Long: `cleanup deletes every Pod of the job, also those of attempts that failed. It says
nothing when all went well, and may be called again.`,
		Example: `  tenant-executor cleanup --config driver.toml --job response.json`,
		Args:    noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			d, err := a.driver(c.Context(), a.voice, false)
			if err != nil {
				return err
			}
			return d.Cleanup(c.Context())
		},
	})
}
