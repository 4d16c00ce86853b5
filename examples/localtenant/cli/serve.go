package cli

import (
	"fmt"
	"log/slog"
	"net"
	"os"

	"github.com/spf13/cobra"

	"github.com/socialweb-computer/tenant-executor/examples/localtenant/daemon"
	"github.com/socialweb-computer/tenant-executor/examples/localtenant/guest"
	"github.com/socialweb-computer/tenant-executor/examples/localtenant/tenant"
)

// listenVariable tells the daemon that up hands it the open socket as file 3,
// by the convention of sd_listen_fds(3). So up can connect at once, and learns
// when the daemon dies.
const listenVariable = "LISTEN_FDS"

func (c *common) serve() *cobra.Command {
	return &cobra.Command{
		Use:   "serve",
		Short: "Be the daemon of a tenant, in the foreground (up starts it)",
		Long: `serve is the process that is the parent of a tenant's control plane and nodes. up
writes the tenant's record and starts it. By hand it starts the tenant of an
existing record in the foreground and logs to standard error; when it ends, so
do all processes of the tenant, and down removes the rest.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := requireRoot(); err != nil {
				return err
			}
			t, err := c.tenant()
			if err != nil {
				return err
			}
			listener, err := c.listen(t)
			if err != nil {
				return err
			}
			log := slog.New(slog.NewTextHandler(c.Err, nil))
			return daemon.Run(cmd.Context(), t, listener, log, c.Now)
		},
	}
}

func (c *common) listen(t tenant.Tenant) (net.Listener, error) {
	if c.Getenv(listenVariable) != "1" {
		return newSocket(t)
	}
	file := os.NewFile(3, "socket of the daemon")
	defer file.Close()
	listener, err := net.FileListener(file)
	if err != nil {
		return nil, fmt.Errorf("take over the daemon's socket: %w", err)
	}
	return listener, nil
}

// newSocket makes the daemon's socket. Only root may use it.
func newSocket(t tenant.Tenant) (*net.UnixListener, error) {
	// That of a daemon that is gone; a living one holds the tenant's lock.
	if err := os.Remove(t.Socket()); err != nil && !os.IsNotExist(err) {
		return nil, fmt.Errorf("make the daemon's socket: %w", err)
	}
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: t.Socket(), Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("make the daemon's socket: %w", err)
	}
	if err := os.Chmod(t.Socket(), 0o600); err != nil {
		listener.Close()
		return nil, fmt.Errorf("make the daemon's socket: %w", err)
	}
	return listener, nil
}

func (c *common) guest() *cobra.Command {
	var path string
	cmd := &cobra.Command{
		Use:   "guest",
		Short: "Be the first process of a node (the daemon starts it)",
		Long: `guest is the first process in a node's namespaces. The daemon starts it there; by
hand it refuses to run. It sets up the node's network and mounts, runs containerd
and the kubelet, reads commands from standard input and answers on standard
output.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			config, err := guest.Read(path)
			if err != nil {
				return err
			}
			return guest.Run(cmd.Context(), config, c.In, c.Out, c.Err)
		},
	}
	cmd.Flags().StringVar(&path, "config", "", "file with the node's configuration")
	if err := cmd.MarkFlagRequired("config"); err != nil {
		panic(err)
	}
	return cmd
}
