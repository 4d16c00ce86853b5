package node

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/socialweb-computer/tenant-executor/examples/localtenant/cgroup"
	"github.com/socialweb-computer/tenant-executor/examples/localtenant/guest"
	"github.com/socialweb-computer/tenant-executor/examples/localtenant/network"
	"github.com/socialweb-computer/tenant-executor/examples/localtenant/tenant"
)

// Errors that verbs decide on.
var (
	ErrUnknown = errors.New("no such node")
	ErrName    = errors.New("not a usable node name")
	ErrFull    = errors.New("no slot is free for another node")
	ErrBusy    = errors.New("the node is busy")
)

var namePattern = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,40}[a-z0-9])?$`)

const (
	// cgroupPatience is how long the kernel may take to let go of a dead
	// node's control groups.
	cgroupPatience = 10 * time.Second
	// clearTimeout bounds the take-down of a node that did not boot.
	clearTimeout = 15 * time.Second
	// deletePause lies between two tries to delete a Node object.
	deletePause = time.Second
)

// Cluster is what the manager needs of the API.
type Cluster interface {
	// DeleteNode deletes the Node object; one that is not there is no error.
	DeleteNode(ctx context.Context, name string) error
	// NodeReady tells whether the cluster sees the node as ready.
	NodeReady(name string) bool
}

// Faults says what goes wrong with new nodes. *faults.Agenda is one.
type Faults interface {
	// TakeFailingBoot and TakeNeverReady tell whether the next boot fails, or
	// its node never becomes ready. A fault that is taken is over.
	TakeFailingBoot() bool
	TakeNeverReady() bool
	// Unreachable is how long the kubelet refuses connections after the node
	// has become ready.
	Unreachable() time.Duration
}

// Manager holds the nodes of a tenant.
type Manager struct {
	options Options

	mu    sync.Mutex
	nodes map[string]*Node
	// used are the names of all nodes ever. After a node is deleted its Pods
	// stay for a while, and would start again on a node of the same name.
	used     map[string]bool
	lastSlot int
}

// Options are what a manager needs.
type Options struct {
	Tenant   tenant.Tenant
	Plan     network.Plan
	Tree     cgroup.Tree
	Issuer   Issuer
	Starter  Starter
	Cluster  Cluster
	Paths    Paths
	Registry Registry
	// Door is the apiserver's address for nodes.
	Door   string
	Faults Faults
	Log    *slog.Logger
	// Changed is called when nodes have come, gone or changed.
	Changed func()
}

// NewManager makes a manager without nodes.
func NewManager(options Options) *Manager {
	return &Manager{options: options, nodes: map[string]*Node{}, used: map[string]bool{}}
}

// Boot starts a node and returns its name when its kubelet has been started.
// An empty name stands for a fresh one.
func (m *Manager) Boot(ctx context.Context, name string) (string, error) {
	n, err := m.reserve(name)
	if err != nil {
		return "", err
	}
	if err := m.takeFaults(n); err != nil {
		return "", err
	}
	m.options.Changed()
	began := time.Now()
	err = m.options.Tree.Create(m.options.Tenant.NodeCgroup(n.name) + "/system")
	if err == nil {
		err = n.boot(ctx, m.options.Starter)
	}
	n.setBooted(err != nil)
	if err != nil {
		rest, cancel := context.WithTimeout(context.WithoutCancel(ctx), clearTimeout)
		defer cancel()
		return "", errors.Join(fmt.Errorf("boot node %s: %w", n.name, err), m.clear(rest, n))
	}
	m.options.Log.Info("node started", "name", n.name, "took", time.Since(began).Round(time.Millisecond))
	go m.watch(n)
	if n.unreachable > 0 {
		go m.openLater(n)
	}
	m.options.Changed()
	return n.name, nil
}

// watch tells when a node dies by itself.
func (m *Manager) watch(n *Node) {
	process := n.first()
	<-process.Done()
	if !n.isLeaving() {
		m.options.Log.Warn("node has died", "name", n.name, "ending", process.Ending())
	}
	m.options.Changed()
}

// reserve takes a name and a slot.
func (m *Manager) reserve(name string) (*Node, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if name == "" {
		name = m.options.Tenant.Name() + "-node-" + strings.ToLower(rand.Text()[:6])
	}
	if !namePattern.MatchString(name) || name == "control" {
		return nil, fmt.Errorf("%w: %q: use 1 to 42 of a-z, 0-9 and -; \"control\" is taken", ErrName, name)
	}
	if m.used[name] {
		return nil, fmt.Errorf("%w: %q has been a node of this tenant already: a node that returns under its old name would start its old Pods again; leave the name out to get a fresh one", ErrName, name)
	}
	slot, err := m.freeSlot()
	if err != nil {
		return nil, err
	}
	o := m.options
	n := &Node{
		name: name, slot: slot, tenant: o.Tenant, plan: o.Plan, issuer: o.Issuer, registry: o.Registry,
		door: o.Door, paths: o.Paths, log: o.Log, started: time.Now(),
	}
	m.used[name], m.nodes[name], m.lastSlot = true, n, slot
	return n, nil
}

// freeSlot goes round, so that an address is not used again at once.
func (m *Manager) freeSlot() (int, error) {
	taken := map[int]bool{}
	for _, n := range m.nodes {
		taken[n.slot] = true
	}
	for step := range network.MaxSlots {
		slot := (m.lastSlot+step)%network.MaxSlots + 1
		if !taken[slot] {
			return slot, nil
		}
	}
	return 0, fmt.Errorf("%w: there are %d already", ErrFull, network.MaxSlots)
}

func (m *Manager) find(name string) (*Node, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, found := m.nodes[name]
	if !found {
		return nil, fmt.Errorf("%w: %q; see `localtenant node list`", ErrUnknown, name)
	}
	return n, nil
}

// Remove kills a node, frees everything of it on the machine, and deletes its
// Node object, as when a rented machine is given back. Its Pods are left to
// Kubernetes, as there. When the context ends before that is done, which
// happens while the apiserver does not answer, it goes on by itself.
func (m *Manager) Remove(ctx context.Context, name string) error {
	n, err := m.find(name)
	if err != nil {
		return err
	}
	if err := n.leave(); err != nil {
		return err
	}
	m.options.Changed()
	done := make(chan error, 1)
	go func() { done <- m.clear(context.WithoutCancel(ctx), n) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return fmt.Errorf("node %s is still being removed: %w", name, context.Cause(ctx))
	}
}

// RemoveAll removes all nodes at once, but those that still start or are on
// their way out already.
func (m *Manager) RemoveAll(ctx context.Context) error {
	var names []string
	for _, status := range m.List() {
		names = append(names, status.Name)
	}
	failures := make([]error, len(names))
	var all sync.WaitGroup
	for i, name := range names {
		all.Go(func() {
			if err := m.Remove(ctx, name); !errors.Is(err, ErrUnknown) && !errors.Is(err, ErrBusy) {
				failures[i] = err
			}
		})
	}
	all.Wait()
	return errors.Join(failures...)
}

// clear takes a node down. The machine is freed also when the API fails.
func (m *Manager) clear(ctx context.Context, n *Node) error {
	o := m.options
	failure := errors.Join(
		n.kill(),
		network.RemoveLink(ctx, o.Tenant.Link(n.slot)),
		o.Tree.Remove(o.Tenant.NodeCgroup(n.name), cgroupPatience),
		o.Tenant.RemoveNode(n.name),
		m.deleteObject(ctx, n.name),
	)
	m.mu.Lock()
	delete(m.nodes, n.name)
	m.mu.Unlock()
	o.Changed()
	if failure == nil {
		o.Log.Info("node removed", "name", n.name)
	}
	return failure
}

func (m *Manager) deleteObject(ctx context.Context, name string) error {
	for {
		err := m.options.Cluster.DeleteNode(ctx, name)
		if err == nil {
			return nil
		}
		m.options.Log.Warn("cannot delete the Node object, trying again", "name", name, "error", err)
		select {
		case <-ctx.Done():
			return fmt.Errorf("the Node object %s stays, since the apiserver does not answer: %w", name, err)
		case <-time.After(deletePause):
		}
	}
}

// Kill ends all processes of a node by SIGKILL. Its Node object stays, and
// nobody is told: so dies a rented machine that loses its power.
func (m *Manager) Kill(name string) error {
	n, err := m.find(name)
	if err != nil {
		return err
	}
	if !n.alive() {
		return fmt.Errorf("node %q: %w before", name, ErrKilled)
	}
	return n.kill()
}

// Cut pulls the node's network cable; Mend plugs it in again.
func (m *Manager) Cut(ctx context.Context, name string) error { return m.setCable(ctx, name, true) }

// Mend plugs the cable in again.
func (m *Manager) Mend(ctx context.Context, name string) error { return m.setCable(ctx, name, false) }

func (m *Manager) setCable(ctx context.Context, name string, cut bool) error {
	n, err := m.find(name)
	if err != nil {
		return err
	}
	if !n.alive() {
		return fmt.Errorf("node %q: %w, and its cable is gone with it", name, ErrKilled)
	}
	if err := network.SetLink(ctx, m.options.Tenant.Link(n.slot), !cut); err != nil {
		return err
	}
	n.mu.Lock()
	n.cut = cut
	n.mu.Unlock()
	m.options.Changed()
	return nil
}

// RestartKubelet kills the node's kubelet, which is started again at once.
func (m *Manager) RestartKubelet(ctx context.Context, name string) error {
	return m.restart(ctx, name, guest.RestartKubelet)
}

// RestartContainerd kills the node's containerd, which is started again at
// once. Its containers go on.
func (m *Manager) RestartContainerd(ctx context.Context, name string) error {
	return m.restart(ctx, name, guest.RestartContainerd)
}

func (m *Manager) restart(ctx context.Context, name, command string) error {
	n, err := m.find(name)
	if err != nil {
		return err
	}
	if !n.alive() {
		return fmt.Errorf("node %q: %w", name, ErrKilled)
	}
	return n.do(ctx, command)
}

// Count is the number of nodes that are there, dead ones included: nobody
// has noticed yet that they are dead. One that still starts does not count.
func (m *Manager) Count() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	count := 0
	for _, n := range m.nodes {
		n.mu.Lock()
		if n.booted {
			count++
		}
		n.mu.Unlock()
	}
	return count
}

// List gives the state of all nodes, oldest first.
func (m *Manager) List() []Status {
	m.mu.Lock()
	defer m.mu.Unlock()
	list := make([]Status, 0, len(m.nodes))
	for _, n := range m.nodes {
		list = append(list, n.status(m.options.Cluster.NodeReady(n.name)))
	}
	slices.SortFunc(list, func(a, b Status) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Name, b.Name))
	})
	return list
}
