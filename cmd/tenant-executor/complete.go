package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/socialweb-computer/tenant-executor/executor/job"
	"github.com/socialweb-computer/tenant-executor/executor/joblog"
	"github.com/socialweb-computer/tenant-executor/stages"
)

// completeBudget is how long the cluster is asked for names when a person
// presses the tab key. A shell that hangs is worse than one without names.
const completeBudget = 2 * time.Second

// ask asks the cluster within the time.
func (h *hand) ask(c *cobra.Command, names func(ctx context.Context, d *stages.Driver) ([]string, error)) ([]string, cobra.ShellCompDirective) {
	h.voice = joblog.New(io.Discard)
	ctx, cancel := context.WithTimeout(c.Context(), completeBudget)
	defer cancel()
	d, err := h.clusterDriver(ctx)
	if err != nil {
		cobra.CompDebugln(err.Error(), false)
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	all, err := names(ctx, d)
	if err != nil {
		cobra.CompDebugln(err.Error(), false)
	}
	return all, cobra.ShellCompDirectiveNoFileComp
}

// completeJob offers ids of jobs; where somebody has begun the name of a Pod,
// the Pods.
func (h *hand) completeJob(c *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return h.ask(c, func(ctx context.Context, d *stages.Driver) ([]string, error) {
		jobs, err := d.JobNames(ctx)
		var all []string
		for _, j := range jobs {
			name := strconv.FormatInt(j.ID, 10)
			if begun != "" && strings.HasPrefix(j.Pod, begun) {
				name = j.Pod
			}
			if strings.HasPrefix(name, begun) {
				all = append(all, fmt.Sprintf("%s\t%s %s, %s", name, j.Project, j.Name, j.Phase))
			}
		}
		return all, err
	})
}

// completeContainer offers the containers of the job that is named, services by
// all of their names.
func (h *hand) completeContainer(c *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	h.takeJob(args)
	if h.target.Name == "" && h.jobFile == "" {
		return []string{string(job.Build), string(job.Helper)}, cobra.ShellCompDirectiveNoFileComp
	}
	return h.ask(c, func(ctx context.Context, d *stages.Driver) ([]string, error) {
		d, err := h.ofJob(ctx, d)
		if err != nil {
			return nil, err
		}
		list, err := d.ContainerNames(ctx)
		var all []string
		for _, one := range list {
			if strings.HasPrefix(one.Name, begun) {
				all = append(all, one.Name+"\t"+one.Image)
			}
		}
		return all, err
	})
}

// ofJob is the driver for the job of a file, where that names it.
func (h *hand) ofJob(ctx context.Context, d *stages.Driver) (*stages.Driver, error) {
	if h.jobFile == "" {
		return d, nil
	}
	return h.driver(ctx, h.voice, false)
}

// completeJobAndStage offers jobs, and the stages of the job that is named.
func (h *hand) completeJobAndStage(c *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 && h.jobFile == "" {
		return h.completeJob(c, args, begun)
	}
	if len(args) > 1 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	h.takeJob(args)
	return h.ask(c, func(ctx context.Context, d *stages.Driver) ([]string, error) {
		d, err := h.ofJob(ctx, d)
		if err != nil {
			return nil, err
		}
		list, err := d.Stages(ctx)
		var all []string
		offered := map[string]bool{}
		for _, s := range slices.Backward(list) { // of several runs the newest is meant
			if strings.HasPrefix(s.Title(), begun) && !offered[s.Title()] {
				offered[s.Title()] = true
				all = append(all, fmt.Sprintf("%s\t%s, %s", s.Title(), s.Container, stageState(s)))
			}
		}
		return all, err
	})
}

func stageState(s stages.StageView) string {
	if !s.Ended {
		return "running"
	}
	return fmt.Sprintf("ended with %d", s.ExitCode)
}
