package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/socialweb-computer/tenant-executor/cmd/tenant-executor/show"
	"github.com/socialweb-computer/tenant-executor/executor/failure"
	"github.com/socialweb-computer/tenant-executor/stages"
)

// lookEvery is how often a command with --watch looks at the cluster.
const lookEvery = 2 * time.Second

// clearScreen begins a terminal's screen anew.
const clearScreen = "\x1b[H\x1b[2J"

func (a *app) psCommand() *cobra.Command {
	h := &hand{app: a}
	var watch bool
	c := &cobra.Command{
		Use:   "ps [JOB]",
		Short: "List jobs, placeholders and nodes on the cluster",
		Long: `ps lists the jobs whose Pods are on the cluster, with the stage that runs now and
what a job waits for, the placeholders that hold nodes for jobs to come, and the
nodes.

PHASE is one of:

  waiting    no node has taken the Pod yet; WAITS FOR says why
  starting   a node pulls images and starts containers
  running    the Pod can be used
  held       the job failed, and its Pod is kept for a look ([debug] hold)
  ending     the Pod is being deleted
  ended      the Pod's containers have ended

JOB is a job's id, the name of its Pod, or NAMESPACE/POD; without it all jobs are
listed.`,
		Example: `  tenant-executor ps --config driver.toml
  tenant-executor ps --config driver.toml --watch --output wide

  # ids of the jobs that wait for a node
  tenant-executor ps --config driver.toml --output json | jq '.jobs[] | select(.phase == "waiting") | .id'`,
		Args:              h.onlyJob,
		ValidArgsFunction: h.completeJob,
		RunE: func(c *cobra.Command, args []string) error {
			a.byPerson()
			h.takeJob(args)
			d, err := h.clusterDriver(c.Context())
			if err != nil {
				return err
			}
			if watch {
				return h.watchOverview(c.Context(), d)
			}
			o, err := d.Overview(c.Context())
			if err != nil {
				return err
			}
			return h.writeOverview(o)
		},
	}
	h.targetFlags(c)
	h.outputFlag(c, show.TableFormat, show.WideFormat, show.JSONFormat, show.YAMLFormat)
	c.Flags().BoolVarP(&watch, "watch", "w", false, "look again and again, until Ctrl-C")
	return c
}

// onlyJob accepts [JOB].
func (h *hand) onlyJob(c *cobra.Command, args []string) error {
	if len(args) > 1 {
		return &usageError{fmt.Errorf("%s takes one job at the most; it got %q", c.CommandPath(), args)}
	}
	if len(args) == 1 && !isJob(args[0]) {
		return &usageError{fmt.Errorf("%q is no job: give its id, its Pod's name (job-…) or NAMESPACE/POD", args[0])}
	}
	return nil
}

// watchOverview writes the overview each time that it has changed; on a terminal
// it shows it anew each time. A cluster that does not answer is waited for.
func (h *hand) watchOverview(ctx context.Context, d *stages.Driver) error {
	var last []byte
	screen := h.format.Table() && show.Terminal(h.stdout)
	for {
		o, err := d.Overview(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && failure.Of(err).Cause != failure.Unreachable:
			return err
		case err != nil:
			h.voice.Warn("%v", err)
		default:
			now, _ := json.Marshal(o) // it was made to be written
			if screen || !bytes.Equal(now, last) {
				if err := h.showAnew(o, screen, last != nil); err != nil {
					return err
				}
			}
			last = now
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(lookEvery):
		}
	}
}

// showAnew writes an overview after another one, in one piece.
func (h *hand) showAnew(o stages.Overview, screen, again bool) error {
	var text bytes.Buffer
	switch {
	case screen:
		text.WriteString(clearScreen)
	case again && h.format.Table():
		text.WriteString("\n")
	}
	if err := h.printOverview(&text, o); err != nil {
		return err
	}
	_, err := h.stdout.Write(text.Bytes())
	return err
}

func (h *hand) writeOverview(o stages.Overview) error { return h.showAnew(o, false, false) }

// printOverview writes the tables, as far as they have rows.
func (h *hand) printOverview(out *bytes.Buffer, o stages.Overview) error {
	if !h.format.Table() {
		return h.format.Write(out, o)
	}
	var tables []*show.Table
	now := stages.Clock{}.Now()
	if len(o.Jobs) > 0 {
		tables = append(tables, h.jobTable(o.Jobs, now))
	}
	if len(o.Placeholders) > 0 {
		tables = append(tables, h.placeholderTable(o.Placeholders, now))
	}
	if len(o.Nodes) > 0 {
		tables = append(tables, h.nodeTable(o.Nodes, o.Narrow, now))
	}
	if len(o.Jobs) == 0 {
		out.WriteString("No jobs are on the cluster.\n")
	}
	for i, t := range tables {
		if i > 0 || len(o.Jobs) == 0 {
			out.WriteString("\n")
		}
		if err := t.Write(out); err != nil {
			return err
		}
	}
	return nil
}
