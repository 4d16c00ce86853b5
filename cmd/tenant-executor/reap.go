package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/socialweb-computer/tenant-executor/cmd/tenant-executor/show"
	"github.com/socialweb-computer/tenant-executor/executor/failure"
	"github.com/socialweb-computer/tenant-executor/executor/job"
	"github.com/socialweb-computer/tenant-executor/executor/settings"
	"github.com/socialweb-computer/tenant-executor/kube/reap"
	"github.com/socialweb-computer/tenant-executor/stages"
	"github.com/socialweb-computer/tenant-executor/stages/course"
	"github.com/socialweb-computer/tenant-executor/stages/metrics"
	"github.com/socialweb-computer/tenant-executor/stages/state"
)

func (a *app) reapCommand() *cobra.Command {
	h := &hand{app: a}
	var dryRun bool
	c := &cobra.Command{
		Use:   "reap --runner TOKEN",
		Short: "Remove what jobs of a runner have left on the cluster",
		Long: `reap finds Pods and Secrets of one runner's jobs that nobody needs any more, says
why, and deletes them. Whose they are is asked first, what a clock says last:

  cleanup undone   cleanup could not reach the cluster
  runner gone      the runner's process is dead; told on its own host alone
  attempt over     the runner's process has ended this attempt at the job
  newer attempt    a newer attempt of the same process at the same job has a Pod
  expired          the job's time-out has passed, with time to spare
  finished         the Pod's containers ended more than 10 minutes ago; a
                   placeholder has ended
  node gone        the Pod's node is lost, as run.node_lost has it; the Pod is
                   removed by force
  finalizer        the Pod was deleted and has ended, and somebody's finalizer
                   keeps it: it is only shown
  no Pod           a Secret without its Pod

A job whose runner lives is never touched, however late it is, nor is another
runner's. Every prepare does the same for a few Pods, and also for those of
runners whose process is dead, whatever their token was; so reap is for a look
and for a runner that runs no more jobs. Run it on the runner's host, as the
runner's user.`,
		Example: `  tenant-executor reap --config driver.toml --runner t3_abcdef --dry-run

  # whose Pods are there? The column RUNNER is the token
  kubectl get pods -A -L tenant-executor.socialweb.computer/runner`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			a.byPerson()
			if a.runner == "" {
				a.runner = a.environment.Variable(job.TokenVariable)
			}
			if a.runner == "" {
				return &usageError{fmt.Errorf("--runner is not set: name the runner's short token, as in the Pods' label tenant-executor.socialweb.computer/runner")}
			}
			return h.reap(c, dryRun)
		},
	}
	c.Flags().StringVar(&a.runner, "runner", "", "short `TOKEN` of the runner (default $CUSTOM_ENV_"+job.TokenVariable+")")
	c.Flags().BoolVar(&dryRun, "dry-run", false, "only show what would be deleted")
	h.outputFlag(c, show.TableFormat, show.JSONFormat, show.YAMLFormat)
	return c
}

func (h *hand) reap(c *cobra.Command, dryRun bool) error {
	s, err := h.settings()
	if err != nil {
		return err
	}
	folder, stateErr := state.Open(s.State.Dir)
	book, _ := h.look(s.State.Dir) // without one there is nothing to close
	found, err := stages.Reap(c.Context(), stages.ReapParts{
		Settings: s, Find: h.finder(folder, s.Cluster, true).Find, State: folder, StateErr: stateErr,
		Runner: h.runner, Host: h.host(folder), Clock: stages.Clock{}, DryRun: dryRun,
		Warn: func(text string) { h.voice.Warn("%s", text) },
		Closed: func(key, attempt, pod, why string) {
			_ = book.Close(key, attempt, pod, stages.Clock{}.Now(), why) // the statistics go without
		},
	})
	if err := h.recount(s, book); err != nil && !dryRun {
		h.voice.Warn("%v", err)
	}
	if err != nil && len(found) == 0 {
		return err // "nothing" would not be true
	}
	if werr := h.writeLeftovers(found, dryRun); werr != nil && err == nil {
		err = failure.Wrap(failure.Internal, werr, "writing what was found")
	}
	return err
}

// writeLeftovers writes a list, which is empty where nothing was found.
func (h *hand) writeLeftovers(found []stages.Leftover, dryRun bool) error {
	switch {
	case !h.format.Table():
		return h.format.Write(h.stdout, append([]stages.Leftover{}, found...))
	case len(found) == 0:
		_, err := fmt.Fprintf(h.stdout, "Nothing is left over of runner %s.\n", h.runner)
		return err
	}
	t := h.table()
	t.Head("KIND", "NAMESPACE", "NAME", "JOB", "REASON", "NODE", "AGE", "RESULT")
	now := stages.Clock{}.Now()
	for _, l := range found {
		result := show.Cell{Text: "deleted", Tone: show.Good}
		switch {
		case l.Reason == reap.Finalizer:
			result = show.Cell{Text: "stays: " + strings.Join(l.Finalizers, ", "), Tone: show.Bad}
		case dryRun:
			result = show.Text("would be deleted")
		case !l.Removed:
			result = show.Cell{Text: "not deleted: " + l.Error, Tone: show.Bad}
		}
		t.Add(show.Text(l.Kind), show.Text(l.Namespace), show.Text(l.Name), show.Text(l.Job), show.Text(string(l.Reason)),
			show.Text(l.Node), show.Text(show.Age(now.Sub(l.Made))), result)
	}
	return t.Write(h.stdout)
}

// recount has the metrics in a file say which attempts are over.
func (h *hand) recount(s settings.Settings, book *course.Book) error {
	if s.Metrics.Textfile == "" || book == nil {
		return nil
	}
	return metrics.WriteTextfile(s.Metrics.Textfile, book, stages.Clock{}.Now(), buildInfo())
}
