package cli

import (
	"fmt"
	"os"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/socialweb-computer/tenant-executor/examples/localtenant/daemon"
	"github.com/socialweb-computer/tenant-executor/examples/localtenant/gateway"
	"github.com/socialweb-computer/tenant-executor/examples/localtenant/node"
)

func (c *common) status() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show a tenant: where it is, its nodes, its gateway",
		Long: `status shows everything about a tenant. As JSON its field names are kept from
version to version (README.md lists them). The exit code is 1 when the tenant
does not run.`,
		Example: `  localtenant status
  localtenant status --output json | jq -r .registry.plain`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := c.client()
			if err != nil {
				return err
			}
			if err := checkOutput(output); err != nil {
				return err
			}
			status, err := client.Status(cmd.Context())
			if err != nil {
				return err
			}
			if output == "json" {
				err = c.printJSON(status)
			} else {
				err = c.printStatus(status)
			}
			if err == nil && status.State != daemon.Running {
				return ExitError{Code: 1}
			}
			return err
		},
	}
	addOutput(cmd, &output)
	return cmd
}

func (c *common) printStatus(status daemon.Status) error {
	table := tabwriter.NewWriter(c.Out, 0, 0, 2, ' ', 0)
	row := func(what, format string, values ...any) { fmt.Fprintf(table, what+"\t"+format+"\n", values...) }
	row("tenant", "%s, %s", status.Name, status.State)
	if status.State == daemon.Crashed {
		row("", "its daemon is gone; `localtenant down` or `localtenant up` clear it away")
	}
	if status.Details != nil {
		row("cluster", "%s", status.URL)
		row("access", "%s", status.AccessDir)
		row("kubeconfig", "%s", status.Kubeconfig)
		row("logs", "%s", status.LogDir)
		row("host address", "%s (%s)", status.BridgeAddress, status.Bridge)
		row("registry", "%s", registryText(status.Registry))
		row("", "%s, basic authentication; %s, tokens", status.Registry.Auth, status.Registry.Token)
		row("", "user %s, password %s; user %s, same password, may pull nothing",
			status.Registry.Username, status.Registry.Password, status.Registry.Guest)
		for _, component := range status.Components {
			row(component.Name, "%s", runningText(component.Running, component.PID))
		}
		row("kcp kubeconfig", "%s", status.KCP.Kubeconfig)
		row("mount", "%s", status.Mount.URL)
		row("gateway", "%s", gatewayText(status.Gateway, c.Now()))
		row("faults", "%s", faultsText(status.Faults))
		row("nodes", "%d", len(status.Nodes))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if status.Details == nil {
		return nil
	}
	return c.printNodes(status.Nodes)
}

func runningText(running bool, pid int) string {
	if !running {
		return "not running"
	}
	return fmt.Sprintf("running, pid %d", pid)
}

func gatewayText(g gateway.Status, now time.Time) string {
	text := fmt.Sprintf("%s: unfinished Pods %d, nodes wanted %d, %d there, %d booting (ceiling %d, pods-per-node %d, hold %s, boot time %s)",
		g.State, g.UnfinishedPods, g.Wanted, g.Nodes, g.Booting, g.Ceiling, g.PodsPerNode, g.Hold.Duration, g.BootTime.Duration)
	if g.IdleSince != nil {
		text += fmt.Sprintf(", idle for %s", now.Sub(*g.IdleSince).Round(time.Second))
	}
	if g.LastError != "" {
		text += "\n\tlast boot failed: " + g.LastError
	}
	return text
}

func (c *common) printNodes(nodes []node.Status) error {
	if len(nodes) == 0 {
		return nil
	}
	table := tabwriter.NewWriter(c.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "NAME\tSTATE\tADDRESS\tPID\tAGE")
	for _, n := range nodes {
		state := string(n.State)
		if n.Cut {
			state += ", cut off"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%d\t%s\n", n.Name, state, n.IP, n.PID, c.Now().Sub(n.Since).Round(time.Second))
	}
	return table.Flush()
}

func (c *common) kubeconfig() *cobra.Command {
	var content bool
	cmd := &cobra.Command{
		Use:   "kubeconfig",
		Short: "Print the path of the administrator's kubeconfig, or its content",
		Example: `  export KUBECONFIG=$(localtenant kubeconfig)
  localtenant kubeconfig --content > elsewhere`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			t, err := c.tenant()
			if err != nil {
				return err
			}
			text, err := os.ReadFile(t.AdminKubeconfig())
			if os.IsNotExist(err) {
				return daemon.NewClient(t).NotRunning()
			}
			if err != nil {
				return fmt.Errorf("read the kubeconfig: %w", err)
			}
			if !content {
				text = []byte(t.AdminKubeconfig() + "\n")
			}
			_, err = c.Out.Write(text)
			return err
		},
	}
	cmd.Flags().BoolVar(&content, "content", false, "print what is in the file")
	return cmd
}
