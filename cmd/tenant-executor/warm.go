package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/socialweb-computer/tenant-executor/executor/failure"
	"github.com/socialweb-computer/tenant-executor/stages"
	"github.com/socialweb-computer/tenant-executor/stages/course"
	"github.com/socialweb-computer/tenant-executor/stages/state"
)

func (a *app) warmCommand() *cobra.Command {
	var once, dryRun bool
	c := &cobra.Command{
		Use:   "warm",
		Short: "Keep nodes free for jobs to come, by the policies of the configuration",
		Long: `warm keeps as many nodes free as the policies in [[warm.policy]] say, with a
placeholder Pod on each. A job takes such a node at once, and another one is made
ready. It runs until it is told to end (TERM or INT); examples has a unit for
systemd. Several may run for one cluster: they keep as many nodes as the one that
wants the most. Nothing breaks without it: jobs only wait for their nodes.

Where metrics.listen names an address, it answers Prometheus there, at /metrics.

When it ends the placeholders stay, so that a restart costs no boot. Each ends by
itself when it is as old as warm.lifetime says.`,
		Example: `  tenant-executor warm --config driver.toml
  tenant-executor warm --config driver.toml --once --dry-run`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			a.byPerson()
			if dryRun && !once {
				return &usageError{errors.New("--dry-run goes with --once: it shows what one look would do")}
			}
			k, err := a.keeper(c.Context(), once)
			if err != nil {
				return err
			}
			if once {
				return k.Once(c.Context(), dryRun)
			}
			k.Run(c.Context())
			return nil
		},
	}
	c.Flags().StringVar(&a.runner, "runner", "", "short `TOKEN` of the runner whose settings are inherited, where its config.toml has several")
	c.Flags().BoolVar(&once, "once", false, "look once, do what is to be done, and end")
	c.Flags().BoolVar(&dryRun, "dry-run", false, "with --once: show what is to be done, and do nothing")
	return c
}

// keeper is made of the settings alone; it belongs to no job. One look is
// allowed without policies: it shows, or removes, what is left of earlier ones.
func (a *app) keeper(ctx context.Context, once bool) (*stages.Keeper, error) {
	s, err := a.settings()
	if err != nil {
		return nil, err
	}
	policies, err := s.Warm.Compile()
	if err == nil && !policies.Any() && !once {
		return nil, failure.New(failure.Settings, "the configuration has no [[warm.policy]] with an idle_count or a scale_factor, so there is nothing to keep")
	}
	// Without the folder the kcp side is asked each time.
	folder, _ := state.Open(s.State.Dir)
	seen, err := a.listen(ctx, s, once)
	if err != nil {
		return nil, err
	}
	return stages.NewKeeper(ctx, stages.KeeperParts{
		Settings: s,
		Find:     a.finder(folder, s.Cluster, true).Find,
		Log:      a.voice,
		Clock:    stages.Clock{},
		Seen:     seen,
		Book:     func() (*course.Book, error) { return course.Look(s.State.Dir) },
	})
}
