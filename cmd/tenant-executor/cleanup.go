package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/socialweb-computer/tenant-executor/stages"
	"github.com/socialweb-computer/tenant-executor/stages/course"
)

func (a *app) cleanupCommand() *cobra.Command {
	return a.jobFlags(&cobra.Command{
		Use:   "cleanup",
		Short: "Delete the job's Pods (cleanup_exec)",
		Long: `cleanup deletes every Pod of the job, also those of attempts that failed. It says
nothing when all went well, and may be called again. It needs nothing of the
configuration but the cluster and the namespace, and has those from config where
the runner calls it. What it cannot do is remembered in the state folder, and
done by a later stage of any job.`,
		Example: `  # driver.toml and job.json as "tenant-executor --help" makes them for a local tenant cluster
  tenant-executor cleanup --config driver.toml --job job.json`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			a.unattended()
			a.stage = course.Cleanup
			return a.cleanup(c.Context())
		},
	})
}

// cleanup deletes the job's Pods. Whatever keeps it from that is no reason to
// forget them.
func (a *app) cleanup(ctx context.Context) error {
	p, err := a.parts(a.voice, false)
	if err != nil {
		a.voice.Warn("This cleanup cannot be remembered for later, so the job's Pods, if there are any, stay until a sweep finds them: neither the job's environment nor the configuration says which cluster they are on")
		return err
	}
	d, err := stages.New(ctx, p)
	if err != nil {
		if forgotten := stages.RememberCleanup(p); forgotten != nil {
			a.voice.Warn("This cleanup cannot be remembered for later, so the job's Pods stay until a sweep finds them: %v", forgotten)
		}
		return err
	}
	err = d.Cleanup(ctx)
	if a.unread != nil {
		a.voice.Warn("The configuration cannot be read at present, and new jobs fail of it. This cleanup needed none of it. (%v)", a.unread)
	}
	return err
}
