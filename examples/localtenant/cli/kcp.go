package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/socialweb-computer/tenant-executor/examples/localtenant/controlplane"
	"github.com/socialweb-computer/tenant-executor/examples/localtenant/daemon"
)

func (c *common) kcp() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "kcp",
		Short: "Kill, start and move the API that knows where the tenant is",
		Long: `kcp lets the kcp side fail: an API of its own, with a CA of its own, whose Cluster
object of the tenant's name holds the tenant's URL in its status. The tenant goes
on without it. When it starts again the object is brought up to date; where it
gets a new port, its kubeconfig is rewritten.

Anything else about it is done with kubectl and its kubeconfig.`,
		Example: `  localtenant kcp kill
  localtenant kcp start
  kubectl --kubeconfig /var/lib/localtenant/demo/kcp.kubeconfig get cluster demo`,
		Args: cobra.NoArgs,
		RunE: help,
	}
	c.addServerVerbs(cmd, "the kcp side", func(ctx context.Context, client *daemon.Client, verb string, port daemon.ServerPort) (string, error) {
		state, err := client.ChangeKCP(ctx, verb, port)
		return "kcp: " + kcpText(state), err
	})
	return cmd
}

func kcpText(state controlplane.KCP) string {
	if !state.Running {
		return "not running"
	}
	return state.URL + ", Cluster " + state.Cluster + ", " + state.Kubeconfig
}
