package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/socialweb-computer/tenant-executor/examples/localtenant/sweep"
)

func (c *common) leftovers() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "leftovers",
		Short: "List every process, mount, link and file of a tenant that is there",
		Long: `leftovers lists all that a tenant has on this machine: processes, mounts, control
groups, network namespaces, network links and the state folder. After down there
is nothing. The exit code is 1 when there is something.`,
		Example: `  localtenant down && localtenant leftovers
  localtenant leftovers --output json`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			t, err := c.tenant()
			if err != nil {
				return err
			}
			if err := checkOutput(output); err != nil {
				return err
			}
			left, err := sweep.Find(t)
			if err != nil {
				return err
			}
			if output == "json" {
				err = c.printJSON(left)
			} else {
				c.printLeftovers(left)
			}
			if err == nil && !left.Empty() {
				return ExitError{Code: 1}
			}
			return err
		},
	}
	addOutput(cmd, &output)
	return cmd
}

func (c *common) printLeftovers(left sweep.Leftovers) {
	if left.Empty() {
		fmt.Fprintln(c.Out, "nothing")
		return
	}
	for _, process := range left.Processes {
		fmt.Fprintf(c.Out, "process    %d %s\n", process.PID, process.Command)
	}
	for _, kind := range []struct {
		what  string
		names []string
	}{
		{"mount", left.Mounts}, {"cgroup", left.Cgroups}, {"netns", left.Namespaces}, {"link", left.Links},
	} {
		for _, name := range kind.names {
			fmt.Fprintf(c.Out, "%-10s %s\n", kind.what, name)
		}
	}
	if left.Folder != "" {
		fmt.Fprintf(c.Out, "folder     %s\n", left.Folder)
	}
}
