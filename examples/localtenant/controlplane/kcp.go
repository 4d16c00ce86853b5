package controlplane

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/rest"

	"github.com/socialweb-computer/tenant-executor/examples/localtenant/kcp"
	"github.com/socialweb-computer/tenant-executor/examples/localtenant/network"
	"github.com/socialweb-computer/tenant-executor/examples/localtenant/pki"
)

// announceTimeout bounds one write of the tenant's Cluster object.
const announceTimeout = 10 * time.Second

// Directory is where the tenant's URL is written for others. *kcp.Directory is
// one.
type Directory interface {
	// Open returns when it can be written.
	Open(ctx context.Context) error
	// Publish writes the URL and the phase.
	Publish(ctx context.Context, url string, phase kcp.Phase) error
}

// KCP is the state of the kcp side.
type KCP struct {
	Running bool `json:"running"`
	// PID is 0 when it is not running.
	PID int `json:"pid"`
	// URL of its apiserver, and the port in it, also while that is down.
	URL  string `json:"url"`
	Port int    `json:"port"`
	// Kubeconfig is its administrator's.
	Kubeconfig string `json:"kubeconfig"`
	// Cluster is the name of the tenant's Cluster object.
	Cluster string `json:"cluster"`
	Log     string `json:"log"`
}

// KCP gives the state of the kcp side.
func (p *Plane) KCP() KCP {
	state := KCP{Kubeconfig: p.tenant.KCPKubeconfig(), Cluster: p.tenant.Name(), Log: p.LogFile(kcpServer)}
	if process := p.process(kcpServer); process != nil && process.Running() {
		state.Running, state.PID = true, process.PID()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	state.URL, state.Port = loopbackURL(p.kcpPort), p.kcpPort
	return state
}

// StartKCP starts the kcp side, and returns when the tenant's Cluster object
// says where the tenant is. port 0 chooses a free one.
func (p *Plane) StartKCP(ctx context.Context, port int) error {
	p.kcpChange.Lock()
	defer p.kcpChange.Unlock()
	return p.startKCP(ctx, port)
}

// KillKCP ends the kcp side by SIGKILL. It stays down.
func (p *Plane) KillKCP() error {
	p.kcpChange.Lock()
	defer p.kcpChange.Unlock()
	return p.killKCP()
}

// RestartKCP kills the kcp side if it runs, and starts it.
func (p *Plane) RestartKCP(ctx context.Context, port int) error {
	p.kcpChange.Lock()
	defer p.kcpChange.Unlock()
	if process := p.process(kcpServer); process != nil && process.Running() {
		if err := p.killKCP(); err != nil {
			return err
		}
	}
	return p.startKCP(ctx, port)
}

func (p *Plane) killKCP() error {
	process := p.process(kcpServer)
	if process == nil || !process.Running() {
		return fmt.Errorf("the kcp side %w: start it with `localtenant kcp start`", ErrStopped)
	}
	return process.Kill()
}

func (p *Plane) startKCP(ctx context.Context, port int) error {
	if process := p.process(kcpServer); process != nil && process.Running() {
		return fmt.Errorf("the kcp side %w (pid %d): kill it first, or use restart", ErrRunning, process.PID())
	}
	if port == 0 {
		free, err := network.FreePort()
		if err != nil {
			return err
		}
		port = free
	}
	if err := p.start(kcpServer, kcpFlags(p.keys, p.tenant, p.plan.Host(), port, p.etcdPort)); err != nil {
		return err
	}
	url := loopbackURL(port)
	p.mu.Lock()
	p.kcpPort, p.directory = port, nil
	p.mu.Unlock()
	authority := p.keys.KCP.Authority.Certificate()
	if err := pki.WriteKubeconfig(p.tenant.KCPKubeconfig(), "kcp", url, authority, p.keys.KCP.Admin); err != nil {
		return err
	}
	ready, err := readiness(url, authority, p.keys.KCP.Admin)
	if err != nil {
		return err
	}
	if err := p.await(ctx, kcpServer, ready); err != nil {
		return err
	}
	return p.openDirectory(ctx, url)
}

func (p *Plane) openDirectory(ctx context.Context, url string) error {
	keys := p.keys.KCP
	directory, err := kcp.NewDirectory(&rest.Config{
		Host:            url,
		TLSClientConfig: rest.TLSClientConfig{CAData: keys.Authority.Certificate(), CertData: keys.Admin.Certificate, KeyData: keys.Admin.Key},
		UserAgent:       "localtenant",
		QPS:             -1,
	}, p.tenant.Name())
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := directory.Open(ctx); err != nil {
		return err
	}
	p.mu.Lock()
	p.directory = directory
	p.mu.Unlock()
	return p.announce(ctx)
}

// announce writes to the kcp side where the apiserver is. While the kcp side is
// down nothing is written: it is when it starts.
func (p *Plane) announce(ctx context.Context) error {
	// What is read last is written last.
	p.announcing.Lock()
	defer p.announcing.Unlock()
	p.mu.Lock()
	directory, url, phase := p.directory, loopbackURL(p.port), p.phase
	p.mu.Unlock()
	server := p.process(kcpServer)
	if directory == nil || phase == "" || !server.Running() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, announceTimeout)
	defer cancel()
	err := directory.Publish(ctx, url, phase)
	if err != nil && !server.Running() {
		p.log.Warn("the kcp side has gone away while the tenant's URL was written there", "error", err)
		return nil
	}
	return err
}

// setPhase notes the apiserver's state and announces it.
func (p *Plane) setPhase(ctx context.Context, phase kcp.Phase) error {
	p.mu.Lock()
	p.phase = phase
	p.mu.Unlock()
	return p.announce(ctx)
}

// loopbackURL is the URL of a server on the host's loopback.
func loopbackURL(port int) string { return fmt.Sprintf("https://127.0.0.1:%d", port) }
