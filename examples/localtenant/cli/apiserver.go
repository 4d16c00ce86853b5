package cli

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/socialweb-computer/tenant-executor/examples/localtenant/controlplane"
	"github.com/socialweb-computer/tenant-executor/examples/localtenant/daemon"
)

func (c *common) apiserver() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "apiserver",
		Short: "Kill, start and move the apiserver",
		Long: `apiserver lets the apiserver fail. Nodes, controllers and what runs on the nodes
go on without it. Where it gets a new port, cluster-url and the kubeconfig are
rewritten, and the Cluster object on the kcp side follows. With --authority new the
cluster's CA is replaced for those who reach it from this host: ca.crt, client.crt
and client.key in the access folder are others, and the old ones are refused.`,
		Example: `  localtenant apiserver kill
  localtenant apiserver start
  localtenant apiserver restart --port new
  localtenant apiserver restart --authority new`,
		Args: cobra.NoArgs,
		RunE: help,
	}
	authority := "same"
	c.addServerVerbs(cmd, "the apiserver", func(ctx context.Context, client *daemon.Client, verb string, port daemon.ServerPort) (string, error) {
		if authority != "same" && authority != "new" {
			return "", fmt.Errorf("--authority %q: use same or new", authority)
		}
		port.NewAuthority = authority == "new"
		state, err := client.ChangeAPIServer(ctx, verb, port)
		return apiserverText(state), err
	})
	for _, verb := range cmd.Commands() {
		if verb.Flags().Lookup("port") != nil {
			verb.Flags().StringVar(&authority, "authority", "same", "the CA that drivers know the apiserver by: same or new")
		}
	}
	return cmd
}

// changeServer does a verb to a server and says how it is then.
type changeServer func(ctx context.Context, client *daemon.Client, verb string, port daemon.ServerPort) (string, error)

// addServerVerbs adds kill, start and restart of a server.
func (c *common) addServerVerbs(cmd *cobra.Command, server string, change changeServer) {
	cmd.AddCommand(
		c.serverVerb("kill", "End "+server+" by SIGKILL; it stays down", false, change),
		c.serverVerb("start", "Start "+server+" and wait until it is ready", true, change),
		c.serverVerb("restart", "End "+server+" by SIGKILL, start it, and wait until it is ready", true, change),
	)
}

func (c *common) serverVerb(verb, short string, takesPort bool, change changeServer) *cobra.Command {
	var port string
	cmd := &cobra.Command{
		Use:   verb,
		Short: short,
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			wanted, err := parsePort(port)
			if err != nil {
				return err
			}
			client, err := c.client()
			if err != nil {
				return err
			}
			began := c.Now()
			state, err := change(cmd.Context(), client, verb, wanted)
			if err != nil {
				return err
			}
			fmt.Fprintln(c.Out, state+", after", took(c.Now().Sub(began)))
			return nil
		},
	}
	if takesPort {
		cmd.Flags().StringVar(&port, "port", "same", "port on 127.0.0.1: same, new, or a number")
	}
	return cmd
}

// parsePort reads same, new or a number. Nothing stands for same.
func parsePort(text string) (daemon.ServerPort, error) {
	switch text {
	case "", "same":
		return daemon.ServerPort{Same: true}, nil
	case "new":
		return daemon.ServerPort{}, nil
	}
	number, err := strconv.Atoi(text)
	if err != nil || number < 1 || number > 65535 {
		return daemon.ServerPort{}, fmt.Errorf("--port %q: use same, new, or a number from 1 to 65535", text)
	}
	return daemon.ServerPort{Port: number}, nil
}

func apiserverText(state controlplane.APIServer) string {
	if !state.Running {
		return "apiserver is down"
	}
	return fmt.Sprintf("apiserver is ready at https://127.0.0.1:%d, pid %d", state.Port, state.PID)
}
