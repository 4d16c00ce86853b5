// Package controlplane runs etcd, kube-apiserver, kube-controller-manager and
// kube-scheduler of a tenant, and the kcp side, as processes of the host.
package controlplane

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/socialweb-computer/tenant-executor/examples/localtenant/kcp"
	"github.com/socialweb-computer/tenant-executor/examples/localtenant/network"
	"github.com/socialweb-computer/tenant-executor/examples/localtenant/pki"
	"github.com/socialweb-computer/tenant-executor/examples/localtenant/proc"
	"github.com/socialweb-computer/tenant-executor/examples/localtenant/tenant"
)

// startTimeout bounds the start of one component. Seconds are usual; a machine
// that compiles meanwhile needs more.
const startTimeout = 2 * time.Minute

// Errors of the verbs that change the apiserver and the kcp side.
var (
	ErrRunning = errors.New("is running")
	ErrStopped = errors.New("is not running")
)

// Starter starts child processes. *proc.Spawner is one.
type Starter interface {
	Start(proc.Spec) (*proc.Process, error)
}

// Plane is the control plane of one tenant.
type Plane struct {
	tenant     tenant.Tenant
	plan       network.Plan
	keys       *Keys
	components string
	starter    Starter
	log        *slog.Logger
	door       *network.Forwarder

	// change is held while the apiserver is being started or killed, kcpChange
	// while the kcp side is, announcing while the one is written to the other.
	change     sync.Mutex
	kcpChange  sync.Mutex
	announcing sync.Mutex

	mu        sync.Mutex
	processes map[string]*proc.Process
	port      int
	etcdPort  int
	kcpPort   int
	// phase is the apiserver's, directory where it is announced: nil until the
	// kcp side is ready.
	phase     kcp.Phase
	directory Directory
}

// New makes a control plane that is not started yet. components is the
// components binary.
func New(t tenant.Tenant, plan network.Plan, keys *Keys, components string, starter Starter, log *slog.Logger) *Plane {
	return &Plane{
		tenant: t, plan: plan, keys: keys, components: components, starter: starter, log: log,
		processes: map[string]*proc.Process{},
	}
}

// Door is the address at which nodes reach the apiserver.
func (p *Plane) Door() string { return net.JoinHostPort(p.plan.Host().String(), doorPort) }

// URL is the apiserver's URL on the host.
func (p *Plane) URL() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return loopbackURL(p.port)
}

// Start starts all components and returns when the apiserver is ready. report
// is told of each step that is done.
func (p *Plane) Start(ctx context.Context, report func(step string)) error {
	door, err := network.NewForwarder(ctx, p.Door(), p.log)
	if err != nil {
		return err
	}
	p.door = door
	if err := p.startEtcd(ctx); err != nil {
		return err
	}
	report("etcd")
	servers, together := errgroup.WithContext(ctx)
	servers.Go(func() error { return p.StartKCP(together, 0) })
	servers.Go(func() error { return p.StartAPIServer(together, 0) })
	if err := servers.Wait(); err != nil {
		return err
	}
	report("kube-apiserver, kcp")
	for name, flags := range map[string][]string{
		controllerManager: controllerManagerFlags(p.keys),
		scheduler:         schedulerFlags(p.keys),
	} {
		if err := p.start(name, flags); err != nil {
			return err
		}
	}
	report("kube-controller-manager, kube-scheduler")
	return nil
}

func (p *Plane) startEtcd(ctx context.Context) error {
	client, err := network.FreePort()
	if err != nil {
		return err
	}
	peer, err := network.FreePort()
	if err != nil {
		return err
	}
	p.etcdPort = client
	if err := p.start(etcd, etcdFlags(p.tenant, client, peer)); err != nil {
		return err
	}
	return p.await(ctx, etcd, listening(client))
}

// start starts a component and watches over its end: those that end by
// themselves are named in the daemon's log, since nothing else would say why
// the cluster stands still.
func (p *Plane) start(name string, flags []string) error {
	process, err := p.starter.Start(proc.Spec{
		Name: name,
		Path: p.components,
		Args: append([]string{program(name)}, flags...),
		Env:  os.Environ(),
		Log:  p.LogFile(name),
	})
	if err != nil {
		return err
	}
	p.mu.Lock()
	p.processes[name] = process
	p.mu.Unlock()
	go func() {
		<-process.Done()
		p.log.Warn("component has ended", "name", name, "pid", process.PID(), "ending", process.Ending())
	}()
	return nil
}

// LogFile is the log of a component.
func (p *Plane) LogFile(name string) string {
	return filepath.Join(p.tenant.LogDir(), name+".log")
}

func (p *Plane) process(name string) *proc.Process {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.processes[name]
}

// await returns when ready says so, and fails when the component ends before
// or takes too long.
func (p *Plane) await(ctx context.Context, name string, ready func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	process := p.process(name)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	var last error
	for {
		if last = ready(ctx); last == nil {
			return nil
		}
		select {
		case <-process.Done():
			return fmt.Errorf("%s has ended at its start (%s); its last words:\n%s", name, process.Ending(), proc.Tail(p.LogFile(name), 1500))
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready: %w (last answer: %w); see %s", name, context.Cause(ctx), last, p.LogFile(name))
		case <-tick.C:
		}
	}
}

func listening(port int) func(context.Context) error {
	return func(ctx context.Context) error {
		var dialer net.Dialer
		conn, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			return err
		}
		return conn.Close()
	}
}

// Component is the state of one component.
type Component struct {
	Name    string `json:"name"`
	Running bool   `json:"running"`
	// PID is 0 when it is not running.
	PID int    `json:"pid"`
	Log string `json:"log"`
}

// Components gives the state of all, in the order of their start.
func (p *Plane) Components() []Component {
	var all []Component
	for _, name := range []string{etcd, apiserver, kcpServer, controllerManager, scheduler} {
		component := Component{Name: name, Log: p.LogFile(name)}
		if process := p.process(name); process != nil && process.Running() {
			component.Running = true
			component.PID = process.PID()
		}
		all = append(all, component)
	}
	return all
}

// publish writes the files that say where the apiserver is.
func (p *Plane) publish() error {
	url := p.URL()
	if err := pki.WriteKubeconfig(p.tenant.AdminKubeconfig(), p.tenant.Name(), url, p.keys.Authority.Certificate(), p.keys.Admin); err != nil {
		return err
	}
	return pki.Replace(p.tenant.ClusterURL(), []byte(url+"\n"), 0o644)
}
