package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/socialweb-computer/tenant-executor/cmd/tenant-executor/show"
	"github.com/socialweb-computer/tenant-executor/executor/failure"
	"github.com/socialweb-computer/tenant-executor/stages"
)

func (a *app) eventsCommand() *cobra.Command {
	h := &hand{app: a}
	var watch bool
	c := &cobra.Command{
		Use:   "events [JOB]",
		Short: "Show what the cluster has noted of a job's Pod and its node",
		Long: `events shows the events of the job's Pod and of its node in the order of time: of
scheduling, pulls, starts, and what went wrong. The cluster keeps them for about
an hour. Events of the node from 10 minutes before the Pod was made are shown too,
so that its boot is among them.

JOB is a job's id, the name of its Pod, or NAMESPACE/POD; --job FILE names it
otherwise.`,
		Example: `  tenant-executor events --config driver.toml 4711
  tenant-executor events --config driver.toml --job job.json --watch`,
		Args:              h.onlyJob,
		ValidArgsFunction: h.completeJob,
		RunE: func(c *cobra.Command, args []string) error {
			a.byPerson()
			h.takeJob(args)
			d, err := h.driverFor(c.Context())
			if err != nil {
				return err
			}
			log, err := d.EventLog(c.Context())
			if err != nil {
				return err
			}
			return h.showEvents(c.Context(), log, watch)
		},
	}
	h.targetFlags(c)
	h.fileFlag(c)
	h.outputFlag(c, show.TableFormat, show.JSONFormat, show.YAMLFormat)
	c.Flags().BoolVarP(&watch, "watch", "w", false, "show what comes, until Ctrl-C")
	return c
}

// showEvents shows what there is, and what comes.
func (h *hand) showEvents(ctx context.Context, log *stages.EventLog, watch bool) error {
	for first := true; ; first = false {
		fresh, err := log.New(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && (first || failure.Of(err).Cause != failure.Unreachable):
			return err
		case err != nil:
			h.voice.Warn("%v", err)
		default:
			if err := h.writeEvents(fresh, first, watch); err != nil {
				return err
			}
		}
		if !watch {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(lookEvery):
		}
	}
}

// timeFormat is how a person reads when an event was.
const timeFormat = "15:04:05"

// eventWidths are those of the columns, so that events that come later stand
// below the first.
func eventWidths() []int { return []int{len(timeFormat), 40, 22} }

func (h *hand) writeEvents(all []stages.EventView, first, watch bool) error {
	switch {
	case !h.format.Table():
		if len(all) == 0 && !first {
			return nil
		}
		return h.format.Write(h.stdout, all)
	case len(all) == 0 && first:
		h.voice.Info("The cluster has no events of this job's Pod; it keeps them for about an hour.")
		return nil
	case len(all) == 0:
		return nil
	}
	t := h.table()
	if watch {
		t.Least = eventWidths()
	}
	if first {
		t.Head("TIME", "ABOUT", "REASON", "MESSAGE")
	}
	for _, e := range all {
		tone := show.Neutral
		if e.Warning {
			tone = show.Waiting
		}
		text := e.Message
		if e.Count > 1 {
			text = fmt.Sprintf("%s (%d times in %s)", text, e.Count, show.Age(e.At.Sub(e.First)))
		}
		t.Add(show.Text(e.At.Local().Format(timeFormat)), show.Text(about(e)), show.Cell{Text: e.Reason, Tone: tone}, show.Text(text))
	}
	return t.Write(h.stdout)
}

// about is what an event is about, with its container.
func about(e stages.EventView) string {
	if e.Container == "" {
		return e.About
	}
	return e.About + " " + e.Container
}
