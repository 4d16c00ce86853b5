// Package node makes the nodes of a tenant: each is a real kubelet with a real
// containerd in namespaces of its own, as a rented machine would be.
package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/socialweb-computer/tenant-executor/examples/localtenant/guest"
	"github.com/socialweb-computer/tenant-executor/examples/localtenant/network"
	"github.com/socialweb-computer/tenant-executor/examples/localtenant/pki"
	"github.com/socialweb-computer/tenant-executor/examples/localtenant/proc"
	"github.com/socialweb-computer/tenant-executor/examples/localtenant/tenant"
)

const (
	containerdSocket = "/run/containerd/containerd.sock"
	// cniBin is where Debian puts the network plugins.
	cniBin = "/usr/lib/cni"
	// kubeletPort is where the apiserver reaches the kubelet.
	kubeletPort = 10250
	// guestTimeout bounds one command to the inside of a node.
	guestTimeout = 90 * time.Second
)

// ErrKilled says that a node's processes are gone.
var ErrKilled = errors.New("the node has been killed")

// Node is one node, seen from the host.
type Node struct {
	name     string
	slot     int
	tenant   tenant.Tenant
	plan     network.Plan
	issuer   Issuer
	registry Registry
	door     string
	paths    Paths
	log      *slog.Logger

	// withoutNetwork leaves out the Pod network, without which no node becomes
	// ready. unreachable is how long the kubelet refuses connections.
	withoutNetwork bool
	unreachable    time.Duration

	commands io.WriteCloser
	events   chan guest.Event
	// talk is held by whoever waits for the answer of the guest.
	talk sync.Mutex

	mu      sync.Mutex
	process *proc.Process
	started time.Time
	// booted says that the boot is over and the node can be taken down.
	booted  bool
	cut     bool
	leaving bool
	// wasReady says that the cluster has seen it as ready once.
	wasReady bool
}

// Issuer issues the certificates of nodes. *pki.Authority is one.
type Issuer interface {
	Issue(pki.Subject) (pki.Pair, error)
	Certificate() []byte
}

// Starter starts child processes. *proc.Spawner is one.
type Starter interface {
	Start(proc.Spec) (*proc.Process, error)
}

// Paths are the programs that a node runs.
type Paths struct {
	// Self is this program: it is also the first process of a node.
	Self string
	// Components is the components binary, which holds the kubelet.
	Components string
	// Containerd is Debian's containerd.
	Containerd string
}

// file is a file of the node's configuration.
func (n *Node) file(name string) string {
	return filepath.Join(n.tenant.NodeDir(n.name), "etc", name)
}

func (n *Node) logFile(name string) string {
	return filepath.Join(n.tenant.NodeLogDir(n.name), name+".log")
}

// write puts the node's disk together.
func (n *Node) write() error {
	dirs := []string{n.file("."), n.tenant.NodeLogDir(n.name)}
	for _, folder := range disk() {
		dirs = append(dirs, n.onDisk(folder))
	}
	for _, dir := range dirs {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("make the node's disk: %w", err)
		}
	}
	// As every /tmp: anybody may write, nobody may remove another's.
	if err := os.Chmod(n.onDisk("/tmp"), 0o777|os.ModeSticky); err != nil {
		return fmt.Errorf("make the node's disk: %w", err)
	}
	host := n.plan.Host().String()
	files := map[string]string{
		"hosts":       fmt.Sprintf("127.0.0.1 localhost\n%s %s\n", n.plan.Node(n.slot), n.name),
		"resolv.conf": "nameserver " + host + "\noptions timeout:1 attempts:1\n",
	}
	for name, text := range files {
		if err := os.WriteFile(n.file(name), []byte(text), 0o644); err != nil {
			return fmt.Errorf("write the node's %s: %w", name, err)
		}
	}
	if err := n.writeRuntime(); err != nil {
		return err
	}
	if err := n.writeKubelet(); err != nil {
		return err
	}
	text, err := json.MarshalIndent(n.guestConfig(), "", "  ")
	if err != nil {
		return fmt.Errorf("write the node's configuration: %w", err)
	}
	if err := os.WriteFile(n.file("guest.json"), text, 0o600); err != nil {
		return fmt.Errorf("write the node's configuration: %w", err)
	}
	return nil
}

// componentsInside is where a node finds the components binary, whatever folder it lies
// in on the machine.
const componentsInside = "/run/programs/components"

// guestConfig says what the first process in the node does.
func (n *Node) guestConfig() guest.Config {
	env := []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root"}
	return guest.Config{
		Name:    n.name,
		Cgroup:  n.tenant.NodeCgroup(n.name) + "/system",
		Network: network.GuestLines(n.plan, n.slot),
		Mounts:  n.mounts(),
		// The values that the kubelet wants to see there.
		Sysctls: map[string]string{
			"/proc/sys/vm/overcommit_memory": "1",
			"/proc/sys/kernel/panic":         "10",
			"/proc/sys/kernel/panic_on_oops": "1",
		},
		Scratch: n.file("."),
		Socket:  containerdSocket,
		Containerd: guest.Service{
			Path: n.paths.Containerd,
			Args: []string{"--config", n.file("containerd.toml")},
			Env:  env, Log: n.logFile("containerd"),
		},
		Kubelet: guest.Service{
			Path: componentsInside,
			Args: []string{
				"kubelet", "--config=" + n.file("kubelet.yaml"), "--kubeconfig=" + n.file("kubelet.kubeconfig"),
				"--hostname-override=" + n.name, "--node-ip=" + n.plan.Node(n.slot).String(),
			},
			Env: env, Log: n.logFile("kubelet"),
		},
	}
}

// disk lists the folders of the machine that a node has its own of.
func disk() []string { return []string{"/var/log", "/tmp", "/var/lib"} }

// onDisk is where a folder of the node lies on the machine.
func (n *Node) onDisk(folder string) string {
	return filepath.Join(n.tenant.NodeDir(n.name), "disk", folder)
}

// mounts gives the node its disk. Its configuration and its logs keep their
// places, which the disk may have covered.
func (n *Node) mounts() []guest.Mount {
	list := []guest.Mount{{Source: n.paths.Components, Target: componentsInside, File: true}}
	for _, folder := range disk() {
		list = append(list, guest.Mount{Source: n.onDisk(folder), Target: folder})
	}
	return append(list,
		guest.Mount{Source: n.file("."), Target: n.file(".")},
		guest.Mount{Source: n.tenant.NodeLogDir(n.name), Target: n.tenant.NodeLogDir(n.name)},
		guest.Mount{Source: n.file("hosts"), Target: "/etc/hosts", File: true, IfThere: true},
		guest.Mount{Source: n.file("resolv.conf"), Target: "/etc/resolv.conf", File: true, IfThere: true},
	)
}

// boot starts the node. When it fails the caller takes down what is there.
func (n *Node) boot(ctx context.Context, starter Starter) error {
	if err := n.write(); err != nil {
		return err
	}
	if err := n.launch(starter); err != nil {
		return err
	}
	if err := network.AddCable(ctx, n.tenant.Link(n.slot), n.tenant.Bridge(), n.plan, n.slot, n.first().PID()); err != nil {
		return err
	}
	if n.unreachable > 0 {
		if err := network.ShutPort(ctx, n.first().PID(), kubeletPort); err != nil {
			return err
		}
	}
	return n.do(ctx, guest.Begin)
}

// launch starts the first process in its namespaces, with pipes for commands
// and events.
func (n *Node) launch(starter Starter) error {
	commandsOut, commandsIn, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("start node %s: %w", n.name, err)
	}
	defer commandsOut.Close()
	eventsOut, eventsIn, err := os.Pipe()
	if err != nil {
		commandsIn.Close()
		return fmt.Errorf("start node %s: %w", n.name, err)
	}
	defer eventsIn.Close()
	process, err := starter.Start(proc.Spec{
		Name: "node " + n.name, Path: n.paths.Self, Args: []string{"guest", "--config", n.file("guest.json")},
		Env: os.Environ(), Log: n.logFile("guest"), Stdin: commandsOut, Stdout: eventsIn,
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWUTS | syscall.CLONE_NEWPID | syscall.CLONE_NEWNET | syscall.CLONE_NEWIPC,
	})
	if err != nil {
		commandsIn.Close()
		eventsOut.Close()
		return err
	}
	n.mu.Lock()
	n.process = process
	n.mu.Unlock()
	n.commands, n.events = commandsIn, make(chan guest.Event)
	go n.listen(process, eventsOut)
	return nil
}

// listen passes on the events of the guest until it is gone.
func (n *Node) listen(process *proc.Process, pipe io.ReadCloser) {
	defer pipe.Close()
	defer close(n.events)
	decoder := json.NewDecoder(pipe)
	for {
		var event guest.Event
		if err := decoder.Decode(&event); err != nil {
			return
		}
		select {
		case n.events <- event:
		case <-process.Done():
			return
		}
	}
}

// do gives the guest a command and waits until it is done.
func (n *Node) do(ctx context.Context, command string) error {
	n.talk.Lock()
	defer n.talk.Unlock()
	ctx, cancel := context.WithTimeout(ctx, guestTimeout)
	defer cancel()
	if err := json.NewEncoder(n.commands).Encode(guest.Command{Do: command}); err != nil {
		return fmt.Errorf("node %s: %w", n.name, ErrKilled)
	}
	select {
	case event, open := <-n.events:
		if !open {
			return fmt.Errorf("node %s: %w; its last words:\n%s", n.name, ErrKilled, proc.Tail(n.logFile("guest"), 1500))
		}
		if event.Error != "" {
			return fmt.Errorf("node %s: %s", n.name, event.Error)
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("node %s: %s: %w; see %s", n.name, command, ctx.Err(), n.logFile("guest"))
	}
}

// first is the node's first process; nil before the launch.
func (n *Node) first() *proc.Process {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.process
}

// kill ends all processes of the node at once.
func (n *Node) kill() error {
	process := n.first()
	if process == nil {
		return nil
	}
	err := process.Kill()
	n.commands.Close()
	return err
}

func (n *Node) alive() bool {
	process := n.first()
	return process != nil && process.Running()
}
