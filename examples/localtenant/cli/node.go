package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/socialweb-computer/tenant-executor/examples/localtenant/daemon"
	"github.com/socialweb-computer/tenant-executor/examples/localtenant/node"
)

func (c *common) node() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "node",
		Short: "Add and remove nodes, and let them fail",
		Long: `node works on single nodes beside the gateway. A node that was added by hand
counts for the gateway like one of its own, and is dropped with the others; pause
the gateway to keep it.`,
		Example: `  localtenant node add
  localtenant node list
  localtenant node kill demo-node-4c2f7a
  localtenant node remove demo-node-4c2f7a`,
		Args: cobra.NoArgs,
		RunE: help,
	}
	cmd.AddCommand(c.nodeAdd(), c.nodeRemove(), c.nodeList())
	for _, fault := range []struct{ verb, done, short string }{
		{"kill", "killed", "End all processes of a node by SIGKILL; its Node object stays and nobody is told"},
		{"cut", "cut off", "Pull a node's network cable"},
		{"mend", "connected again", "Plug a node's network cable in again"},
		{"restart-kubelet", "kubelet restarted", "Kill a node's kubelet and start it again"},
		{"restart-containerd", "containerd restarted", "Kill a node's containerd and start it again; its containers go on"},
	} {
		cmd.AddCommand(c.nodeFault(fault.verb, fault.done, fault.short))
	}
	return cmd
}

func (c *common) nodeAdd() *cobra.Command {
	var wait time.Duration
	cmd := &cobra.Command{
		Use:   "add [NAME]",
		Short: "Boot a node now and wait until it is ready",
		Example: `  localtenant node add
  localtenant node add --wait 0 worker-one`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if wait < 0 {
				return fmt.Errorf("--wait %s: must not be negative", wait)
			}
			client, err := c.client()
			if err != nil {
				return err
			}
			ctx := cmd.Context()
			if wait > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, wait)
				defer cancel()
			}
			began := c.Now()
			status, err := client.AddNode(ctx, daemon.AddNode{Name: strings.Join(args, ""), Wait: wait > 0})
			if errors.Is(err, context.DeadlineExceeded) {
				return fmt.Errorf("the node is not ready after %s; see `localtenant node list` and its logs", wait)
			}
			if err != nil {
				return err
			}
			fmt.Fprintf(c.Out, "%s %s after %s\n", status.Name, status.State, took(c.Now().Sub(began)))
			return nil
		},
	}
	cmd.Flags().DurationVar(&wait, "wait", 2*time.Minute, "how long to wait until the node is ready; 0 to return when its processes have started")
	return cmd
}

func (c *common) nodeRemove() *cobra.Command {
	var wait time.Duration
	cmd := &cobra.Command{
		Use:   "remove NAME",
		Short: "Give a node back: end it, free all of it, and delete its Node object",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := c.client()
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), wait)
			defer cancel()
			err = client.RemoveNode(ctx, args[0])
			if errors.Is(err, context.DeadlineExceeded) {
				return fmt.Errorf("the node %s is not removed after %s: its processes are gone, and its Node object goes when the apiserver answers", args[0], wait)
			}
			if err != nil {
				return err
			}
			fmt.Fprintln(c.Out, args[0], "removed")
			return nil
		},
	}
	cmd.Flags().DurationVar(&wait, "wait", time.Minute, "how long to wait")
	return cmd
}

func (c *common) nodeList() *cobra.Command {
	return shows(c, "list", "List the nodes", func(d *daemon.Details) []node.Status { return d.Nodes },
		func(nodes []node.Status) error {
			if len(nodes) == 0 {
				_, err := fmt.Fprintln(c.Out, "no nodes")
				return err
			}
			return c.printNodes(nodes)
		})
}

func (c *common) nodeFault(verb, done, short string) *cobra.Command {
	return &cobra.Command{
		Use:   verb + " NAME",
		Short: short,
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := c.client()
			if err != nil {
				return err
			}
			if err := client.ChangeNode(cmd.Context(), args[0], verb); err != nil {
				return err
			}
			fmt.Fprintf(c.Out, "%s: %s\n", args[0], done)
			return nil
		},
	}
}
