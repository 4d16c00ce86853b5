package main

import (
	"encoding/json"
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/socialweb-computer/tenant-executor/executor/failure"
	"github.com/socialweb-computer/tenant-executor/executor/joblog"
	"github.com/socialweb-computer/tenant-executor/stages"
	"github.com/socialweb-computer/tenant-executor/stages/state"
)

// runnerVariable is the runner's short token, which GitLab Runner hands to its
// drivers.
const runnerVariable = "CI_RUNNER_SHORT_TOKEN"

// Formats of the output of reap.
const (
	formatTable = "table"
	formatJSON  = "json"
)

func (a *app) reapCommand() *cobra.Command {
	var dryRun bool
	var output string
	c := &cobra.Command{
		Use:   "reap --runner TOKEN",
		Short: "Remove what jobs of a runner have left on the cluster",
		Long: `reap finds Pods and Secrets of one runner's jobs that nobody needs any more, says
why, and deletes them:

  cleanup undone   cleanup could not reach the cluster
  runner gone      the runner's process is dead; told on its own host alone
  attempt over     the runner has ended this attempt at the job
  newer attempt    a newer attempt at the same job has a Pod
  expired          the job's time-out has passed, with time to spare
  finished         the Pod's containers ended more than 10 minutes ago
  node gone        the Pod's node is lost; the Pod is removed by force
  no Pod           a Secret without its Pod

It never touches another runner's, nor a job whose runner lives. Every prepare
does the same for a few Pods, so reap is for a look and for a runner that runs
no more jobs. Run it on the runner's host, as the runner's user.`,
		Example: `  tenant-executor reap --config driver.toml --runner t3_abcdef --dry-run

  # whose Pods are there? The column RUNNER is the token
  kubectl get pods -A -L tenant-executor.socialweb.computer/runner`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if output != formatTable && output != formatJSON {
				return &usageError{fmt.Errorf("--output is %q: use %s or %s", output, formatTable, formatJSON)}
			}
			if a.runner == "" {
				a.runner = a.environment.Variable(runnerVariable)
			}
			if a.runner == "" {
				return &usageError{fmt.Errorf("--runner is not set: name the runner's short token, as in the Pods' label tenant-executor.socialweb.computer/runner")}
			}
			return a.reap(c, output, dryRun)
		},
	}
	c.Flags().StringVar(&a.runner, "runner", "", "short `TOKEN` of the runner (default $CUSTOM_ENV_"+runnerVariable+")")
	c.Flags().BoolVar(&dryRun, "dry-run", false, "only show what would be deleted")
	c.Flags().StringVar(&output, "output", formatTable, "`FORMAT` of the output: "+formatTable+" or "+formatJSON)
	return c
}

func (a *app) reap(c *cobra.Command, output string, dryRun bool) error {
	s, err := a.settings()
	if err != nil {
		return err
	}
	folder, stateErr := state.Open(s.State.Dir)
	found, err := stages.Reap(c.Context(), stages.ReapParts{
		Settings: s, Find: a.finder(folder, true).Find, State: folder, StateErr: stateErr,
		Runner: a.runner, Host: a.host(folder), Clock: stages.Clock{}, DryRun: dryRun,
		Warn: func(text string) { a.voice.Warn("%s", text) },
	})
	write := a.writeTable
	if output == formatJSON {
		write = a.writeJSON
	}
	if err != nil && len(found) == 0 {
		return err // "nothing" would not be true
	}
	if werr := write(found, dryRun); werr != nil && err == nil {
		err = failure.Wrap(failure.Internal, werr, "writing what was found")
	}
	return err
}

// writeJSON writes a list, which is empty where nothing was found.
func (a *app) writeJSON(found []stages.Leftover, _ bool) error {
	encoder := json.NewEncoder(a.stdout)
	encoder.SetIndent("", "  ")
	return encoder.Encode(append([]stages.Leftover{}, found...))
}

func (a *app) writeTable(found []stages.Leftover, dryRun bool) error {
	if len(found) == 0 {
		_, err := fmt.Fprintln(a.stdout, "Nothing is left over.")
		return err
	}
	table := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "KIND\tNAMESPACE\tNAME\tJOB\tREASON\tNODE\tAGE\tRESULT")
	now := stages.Clock{}.Now()
	for _, l := range found {
		result := "deleted"
		switch {
		case dryRun:
			result = "would be deleted"
		case !l.Removed:
			result = "not deleted: " + l.Error
		}
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n",
			l.Kind, l.Namespace, l.Name, dash(l.Job), l.Reason, dash(l.Node), joblog.Duration(now.Sub(l.Made)), result)
	}
	return table.Flush()
}

func dash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
