package controlplane

import (
	"fmt"
	"net/netip"
	"os"
	"time"

	"github.com/socialweb-computer/tenant-executor/examples/localtenant/pki"
	"github.com/socialweb-computer/tenant-executor/examples/localtenant/tenant"
)

// KCPKeys are the keys of the kcp side. Its authority is not the tenant's: a
// certificate of the one is worth nothing at the other.
type KCPKeys struct {
	// Authority signs the servers of the kcp side.
	Authority *pki.Authority
	// Admin is the client certificate of its administrator.
	Admin pki.Pair
}

// newKCPKeys makes the keys and writes those that the server reads to the files
// that file names.
func newKCPKeys(t tenant.Tenant, file func(string) string, now func() time.Time) (KCPKeys, error) {
	authority, err := pki.NewAuthority("kcp of local tenant "+t.Name(), now)
	if err != nil {
		return KCPKeys{}, err
	}
	keys := KCPKeys{Authority: authority}
	if err := os.WriteFile(t.KCPAuthority(), authority.Certificate(), 0o644); err != nil {
		return KCPKeys{}, fmt.Errorf("write certificate: %w", err)
	}
	serving, err := keys.IssueServer("kcp")
	if err != nil {
		return KCPKeys{}, err
	}
	if err := serving.Write(file("kcp.crt"), file("kcp.key")); err != nil {
		return KCPKeys{}, err
	}
	if err := serviceAccounts(file("kcp-service-account")); err != nil {
		return KCPKeys{}, err
	}
	keys.Admin, err = authority.Issue(pki.Subject{CommonName: "kcp-admin", Organization: []string{"system:masters"}})
	return keys, err
}

// IssueServer issues a certificate for a server of the kcp side on the host's
// loopback.
func (k KCPKeys) IssueServer(name string) (pki.Pair, error) {
	return k.Authority.Issue(pki.Subject{
		CommonName: name, Names: []string{"localhost"}, Addresses: []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1})},
	})
}
