package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/socialweb-computer/tenant-executor/cmd/tenant-executor/show"
	"github.com/socialweb-computer/tenant-executor/executor/failure"
	"github.com/socialweb-computer/tenant-executor/executor/job"
	"github.com/socialweb-computer/tenant-executor/executor/joblog"
	"github.com/socialweb-computer/tenant-executor/kube/crash"
	"github.com/socialweb-computer/tenant-executor/kube/stream"
	"github.com/socialweb-computer/tenant-executor/stages"
)

func (a *app) shellCommand() *cobra.Command {
	h := &hand{app: a}
	var container string
	c := &cobra.Command{
		Use:   "shell [JOB] [-- COMMAND [ARG]...]",
		Short: "Open a shell in the Pod of a job",
		Long: `shell opens a shell in the Pod of a job, in the job's folder: while the job runs,
or after it has failed where its Pod is kept. Jobs have their Pods kept by the
variable TENANT_EXECUTOR_DEBUG_HOLD, for at most the time that [debug] hold allows;
the shell says until when, and again when that is near. "release" ends it before.

The container is that of the job's own script, with the job's image; "helper", where
git, artifacts and caches are done; or that of a service, by its name, an alias, or
the name made of its image. The job's variables are not set in the first two: they
are in the scripts of its stages alone. A service has its own, and its own folder; the
driver brings nothing there, so its image has to have sh, or the program of COMMAND.

With COMMAND that runs in place of a shell. It has a terminal where stdin and stdout
are one. The exit code is the command's. On a terminal "~." at the beginning of a
line hangs up, as in ssh.

JOB is a job's id, the name of its Pod, or NAMESPACE/POD; --job FILE names it
otherwise.`,
		Example: `  tenant-executor shell --config driver.toml 4711
  tenant-executor shell --config driver.toml 4711 --container helper
  tenant-executor shell --config driver.toml 4711 --container postgres -- psql -U postgres
  tenant-executor shell --config driver.toml 4711 -- df -h /builds`,
		Args: func(c *cobra.Command, args []string) error {
			_, err := h.shellArgs(c, args)
			return err
		},
		ValidArgsFunction: h.completeJob,
		RunE: func(c *cobra.Command, args []string) error {
			a.byPerson()
			command, err := h.shellArgs(c, args)
			if err != nil {
				return err
			}
			d, err := h.driverFor(c.Context())
			if err != nil {
				return err
			}
			return h.shell(c.Context(), d, stages.Terminal{Container: job.Container(container), Command: command})
		},
	}
	h.targetFlags(c)
	h.fileFlag(c)
	h.containerFlag(c, &container, job.Build)
	return c
}

// shellArgs are the arguments [JOB] [-- COMMAND...].
func (h *hand) shellArgs(c *cobra.Command, args []string) (command []string, err error) {
	before := args
	if dash := c.ArgsLenAtDash(); dash >= 0 {
		before, command = args[:dash], args[dash:]
		if len(command) == 0 {
			return nil, &usageError{errors.New(`no command is given behind "--"`)}
		}
	}
	if len(before) > 1 {
		return nil, &usageError{fmt.Errorf("shell takes one job at the most, and a command behind \"--\"; it got %q", before)}
	}
	if len(before) == 1 && !isJob(before[0]) {
		return nil, &usageError{fmt.Errorf("%q is no job: give its id, its Pod's name (job-…) or NAMESPACE/POD; a command stands behind \"--\"", before[0])}
	}
	h.takeJob(before)
	return command, nil
}

// shell runs a command with the streams of this process, on a terminal where
// they are one.
func (h *hand) shell(ctx context.Context, d *stages.Driver, t stages.Terminal) error {
	t.Stdin, t.Stdout, t.Stderr = h.stdin, h.stdout, h.stderr
	t.Say = func(line string) { h.voice.Info("%s", line) }
	if !show.Terminal(h.stdin) || !show.Terminal(h.stdout) {
		if t.Command == nil {
			t.Kind = "dumb"
		}
		return d.Shell(ctx, t)
	}
	// Whatever else ends the process has to give the terminal back as well.
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGHUP, syscall.SIGQUIT)
	defer stop()
	ctx, hangUp := context.WithCancel(ctx)
	defer hangUp()

	screen := h.stdin.(*os.File)
	before, err := term.MakeRaw(int(screen.Fd()))
	if err != nil {
		return failure.Wrap(failure.Internal, err, "setting up the terminal")
	}
	defer term.Restore(int(screen.Fd()), before) //nolint:errcheck // nothing is left to be done about it

	t.Kind = h.environment["TERM"]
	t.Stdin = &keyboard{from: h.stdin, hangUp: hangUp}
	t.Sizes = sizesOf(ctx, screen)
	// In raw mode a line does not begin at the left by itself.
	t.Say = func(line string) { _, _ = fmt.Fprintf(h.stderr, "\r\n%s\r\n", joblog.Harmless(line)) }
	return d.Shell(ctx, t)
}

// sizesOf tells the size of a terminal, now and each time that it changes.
func sizesOf(ctx context.Context, screen *os.File) <-chan stream.Size {
	sizes := make(chan stream.Size)
	changed := make(chan os.Signal, 1)
	signal.Notify(changed, syscall.SIGWINCH)
	crash.Go(ctx, func() {
		defer signal.Stop(changed)
		for {
			if width, height, err := term.GetSize(int(screen.Fd())); err == nil {
				select {
				case sizes <- stream.Size{Width: uint16(width), Height: uint16(height)}:
				case <-ctx.Done():
					return
				}
			}
			select {
			case <-changed:
			case <-ctx.Done():
				return
			}
		}
	})
	return sizes
}
