package main

import (
	"github.com/spf13/cobra"
)

func (a *app) releaseCommand() *cobra.Command {
	h := &hand{app: a}
	c := &cobra.Command{
		Use:   "release [JOB]",
		Short: "Delete the Pod of a failed job that is kept for a look",
		Long: `release deletes the Pod of a failed job that is kept for a look ([debug] hold),
before its time is over, so that its node is free again. It refuses any other Pod.

JOB is a job's id, the name of its Pod, or NAMESPACE/POD; --job FILE names it
otherwise.`,
		Example:           `  tenant-executor release --config driver.toml 4711`,
		Args:              h.onlyJob,
		ValidArgsFunction: h.completeJob,
		RunE: func(c *cobra.Command, args []string) error {
			a.byPerson()
			h.takeJob(args)
			d, err := h.driverFor(c.Context())
			if err != nil {
				return err
			}
			return d.Release(c.Context())
		},
	}
	h.targetFlags(c)
	h.fileFlag(c)
	return c
}
