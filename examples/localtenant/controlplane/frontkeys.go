package controlplane

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/socialweb-computer/tenant-executor/examples/localtenant/pki"
	"github.com/socialweb-computer/tenant-executor/examples/localtenant/tenant"
)

// front is what the apiserver shows to the host, where drivers are: an authority
// of its own, which signs the certificate that the apiserver serves with and
// those of drivers. It can be replaced while the cluster runs. Nodes and
// controllers do not notice, since the tenant's own authority vouches for it.
type front struct {
	tenant    tenant.Tenant
	authority *pki.Authority
	// serving is whom the apiserver's certificate is for.
	serving pki.Subject
	now     func() time.Time
}

func newFront(t tenant.Tenant, authority *pki.Authority, host netip.Addr, services netip.Prefix, now func() time.Time) front {
	return front{tenant: t, authority: authority, now: now, serving: pki.Subject{
		CommonName: "kube-apiserver",
		Names:      []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"},
		Addresses:  []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), host, services.Addr().Next()},
	}}
}

// renew makes another authority and what it signs. The apiserver reads its files
// when it starts, a driver whenever it connects. An authority that is replaced
// vouches for nobody any more.
func (f front) renew(file func(string) string) error {
	own, err := pki.NewAuthority("local tenant "+f.tenant.Name()+" front", f.now)
	if err != nil {
		return err
	}
	vouched, err := f.authority.Vouch(own)
	if err != nil {
		return err
	}
	serving, err := own.Issue(f.serving)
	if err != nil {
		return err
	}
	driver, err := own.Issue(pki.Subject{CommonName: DriverName, Organization: []string{DriverName}})
	if err != nil {
		return err
	}
	access := func(name string) string { return filepath.Join(f.tenant.AccessDir(), name) }
	for _, write := range []struct {
		path string
		text []byte
		mode os.FileMode
	}{
		{file("apiserver.crt"), slices.Concat(serving.Certificate, vouched), 0o644},
		{file("apiserver.key"), serving.Key, 0o600},
		{file("client-ca.crt"), slices.Concat(f.authority.Certificate(), own.Certificate()), 0o644},
		{access("ca.crt"), own.Certificate(), 0o644},
		{access("client.crt"), driver.Certificate, 0o644},
		{access("client.key"), driver.Key, 0o600},
	} {
		if err := pki.Replace(write.path, write.text, write.mode); err != nil {
			return fmt.Errorf("replace the keys of the apiserver's front: %w", err)
		}
	}
	return nil
}

// RenewFront replaces the authority that drivers know the apiserver by, and
// their certificates. The apiserver has to be down: it takes the new ones when
// it starts.
func (p *Plane) RenewFront() error {
	p.change.Lock()
	defer p.change.Unlock()
	if process := p.process(apiserver); process != nil && process.Running() {
		return fmt.Errorf("the apiserver %w: kill it first, or use restart", ErrRunning)
	}
	return p.keys.front.renew(p.keys.file)
}
