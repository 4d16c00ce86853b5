package cli

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/socialweb-computer/tenant-executor/examples/localtenant/daemon"
	"github.com/socialweb-computer/tenant-executor/examples/localtenant/gateway"
)

func (c *common) gateway() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "gateway",
		Short: "Show and change the rules by which nodes come and go",
		Long: `gateway works on what boots and drops nodes. It counts the unfinished Pods outside
kube-system; it wants that count by pods-per-node nodes, rounded up, and at most
the ceiling; it boots those that are missing; and when nothing has run for the
hold it drops all nodes at once. Single nodes it never removes. A node that has
died silently counts as there, since nobody has noticed.`,
		Example: `  localtenant gateway show
  localtenant gateway set --ceiling 2 --hold 30s
  localtenant gateway set --paused
  localtenant gateway set --paused=false`,
		Args: cobra.NoArgs,
		RunE: help,
	}
	cmd.AddCommand(c.gatewayShow(), c.gatewaySet())
	return cmd
}

func (c *common) gatewayShow() *cobra.Command {
	return shows(c, "show", "Show the gateway's settings and state",
		func(d *daemon.Details) gateway.Status { return d.Gateway }, c.printGateway)
}

func (c *common) gatewaySet() *cobra.Command {
	var values struct {
		ceiling, podsPerNode int
		hold, bootTime       time.Duration
		paused               bool
	}
	cmd := &cobra.Command{
		Use:   "set",
		Short: "Change settings of the gateway while it runs; those not named stay",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var change gateway.Change
			for flag, take := range map[string]func(){
				"ceiling":       func() { change.Ceiling = &values.ceiling },
				"pods-per-node": func() { change.PodsPerNode = &values.podsPerNode },
				"hold":          func() { change.Hold = &metav1.Duration{Duration: values.hold} },
				"boot-time":     func() { change.BootTime = &metav1.Duration{Duration: values.bootTime} },
				"paused":        func() { change.Paused = &values.paused },
			} {
				if cmd.Flags().Changed(flag) {
					take()
				}
			}
			if change == (gateway.Change{}) {
				return errors.New("name at least one setting; see `localtenant gateway set --help`")
			}
			client, err := c.client()
			if err != nil {
				return err
			}
			status, err := client.SetGateway(cmd.Context(), change)
			if err != nil {
				return err
			}
			return c.printGateway(status)
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&values.ceiling, "ceiling", 0, "most nodes that the gateway boots")
	flags.IntVar(&values.podsPerNode, "pods-per-node", 0, "unfinished Pods that count for one node")
	flags.DurationVar(&values.hold, "hold", 0, "how long nothing must have run before all nodes are dropped")
	flags.DurationVar(&values.bootTime, "boot-time", 0, "how long a machine takes to boot before its node starts")
	flags.BoolVar(&values.paused, "paused", false, "boot and drop nothing")
	return cmd
}

func (c *common) printGateway(status gateway.Status) error {
	_, err := fmt.Fprintln(c.Out, gatewayText(status, c.Now()))
	return err
}
