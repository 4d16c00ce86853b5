package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/socialweb-computer/tenant-executor/cmd/tenant-executor/show"
	"github.com/socialweb-computer/tenant-executor/executor/job"
	"github.com/socialweb-computer/tenant-executor/executor/joblog"
	"github.com/socialweb-computer/tenant-executor/stages"
	"github.com/socialweb-computer/tenant-executor/stages/state"
)

// hand is what the commands of people share: which jobs are meant, and how the
// output is written.
type hand struct {
	*app
	target stages.Target
	output string
	format show.Format
}

// Groups of the commands in the help.
const (
	stageGroup = "stages"
	handGroup  = "hand"
)

// The formats as --output has them.
const (
	tableFormat = string(show.TableFormat)
	jsonFormat  = string(show.JSONFormat)
)

// addHand adds the commands for people who look after the runner, and groups
// them in the help.
func (a *app) addHand(root *cobra.Command) {
	root.AddGroup(
		&cobra.Group{ID: stageGroup, Title: "Stages, which GitLab Runner calls:"},
		&cobra.Group{ID: handGroup, Title: "For people:"},
	)
	root.SetCompletionCommandGroupID(handGroup)
	root.AddCommand(a.psCommand(), a.logsCommand(), a.attachCommand(), a.shellCommand(), a.releaseCommand(),
		a.eventsCommand(), a.renderCommand(), a.reapCommand(), a.warmCommand())
	for _, c := range root.Commands() {
		switch name := c.Name(); {
		case isStage(name):
			c.GroupID = stageGroup
		case name == "version":
		default:
			c.GroupID = handGroup
		}
	}
}

// isStage reports whether a command is one that the runner calls.
func isStage(command string) bool {
	return slices.Contains([]string{"config", "prepare", "run", "cleanup"}, command)
}

// byPerson has the command speak to a person: on stderr, so that the output can
// be kept, and with colours on a terminal alone.
func (a *app) byPerson() {
	a.byHand = true
	a.voice = joblog.New(a.stderr)
	if !show.Coloured(a.stderr, a.environment) {
		a.voice = joblog.New(show.Plain{To: a.stderr})
	}
}

// targetFlags say where jobs are looked for.
func (h *hand) targetFlags(c *cobra.Command) {
	flags := c.Flags()
	flags.StringVarP(&h.target.Namespace, "namespace", "n", "", "`NAMESPACE` of the jobs' Pods (default kubernetes.namespace of the configuration)")
	flags.BoolVarP(&h.target.All, "all-namespaces", "A", false, "look into every namespace; the driver's role does not allow it by itself")
	flags.StringVar(&h.runner, "runner", "", "only jobs of the runner with this short `TOKEN`")
	_ = c.RegisterFlagCompletionFunc("namespace", cobra.NoFileCompletions) // fails for an unknown flag alone
	_ = c.RegisterFlagCompletionFunc("runner", cobra.NoFileCompletions)
}

// fileFlag has a job's file name the job.
func (h *hand) fileFlag(c *cobra.Command) {
	c.Flags().StringVar(&h.jobFile, "job", "", "in place of JOB: `FILE` with the job as GitLab sent it")
}

// containerFlag has the command be about one container of the job's Pod.
func (h *hand) containerFlag(c *cobra.Command, name *string, usual job.Container) {
	c.Flags().StringVarP(name, "container", "c", string(usual), "`NAME` of the container: build, helper, or a service's")
	_ = c.RegisterFlagCompletionFunc("container", h.completeContainer)
}

// outputFlag adds --output with these formats; the first is the default.
func (h *hand) outputFlag(c *cobra.Command, formats ...show.Format) {
	c.Flags().StringVarP(&h.output, "output", "o", string(formats[0]), "`FORMAT` of the output: "+show.Names(formats))
	names := make([]string, len(formats))
	for i, f := range formats {
		names[i] = string(f)
	}
	_ = c.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoFileComp))
	c.PreRunE = func(*cobra.Command, []string) error {
		var err error
		if h.format, err = show.ParseFormat(h.output, formats); err != nil {
			return &usageError{err}
		}
		return nil
	}
}

// table is an empty table for stdout.
func (a *app) table() *show.Table {
	return &show.Table{Coloured: show.Coloured(a.stdout, a.environment)}
}

// takeJob takes JOB off the arguments. Stages have names of letters, jobs
// numbers, and Pods begin with "job-"; so the two are told apart.
func (h *hand) takeJob(args []string) (rest []string) {
	if len(args) > 0 && isJob(args[0]) {
		h.target.Name = args[0]
		return args[1:]
	}
	return args
}

func isJob(text string) bool {
	_, err := strconv.ParseInt(text, 10, 64)
	return err == nil || strings.HasPrefix(text, "job-") || strings.Contains(text, "/")
}

// driverFor is the driver for the job that a person has named.
func (h *hand) driverFor(ctx context.Context) (*stages.Driver, error) {
	switch {
	case h.target.Name != "" && h.jobFile != "":
		return nil, &usageError{errors.New("both JOB and --job are given; use one of them")}
	case h.target.Name == "" && (h.jobFile != "" || h.environment.ResponseFile() != ""):
		return h.driver(ctx, h.voice, false)
	case h.target.Name == "":
		return nil, &usageError{errors.New("no job is named: give its id, its Pod's name or --job FILE. List the jobs with: tenant-executor ps")}
	}
	return h.clusterDriver(ctx)
}

// clusterDriver is a driver without a job of its own.
func (h *hand) clusterDriver(ctx context.Context) (*stages.Driver, error) {
	if h.target.All && h.target.Namespace != "" {
		return nil, &usageError{errors.New("both --namespace and --all-namespaces are given; use one of them")}
	}
	s, err := h.settings()
	if err != nil {
		return nil, err
	}
	h.target.Runner = h.runner
	folder, stateErr := state.Open(s.State.Dir)
	return stages.NewFor(ctx, stages.Parts{
		Settings: s, Find: h.finder(folder, s.Cluster, false).Find, State: folder, StateErr: stateErr,
		Variables: job.Environment{}, Log: h.voice, Clock: stages.Clock{},
		Host: func() stages.Host { return h.host(folder) },
	}, h.target)
}

// jobAndStage are the arguments [JOB] [STAGE].
func (h *hand) jobAndStage(c *cobra.Command, args []string) (stage string, err error) {
	rest := h.takeJob(args)
	if len(rest) > 1 {
		return "", &usageError{fmt.Errorf("%s takes a job and a stage at the most; it got %q", c.CommandPath(), args)}
	}
	return strings.Join(rest, ""), nil
}
