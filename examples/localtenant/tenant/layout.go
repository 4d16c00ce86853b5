package tenant

import (
	"fmt"
	"os"
	"path/filepath"
)

// Dir is the tenant's state folder. Nothing of the tenant is on disk outside
// of it.
func (t Tenant) Dir() string { return filepath.Join(t.root, t.name) }

// Socket is where the daemon answers the verbs.
func (t Tenant) Socket() string { return filepath.Join(t.Dir(), "daemon.sock") }

// Record is the file with what `up` was asked for.
func (t Tenant) Record() string { return filepath.Join(t.Dir(), RecordFile) }

// Lock is the file that the running daemon holds a lock on.
func (t Tenant) Lock() string { return filepath.Join(t.Dir(), "daemon.lock") }

// AccessDir holds what an operator of the driver gets: cluster-url, ca.crt,
// client.crt and client.key.
func (t Tenant) AccessDir() string { return filepath.Join(t.Dir(), "access") }

// ClusterURL is the file with the URL of the apiserver.
func (t Tenant) ClusterURL() string { return filepath.Join(t.AccessDir(), "cluster-url") }

// AdminKubeconfig is the kubeconfig of the cluster's administrator.
func (t Tenant) AdminKubeconfig() string { return filepath.Join(t.Dir(), "admin.kubeconfig") }

// KCPKubeconfig is the kubeconfig of the kcp side's administrator.
func (t Tenant) KCPKubeconfig() string { return filepath.Join(t.Dir(), "kcp.kubeconfig") }

// KCPAuthority is the file with the CA of the kcp side and of the mount.
func (t Tenant) KCPAuthority() string { return filepath.Join(t.Dir(), "kcp-ca.crt") }

// LogDir holds a log file for each component, the audit log, and a folder for
// each node.
func (t Tenant) LogDir() string { return filepath.Join(t.Dir(), "log") }

// AuditLog is the apiserver's audit log of the driver's requests.
func (t Tenant) AuditLog() string { return filepath.Join(t.LogDir(), "audit.log") }

// NodeLogDir holds the logs of one node. They stay when the node is gone.
func (t Tenant) NodeLogDir(node string) string { return filepath.Join(t.LogDir(), "nodes", node) }

// NodeDir holds one node's disk: images, containers, the kubelet's folder.
func (t Tenant) NodeDir(node string) string { return filepath.Join(t.Dir(), "nodes", node) }

// PKIDir holds the keys of the control plane.
func (t Tenant) PKIDir() string { return filepath.Join(t.Dir(), "pki") }

// EtcdDir is etcd's data folder.
func (t Tenant) EtcdDir() string { return filepath.Join(t.Dir(), "etcd") }

// RegistryDir is the registry's store.
func (t Tenant) RegistryDir() string { return filepath.Join(t.Dir(), "registry") }

// MakeDirs makes the state folder and the folders in it. The record must be
// written right after, since it is what allows the folder to be removed.
func (t Tenant) MakeDirs() error {
	private := []string{t.PKIDir(), t.EtcdDir(), t.RegistryDir()}
	public := []string{t.root, t.Dir(), t.AccessDir(), t.LogDir(), filepath.Join(t.LogDir(), "nodes"), filepath.Join(t.Dir(), "nodes")}
	for _, dir := range public {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("make state folder: %w", err)
		}
	}
	for _, dir := range private {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("make state folder: %w", err)
		}
	}
	return nil
}
