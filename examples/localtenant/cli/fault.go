package cli

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/socialweb-computer/tenant-executor/examples/localtenant/daemon"
	"github.com/socialweb-computer/tenant-executor/examples/localtenant/faults"
)

func (c *common) fault() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "fault",
		Short: "Let what comes next go wrong: boots, nodes, kubelets",
		Long: `fault sets what goes wrong with the next boots, nodes and Pods. A count goes down
each time that its fault happens; at 0 all is well again. Nodes that are there
already stay as they are: for them see localtenant node.`,
		Example: `  localtenant fault set --failing-boots 2
  localtenant fault set --never-ready 1
  localtenant fault set --unreachable 10s
  localtenant fault set --drops-on-bind 1
  localtenant fault show
  localtenant fault clear`,
		Args: cobra.NoArgs,
		RunE: help,
	}
	cmd.AddCommand(c.faultSet(), c.faultShow(), c.faultClear())
	return cmd
}

func (c *common) faultSet() *cobra.Command {
	var (
		values      faults.Settings
		unreachable time.Duration
	)
	cmd := &cobra.Command{
		Use:   "set",
		Short: "Set faults; those not named stay",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var change faults.Change
			for flag, take := range map[string]func(){
				"failing-boots": func() { change.FailingBoots = &values.FailingBoots },
				"never-ready":   func() { change.NeverReady = &values.NeverReady },
				"unreachable":   func() { change.Unreachable = &metav1.Duration{Duration: unreachable} },
				"drops-on-bind": func() { change.DropsOnBind = &values.DropsOnBind },
			} {
				if cmd.Flags().Changed(flag) {
					take()
				}
			}
			if change == (faults.Change{}) {
				return errors.New("name at least one fault; see `localtenant fault set --help`")
			}
			return c.changeFaults(cmd, change)
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&values.FailingBoots, "failing-boots", 0, "how many of the next boots fail, after the boot time; the gateway tries again 5 seconds later")
	flags.IntVar(&values.NeverReady, "never-ready", 0, "how many of the next nodes register and never become ready")
	flags.DurationVar(&unreachable, "unreachable", 0, "how long the kubelets of new nodes refuse connections after the node is ready, so that exec and logs fail; until set to 0")
	flags.IntVar(&values.DropsOnBind, "drops-on-bind", 0, "how many of the next Pods lose their node, as when it is dropped, at the moment that they are bound to it")
	return cmd
}

func (c *common) faultShow() *cobra.Command {
	return shows(c, "show", "Show the faults that are still to come",
		func(d *daemon.Details) faults.Settings { return d.Faults }, c.printFaults)
}

func (c *common) faultClear() *cobra.Command {
	return &cobra.Command{
		Use:   "clear",
		Short: "End all faults that are still to come",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return c.changeFaults(cmd, faults.None()) },
	}
}

func (c *common) changeFaults(cmd *cobra.Command, change faults.Change) error {
	client, err := c.client()
	if err != nil {
		return err
	}
	settings, err := client.SetFaults(cmd.Context(), change)
	if err != nil {
		return err
	}
	return c.printFaults(settings)
}

func (c *common) printFaults(settings faults.Settings) error {
	_, err := fmt.Fprintln(c.Out, faultsText(settings))
	return err
}

func faultsText(settings faults.Settings) string {
	var parts []string
	for _, count := range []struct {
		left int
		what string
	}{
		{settings.FailingBoots, "boots fail"}, {settings.NeverReady, "nodes never become ready"},
		{settings.DropsOnBind, "Pods lose their node when they are bound"},
	} {
		if count.left > 0 {
			parts = append(parts, fmt.Sprintf("the next %d %s", count.left, count.what))
		}
	}
	if settings.Unreachable.Duration > 0 {
		parts = append(parts, fmt.Sprintf("kubelets of new nodes refuse connections for %s after the node is ready", settings.Unreachable.Duration))
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, "; ")
}
