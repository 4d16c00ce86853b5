package controlplane

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/socialweb-computer/tenant-executor/examples/localtenant/kcp"
	"github.com/socialweb-computer/tenant-executor/examples/localtenant/network"
	"github.com/socialweb-computer/tenant-executor/examples/localtenant/pki"
)

// APIServer is the state of the apiserver.
type APIServer struct {
	Running bool `json:"running"`
	// PID is 0 when it is not running.
	PID int `json:"pid"`
	// Port on 127.0.0.1 where it listens, or listened last.
	Port int    `json:"port"`
	Log  string `json:"log"`
	// AuditLog holds one JSON object a line for the driver's requests.
	AuditLog string `json:"auditLog"`
}

// APIServer gives its state.
func (p *Plane) APIServer() APIServer {
	state := APIServer{Log: p.LogFile(apiserver), AuditLog: p.tenant.AuditLog()}
	if process := p.process(apiserver); process != nil && process.Running() {
		state.Running, state.PID = true, process.PID()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	state.Port = p.port
	return state
}

// StartAPIServer starts the apiserver and returns when it is ready. port 0
// chooses a free one. The files that say where it is are rewritten.
func (p *Plane) StartAPIServer(ctx context.Context, port int) error {
	p.change.Lock()
	defer p.change.Unlock()
	return p.startAPIServer(ctx, port)
}

func (p *Plane) startAPIServer(ctx context.Context, port int) error {
	if process := p.process(apiserver); process != nil && process.Running() {
		return fmt.Errorf("the apiserver %w (pid %d): kill it first, or use restart", ErrRunning, process.PID())
	}
	if port == 0 {
		free, err := network.FreePort()
		if err != nil {
			return err
		}
		port = free
	}
	policy := p.keys.file("audit-policy.yaml")
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o644); err != nil {
		return fmt.Errorf("write audit policy: %w", err)
	}
	flags := apiserverFlags(p.tenant, p.keys, p.plan.Host(), p.plan.Services(), port, p.etcdPort, policy)
	if err := p.start(apiserver, flags); err != nil {
		return err
	}
	p.mu.Lock()
	p.port = port
	p.mu.Unlock()
	p.door.SetTarget(fmt.Sprintf("127.0.0.1:%d", port))
	// Published before it is ready, as the market does: a driver that looks
	// early gets a refused connection, not yesterday's port.
	if err := p.publish(); err != nil {
		return err
	}
	if err := p.setPhase(ctx, kcp.Provisioning); err != nil {
		return err
	}
	ready, err := readiness(p.URL(), p.keys.Authority.Certificate(), p.keys.Admin)
	if err != nil {
		return err
	}
	if err := p.await(ctx, apiserver, ready); err != nil {
		return err
	}
	return p.setPhase(ctx, kcp.Ready)
}

// KillAPIServer ends the apiserver by SIGKILL. It stays down.
func (p *Plane) KillAPIServer() error {
	p.change.Lock()
	defer p.change.Unlock()
	return p.killAPIServer()
}

func (p *Plane) killAPIServer() error {
	process := p.process(apiserver)
	if process == nil || !process.Running() {
		return fmt.Errorf("the apiserver %w: start it with `localtenant apiserver start`", ErrStopped)
	}
	return process.Kill()
}

// readiness asks a server's /readyz as its administrator.
func readiness(server string, authority []byte, admin pki.Pair) (func(context.Context) error, error) {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority)
	own, err := tls.X509KeyPair(admin.Certificate, admin.Key)
	if err != nil {
		return nil, fmt.Errorf("read the administrator's certificate: %w", err)
	}
	client := &http.Client{
		Timeout: 5 * time.Second,
		Transport: &http.Transport{
			TLSClientConfig:   &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{own}, MinVersion: tls.VersionTLS12},
			DisableKeepAlives: true,
		},
	}
	url := server + "/readyz"
	return func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		response, err := client.Do(request)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		text, err := io.ReadAll(io.LimitReader(response.Body, 4096))
		if err != nil {
			return err
		}
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("%s: %s", response.Status, text)
		}
		return nil
	}, nil
}
