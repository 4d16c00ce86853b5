package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/socialweb-computer/tenant-executor/examples/localtenant/cgroup"
	"github.com/socialweb-computer/tenant-executor/examples/localtenant/cluster"
	"github.com/socialweb-computer/tenant-executor/examples/localtenant/controlplane"
	"github.com/socialweb-computer/tenant-executor/examples/localtenant/faults"
	"github.com/socialweb-computer/tenant-executor/examples/localtenant/gateway"
	"github.com/socialweb-computer/tenant-executor/examples/localtenant/images"
	"github.com/socialweb-computer/tenant-executor/examples/localtenant/mount"
	"github.com/socialweb-computer/tenant-executor/examples/localtenant/network"
	"github.com/socialweb-computer/tenant-executor/examples/localtenant/node"
	"github.com/socialweb-computer/tenant-executor/examples/localtenant/proc"
	"github.com/socialweb-computer/tenant-executor/examples/localtenant/registry"
	"github.com/socialweb-computer/tenant-executor/examples/localtenant/resolver"
	"github.com/socialweb-computer/tenant-executor/examples/localtenant/tenant"
)

// Daemon is a running tenant.
type Daemon struct {
	tenant   tenant.Tenant
	config   Config
	plan     network.Plan
	log      *slog.Logger
	now      func() time.Time
	progress *progress
	change   *signal

	// mu guards what the start fills in while the socket answers already.
	mu       sync.Mutex
	spawner  *proc.Spawner
	registry *registry.Server
	plane    *controlplane.Plane
	watch    *cluster.Watch
	nodes    *node.Manager
	gateway  *gateway.Gateway
	mount    *mount.Mount

	// faults is what goes wrong on demand.
	faults faults.Agenda
}

// Run is the life of a tenant, from its start until the context is over. It
// answers on the listener from the beginning. When it returns and the process
// ends, so does everything that it started; network links, control groups and
// files stay for `down`.
func Run(ctx context.Context, t tenant.Tenant, listener net.Listener, log *slog.Logger, now func() time.Time) error {
	unlock, err := t.LockDaemon()
	if err != nil {
		return err
	}
	defer unlock()
	config, err := ReadConfig(t)
	if err != nil {
		return err
	}
	plan, err := network.NewPlan(config.Network)
	if err != nil {
		return err
	}
	d := &Daemon{
		tenant: t, config: config, plan: plan, log: log, now: now,
		progress: newProgress(now), change: newSignal(), spawner: proc.NewSpawner(),
	}
	defer d.spawner.Close()

	server := &http.Server{Handler: d.routes(), ReadHeaderTimeout: 10 * time.Second}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	defer server.Close()

	var parts sync.WaitGroup
	defer parts.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	err = d.start(ctx)
	d.progress.end(err)
	if err != nil {
		return fmt.Errorf("start tenant %q: %w", t.Name(), err)
	}
	parts.Go(func() { d.gateway.Run(ctx) })
	log.Info("tenant is up", "name", t.Name(), "url", d.plane.URL())
	select {
	case <-ctx.Done():
		return nil
	case err := <-served:
		return fmt.Errorf("answer verbs at %s: %w", t.Socket(), err)
	}
}

// start starts everything but nodes, in order of need.
func (d *Daemon) start(ctx context.Context) error {
	tree, err := d.prepare(ctx)
	if err != nil {
		return err
	}
	if err := d.startRegistry(ctx); err != nil {
		return err
	}
	d.startResolver(ctx)
	d.progress.done("network, registry")
	keys, err := controlplane.NewKeys(d.tenant, d.plan.Host(), d.plan.Services(), d.now)
	if err != nil {
		return err
	}
	plane := controlplane.New(d.tenant, d.plan, keys, d.config.Components, d.spawner, d.log)
	d.mu.Lock()
	d.plane = plane
	d.mu.Unlock()
	if err := plane.Start(ctx, d.progress.done); err != nil {
		return err
	}
	if err := d.startMount(ctx, keys); err != nil {
		return err
	}
	if err := d.startGateway(ctx, tree, keys); err != nil {
		return err
	}
	d.progress.done("mount, gateway")
	return nil
}

// prepare gets the machine ready: control groups and the bridge.
func (d *Daemon) prepare(ctx context.Context) (cgroup.Tree, error) {
	mounts, err := proc.Mounts()
	if err != nil {
		return nil, err
	}
	tree, err := cgroup.Find(mounts)
	if err != nil {
		return nil, err
	}
	if err := tree.Create(d.tenant.ControlCgroup()); err != nil {
		return nil, err
	}
	// All children follow, which is how they are found again when this
	// process is gone.
	if err := tree.Join(d.tenant.ControlCgroup()); err != nil {
		return nil, err
	}
	return tree, network.AddBridge(ctx, d.tenant.Bridge(), d.plan)
}

func (d *Daemon) startRegistry(ctx context.Context) error {
	requests, err := os.OpenFile(filepath.Join(d.tenant.LogDir(), "registry.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("open the registry's log: %w", err)
	}
	context.AfterFunc(ctx, func() { requests.Close() })
	server, err := registry.Start(ctx, registry.Options{
		Address: d.plan.Host().String(), Store: d.tenant.RegistryDir(),
		Username: d.config.Username, Password: d.config.Password, Guest: d.config.Guest, Log: requests,
	})
	if err != nil {
		return fmt.Errorf("start the registry: %w", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.registry = server
	return nil
}

// startResolver has the names of the machine known to nodes and Pods. Where
// another program has the port, at all addresses of the machine, nodes ask that one.
func (d *Daemon) startResolver(ctx context.Context) {
	host := d.plan.Host()
	_, err := resolver.Start(ctx, net.JoinHostPort(host.String(), "53"), map[string]netip.Addr{resolver.Host: host}, d.log)
	if err != nil {
		d.log.Warn("names are not answered to nodes", "error", err)
	}
}

// startGateway connects the API, the nodes and the gateway.
func (d *Daemon) startGateway(ctx context.Context, tree cgroup.Tree, keys *controlplane.Keys) error {
	watch, err := cluster.NewWatch(d.adminConfig(keys), d.changed)
	if err != nil {
		return err
	}
	watch.OnBind(func(name string) { d.bound(ctx, name) })
	paths, err := d.programs()
	if err != nil {
		return err
	}
	nodes := node.NewManager(node.Options{
		Tenant: d.tenant, Plan: d.plan, Tree: tree, Issuer: keys.Authority, Starter: d.spawner, Cluster: watch, Paths: paths,
		Registry: node.Registry{
			Addresses:  []string{d.registry.PlainAddr(), d.registry.AuthAddr(), d.registry.TokenAddr()},
			PauseImage: d.registry.PlainAddr() + "/localtenant/pause:" + images.Tag,
		},
		Door: d.plane.Door(), Faults: &d.faults, Log: d.log, Changed: d.changed,
	})
	gate := gateway.New(d.config.Gateway, nodes, watch, d.log, d.now)
	d.mu.Lock()
	d.watch, d.nodes, d.gateway = watch, nodes, gate
	d.mu.Unlock()
	return watch.Run(ctx)
}

// adminConfig goes through the door on the bridge, which follows the apiserver
// when its port changes.
func (d *Daemon) adminConfig(keys *controlplane.Keys) *rest.Config {
	return &rest.Config{
		Host: "https://" + d.plane.Door(),
		TLSClientConfig: rest.TLSClientConfig{
			CAData: keys.Authority.Certificate(), CertData: keys.Admin.Certificate, KeyData: keys.Admin.Key,
		},
		UserAgent: "localtenant",
		QPS:       -1,
	}
}

// programs finds what nodes run. They run this very program, by the link that
// the kernel keeps: a file of its name may be another version by now, or gone.
func (d *Daemon) programs() (node.Paths, error) {
	containerd, err := exec.LookPath("containerd")
	if err != nil {
		return node.Paths{}, fmt.Errorf("find containerd: %w", err)
	}
	return node.Paths{Self: "/proc/self/exe", Components: d.config.Components, Containerd: containerd}, nil
}

// startMount opens the way to the apiserver that users have: by token alone.
func (d *Daemon) startMount(ctx context.Context, keys *controlplane.Keys) error {
	serving, err := keys.KCP.IssueServer("mount")
	if err != nil {
		return err
	}
	port, err := network.FreePort()
	if err != nil {
		return err
	}
	served, err := mount.Start(ctx, mount.Options{
		Address: fmt.Sprintf("127.0.0.1:%d", port), Cluster: d.tenant.Name(), Token: d.config.MountToken, Serving: serving,
		Target: d.plane.URL, Authority: keys.Authority.Certificate(), Client: keys.Admin, Log: d.log,
	})
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mount = served
	return nil
}

// bound is called when a Pod has been bound to a node, and drops that node if
// it is asked to.
func (d *Daemon) bound(ctx context.Context, name string) {
	if !d.faults.TakeDropOnBind() {
		return
	}
	d.log.Info("fault: a Pod has been bound, dropping its node", "node", name)
	go func() {
		if err := d.nodes.Remove(ctx, name); err != nil {
			d.log.Error("fault: drop the node", "node", name, "error", err)
		}
	}()
}

// changed is called at every change of Pods and nodes.
func (d *Daemon) changed() {
	d.change.changed()
	d.mu.Lock()
	gate := d.gateway
	d.mu.Unlock()
	if gate != nil {
		gate.Wake()
	}
}

// errStarting says that a verb came too early.
var errStarting = errors.New("the tenant is still starting; try again in a moment")
