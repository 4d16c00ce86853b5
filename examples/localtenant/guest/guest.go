package guest

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"time"

	"golang.org/x/sys/unix"

	"github.com/socialweb-computer/tenant-executor/examples/localtenant/cgroup"
	"github.com/socialweb-computer/tenant-executor/examples/localtenant/network"
	"github.com/socialweb-computer/tenant-executor/examples/localtenant/proc"
)

// containerdTimeout bounds the start of containerd.
const containerdTimeout = time.Minute

// Run is the life of a node. It reads commands and writes events until the
// commands end, which they do when the host's side is gone. When it returns
// and the process ends, the kernel kills all that runs in the node.
func Run(ctx context.Context, config Config, commands io.Reader, events, log io.Writer) error {
	if os.Getpid() != 1 {
		return errors.New("guest: must be the first process of a PID namespace: it is started by the daemon, use `localtenant node add`")
	}
	lines := bufio.NewScanner(commands)
	answer := json.NewEncoder(events)
	node := &guest{config: config, supervisor: newSupervisor(log)}
	for lines.Scan() {
		var command Command
		if err := json.Unmarshal(lines.Bytes(), &command); err != nil {
			return fmt.Errorf("guest: read command: %w", err)
		}
		event := Event{Done: command.Do}
		if err := node.do(ctx, command); err != nil {
			event.Error = err.Error()
		}
		if err := answer.Encode(event); err != nil {
			return fmt.Errorf("guest: write event: %w", err)
		}
	}
	return lines.Err()
}

type guest struct {
	config     Config
	supervisor *supervisor
	containerd *program
	kubelet    *program
}

func (g *guest) do(ctx context.Context, command Command) error {
	switch {
	case command.Do == Begin && g.kubelet == nil:
		return g.begin(ctx)
	case command.Do == RestartKubelet && g.kubelet != nil:
		return g.supervisor.restart(g.kubelet)
	case command.Do == RestartContainerd && g.kubelet != nil:
		return g.supervisor.restart(g.containerd)
	}
	return fmt.Errorf("guest: cannot do %q now", command.Do)
}

func (g *guest) begin(ctx context.Context) error {
	if err := g.settle(ctx); err != nil {
		return err
	}
	// From here on every end of a child is the reaper's.
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, unix.SIGCHLD)
	go g.supervisor.reap(ended)
	containerd, err := g.supervisor.keep("containerd", g.config.Containerd)
	if err != nil {
		return err
	}
	g.containerd = containerd
	if err := g.awaitContainerd(ctx); err != nil {
		return err
	}
	g.kubelet, err = g.supervisor.keep("kubelet", g.config.Kubelet)
	return err
}

// settle makes the namespaces into a node.
func (g *guest) settle(ctx context.Context) error {
	// Before the mounts change: the control groups are the host's.
	mounted, err := proc.Mounts()
	if err != nil {
		return err
	}
	tree, err := cgroup.Find(mounted)
	if err != nil {
		return err
	}
	if err := tree.Join(g.config.Cgroup); err != nil {
		return err
	}
	if err := mounts(g.config); err != nil {
		return err
	}
	if err := unix.Sethostname([]byte(g.config.Name)); err != nil {
		return fmt.Errorf("set the node's name: %w", err)
	}
	// In the node's own network namespace; the host's setting stays.
	if err := os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0); err != nil {
		return fmt.Errorf("let the node pass on packets: %w", err)
	}
	return network.Batch(ctx, g.config.Network)
}

func (g *guest) awaitContainerd(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, containerdTimeout)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	var dialer net.Dialer
	for {
		conn, err := dialer.DialContext(ctx, "unix", g.config.Socket)
		if err == nil {
			return conn.Close()
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("containerd does not answer (%w); its last words:\n%s", err, proc.Tail(g.config.Containerd.Log, 1500))
		case <-tick.C:
		}
	}
}
