package controlplane

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"github.com/socialweb-computer/tenant-executor/examples/localtenant/pki"
	"github.com/socialweb-computer/tenant-executor/examples/localtenant/tenant"
)

// DriverName is both the user and the group of the driver's certificate.
// examples/rbac.yaml gives that group its rights.
const DriverName = "tenant-executor"

// Keys are the certificates of a tenant. One authority signs those of nodes,
// controllers and the administrator; the apiserver's front and the kcp side have
// others.
type Keys struct {
	// Authority issues the nodes' certificates later.
	Authority *pki.Authority
	// Admin is the client certificate of the cluster's administrator.
	Admin pki.Pair
	// KCP are the keys of the kcp side.
	KCP KCPKeys

	front front
	dir   string
}

// file is where a key or certificate lies for the components to read.
func (k *Keys) file(name string) string { return filepath.Join(k.dir, name) }

// NewKeys makes all keys of a tenant and writes those that components and
// operators read. Keys of an earlier start are replaced: etcd starts empty
// too.
func NewKeys(t tenant.Tenant, host netip.Addr, services netip.Prefix, now func() time.Time) (*Keys, error) {
	authority, err := pki.NewAuthority("local tenant "+t.Name(), now)
	if err != nil {
		return nil, err
	}
	keys := &Keys{Authority: authority, dir: t.PKIDir()}
	if err := os.WriteFile(keys.file("ca.crt"), authority.Certificate(), 0o644); err != nil {
		return nil, fmt.Errorf("write certificate: %w", err)
	}
	if err := keys.servers(t, host, services, now); err != nil {
		return nil, err
	}
	if err := serviceAccounts(keys.file("service-account")); err != nil {
		return nil, err
	}
	if err := keys.clients("https://"+host.String()+":"+doorPort, t.Name()); err != nil {
		return nil, err
	}
	if keys.KCP, err = newKCPKeys(t, keys.file, now); err != nil {
		return nil, err
	}
	return keys, nil
}

// servers makes the apiserver's two certificates: the one that it serves
// with, and the one that it calls kubelets with.
func (k *Keys) servers(t tenant.Tenant, host netip.Addr, services netip.Prefix, now func() time.Time) error {
	k.front = newFront(t, k.Authority, host, services, now)
	if err := k.front.renew(k.file); err != nil {
		return err
	}
	calling, err := k.Authority.Issue(pki.Subject{CommonName: "kube-apiserver-kubelet-client", Organization: []string{"system:masters"}})
	if err != nil {
		return err
	}
	return calling.Write(k.file("kubelet-client.crt"), k.file("kubelet-client.key"))
}

// serviceAccounts makes the keys that the tokens of service accounts are signed
// and checked with: PATH.key and PATH.pub.
func serviceAccounts(path string) error {
	private, public, err := pki.NewKey()
	if err != nil {
		return err
	}
	if err := os.WriteFile(path+".key", private, 0o600); err != nil {
		return fmt.Errorf("write key: %w", err)
	}
	if err := os.WriteFile(path+".pub", public, 0o644); err != nil {
		return fmt.Errorf("write key: %w", err)
	}
	return nil
}

// clients makes the kubeconfigs of the controllers and the administrator's
// certificate. The controllers go through the door on the bridge, which
// follows the apiserver when its port changes.
func (k *Keys) clients(door, name string) error {
	for _, component := range []string{controllerManager, scheduler} {
		pair, err := k.Authority.Issue(pki.Subject{CommonName: "system:" + component})
		if err != nil {
			return err
		}
		if err := pki.WriteKubeconfig(k.file(component+".kubeconfig"), name, door, k.Authority.Certificate(), pair); err != nil {
			return err
		}
	}
	admin, err := k.Authority.Issue(pki.Subject{CommonName: "localtenant-admin", Organization: []string{"system:masters"}})
	k.Admin = admin
	return err
}
