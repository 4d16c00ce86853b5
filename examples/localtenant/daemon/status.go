package daemon

import (
	"os"
	"time"

	"github.com/socialweb-computer/tenant-executor/examples/localtenant/controlplane"
	"github.com/socialweb-computer/tenant-executor/examples/localtenant/faults"
	"github.com/socialweb-computer/tenant-executor/examples/localtenant/gateway"
	"github.com/socialweb-computer/tenant-executor/examples/localtenant/node"
	"github.com/socialweb-computer/tenant-executor/examples/localtenant/tenant"
)

// State is a tenant's state in one word.
type State string

// The states of a tenant.
const (
	// Absent: there is no such tenant.
	Absent State = "absent"
	// Starting: `up` is at work.
	Starting State = "starting"
	// Running: it is up.
	Running State = "running"
	// Crashed: its daemon is gone, its state folder is there.
	Crashed State = "crashed"
)

// Status is everything that others may know of a tenant. The field names are
// kept: tests and scripts read them.
type Status struct {
	Name  string `json:"name"`
	State State  `json:"state"`
	// StateDir is the state folder.
	StateDir string `json:"stateDir"`
	// The rest is absent unless the tenant runs.
	*Details
}

// Details is the status of a tenant that runs.
type Details struct {
	// URL of the apiserver on the host.
	URL string `json:"url"`
	// AccessDir holds cluster-url, ca.crt, client.crt and client.key.
	AccessDir  string `json:"accessDir"`
	Kubeconfig string `json:"kubeconfig"`
	LogDir     string `json:"logDir"`
	PID        int    `json:"pid"`
	// Bridge is the link, BridgeAddress where nodes and Pods reach the host.
	Bridge        string                   `json:"bridge"`
	BridgeAddress string                   `json:"bridgeAddress"`
	Network       string                   `json:"network"`
	Created       time.Time                `json:"created"`
	Registry      RegistryStatus           `json:"registry"`
	APIServer     controlplane.APIServer   `json:"apiserver"`
	Components    []controlplane.Component `json:"components"`
	Nodes         []node.Status            `json:"nodes"`
	Gateway       gateway.Status           `json:"gateway"`
	KCP           controlplane.KCP         `json:"kcp"`
	Mount         MountStatus              `json:"mount"`
	// Faults are those still to come.
	Faults faults.Settings `json:"faults"`
}

// MountStatus says where users reach the tenant's apiserver.
type MountStatus struct {
	// URL is the apiserver's, below /clusters/.
	URL string `json:"url"`
	// Token is the bearer token that is let in.
	Token string `json:"token"`
	// CAFile is the CA of its certificate, which is the kcp side's.
	CAFile string `json:"caFile"`
}

// status gives the state of the running tenant.
func (d *Daemon) status() Status {
	d.mu.Lock()
	defer d.mu.Unlock()
	status := Status{Name: d.tenant.Name(), State: Starting, StateDir: d.tenant.Dir()}
	if !d.progress.isReady() {
		return status
	}
	status.State = Running
	status.Details = &Details{
		URL:       d.plane.URL(),
		AccessDir: d.tenant.AccessDir(), Kubeconfig: d.tenant.AdminKubeconfig(), LogDir: d.tenant.LogDir(),
		PID:    os.Getpid(),
		Bridge: d.tenant.Bridge(), BridgeAddress: d.plan.Host().String(), Network: d.plan.String(),
		Created:    d.config.Created,
		Registry:   d.registryStatus(),
		APIServer:  d.plane.APIServer(),
		Components: d.plane.Components(),
		Nodes:      d.nodes.List(),
		Gateway:    d.gateway.Status(),
		KCP:        d.plane.KCP(),
		Mount:      MountStatus{URL: d.mount.URL(), Token: d.config.MountToken, CAFile: d.tenant.KCPAuthority()},
		Faults:     d.faults.Settings(),
	}
	return status
}

// Offline is the status of a tenant whose daemon does not run.
func Offline(t tenant.Tenant) Status {
	status := Status{Name: t.Name(), State: Absent, StateDir: t.Dir()}
	if _, err := os.Lstat(t.Dir()); err == nil {
		status.State = Crashed
	}
	return status
}
