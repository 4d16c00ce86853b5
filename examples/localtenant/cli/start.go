package cli

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/socialweb-computer/tenant-executor/examples/localtenant/daemon"
	"github.com/socialweb-computer/tenant-executor/examples/localtenant/network"
	"github.com/socialweb-computer/tenant-executor/examples/localtenant/proc"
	"github.com/socialweb-computer/tenant-executor/examples/localtenant/sweep"
	"github.com/socialweb-computer/tenant-executor/examples/localtenant/tenant"
)

// The users of the registry's listeners with a login. The guest may pull nothing.
const (
	registryUser  = "tenant"
	registryGuest = "guest"
)

// dyingTimeout is how long a daemon that does not answer may take to end.
const dyingTimeout = 10 * time.Second

// isUp tells whether the tenant runs. A daemon that was killed a moment ago
// holds its lock until the kernel has taken it apart.
func (c *common) isUp(ctx context.Context, t tenant.Tenant) (bool, error) {
	deadline := c.Now().Add(dyingTimeout)
	for {
		running, err := t.Running()
		if !running || err != nil {
			return false, err
		}
		status, err := daemon.NewClient(t).Status(ctx)
		switch {
		case err == nil && status.State == daemon.Running:
			return true, nil
		case c.Now().After(deadline):
			return true, errors.Join(fmt.Errorf("the daemon of tenant %q does not answer: `localtenant down%s` ends it", t.Name(), t.Flags()), err)
		}
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// startTenant starts the daemon and fills the registry and the cluster.
func (c *common) startTenant(ctx context.Context, t tenant.Tenant, flags upFlags, ready prepared) error {
	if err := c.record(t, flags, ready); err != nil {
		return err
	}
	if err := c.startDaemon(ctx, t); err != nil {
		return err
	}
	return c.fill(ctx, t, ready)
}

// clearRemains removes what a crash has left of an earlier tenant.
func (c *common) clearRemains(ctx context.Context, t tenant.Tenant) error {
	left, err := sweep.Find(t)
	if err != nil || left.Empty() {
		return err
	}
	fmt.Fprintf(c.Out, "tenant %q was not taken down; removing its remains\n", t.Name())
	return sweep.Remove(ctx, t, func(what string) { fmt.Fprintln(c.Out, "  "+what) })
}

// record makes the state folder and writes what the daemon starts from.
func (c *common) record(t tenant.Tenant, flags upFlags, ready prepared) error {
	used, err := network.Used()
	if err != nil {
		return err
	}
	plan, err := network.Choose(used)
	if err != nil {
		return err
	}
	if err := t.MakeDirs(); err != nil {
		return err
	}
	return daemon.Config{
		Name: t.Name(), Created: c.Now().UTC(), Network: plan.String(), Components: ready.components,
		Username: registryUser, Password: rand.Text(), Guest: registryGuest, MountToken: rand.Text(), Gateway: flags.settings,
	}.Write(t)
}

// startDaemon starts the daemon in a session of its own and follows its start.
func (c *common) startDaemon(ctx context.Context, t tenant.Tenant) error {
	listener, err := newSocket(t)
	if err != nil {
		return err
	}
	// The path belongs to the daemon from now on.
	listener.SetUnlinkOnClose(false)
	err = c.spawnDaemon(t, listener.File)
	// Closed here in any case: only the daemon answers, and when it dies a
	// connection that it has not taken ends.
	if err := errors.Join(err, listener.Close()); err != nil {
		return fmt.Errorf("start the daemon: %w", err)
	}
	err = daemon.NewClient(t).FollowStart(ctx, func(step daemon.Step) {
		fmt.Fprintf(c.Out, "  %-45s %s\n", step.Name, took(step.Took))
	})
	if words := proc.Tail(daemonLog(t), 1500); err != nil && words != "" {
		return fmt.Errorf("%w\nlast words of its daemon:\n%s", err, words)
	}
	return err
}

func daemonLog(t tenant.Tenant) string { return filepath.Join(t.LogDir(), "daemon.log") }

func (c *common) spawnDaemon(t tenant.Tenant, socket func() (*os.File, error)) error {
	file, err := socket()
	if err != nil {
		return err
	}
	defer file.Close()
	log, err := os.OpenFile(daemonLog(t), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(self, "serve", "--name", t.Name(), "--state-root", t.Root())
	cmd.Dir = "/"
	cmd.Env = append(c.Environ(), listenVariable+"=1")
	cmd.Stdout, cmd.Stderr = log, log
	cmd.ExtraFiles = []*os.File{file}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	return cmd.Process.Release()
}
