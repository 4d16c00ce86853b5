package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/socialweb-computer/tenant-executor/examples/localtenant/sweep"
	"github.com/socialweb-computer/tenant-executor/examples/localtenant/tenant"
)

func (c *common) down() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "down",
		Short: "Remove everything of a tenant",
		Long: `down ends all processes of a tenant and removes its mounts, network links with
their routes, control groups and its state folder, also after a crash. What it did
not make it leaves alone. It says what it removed, and is content when there is
nothing.`,
		Example: `  localtenant down
  localtenant down --name quick
  localtenant down --all`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := requireRoot(); err != nil {
				return err
			}
			t, err := c.tenant()
			if err != nil {
				return err
			}
			if !all {
				return c.takeDown(cmd.Context(), t)
			}
			names, err := tenant.List(t.Root())
			if err != nil {
				return err
			}
			if len(names) == 0 {
				fmt.Fprintf(c.Out, "no tenant in %s\n", t.Root())
			}
			var failures []error
			for _, name := range names {
				each, err := tenant.New(t.Root(), name)
				if err == nil {
					err = c.takeDown(cmd.Context(), each)
				}
				failures = append(failures, err)
			}
			return errors.Join(failures...)
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "take down all tenants of the state root")
	return cmd
}

func (c *common) takeDown(ctx context.Context, t tenant.Tenant) error {
	began := c.Now()
	left, err := sweep.Find(t)
	if err != nil {
		return err
	}
	if left.Empty() {
		fmt.Fprintf(c.Out, "nothing is there of tenant %q\n", t.Name())
		return nil
	}
	unlock, err := tenant.LockRoot(t.Root())
	if err != nil {
		return err
	}
	defer unlock()
	err = sweep.Remove(ctx, t, func(what string) { fmt.Fprintln(c.Out, "  "+what) })
	if err != nil {
		return fmt.Errorf("take down tenant %q: %w", t.Name(), err)
	}
	fmt.Fprintf(c.Out, "tenant %q is down after %s\n", t.Name(), took(c.Now().Sub(began)))
	return nil
}
