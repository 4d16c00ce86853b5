// Package pki makes the keys and certificates of a tenant.
package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/netip"
	"os"
	"time"
)

const (
	// lifetime is that of all certificates: a local tenant lives for hours.
	lifetime = 365 * 24 * time.Hour
	// backdate allows for clocks that differ a little.
	backdate = 5 * time.Minute
)

// Authority is a certificate authority. Its key exists in memory alone.
type Authority struct {
	certificate *x509.Certificate
	key         crypto.Signer
	pem         []byte
	now         func() time.Time
}

// Pair is a certificate and its key, PEM encoded.
type Pair struct {
	Certificate []byte
	Key         []byte
}

// Subject says whom a certificate is for.
type Subject struct {
	// CommonName is the user's name in Kubernetes, Organization its groups.
	CommonName   string
	Organization []string
	// Names and Addresses are what a server is called by.
	Names     []string
	Addresses []netip.Addr
}

// NewAuthority makes an authority of that name.
func NewAuthority(name string, now func() time.Time) (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make authority %s: %w", name, err)
	}
	serial, err := newSerial()
	if err != nil {
		return nil, fmt.Errorf("make authority %s: %w", name, err)
	}
	template := &x509.Certificate{
		SerialNumber:          serial,
		Subject:               pkix.Name{CommonName: name},
		NotBefore:             now().Add(-backdate),
		NotAfter:              now().Add(lifetime),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("make authority %s: %w", name, err)
	}
	certificate, err := x509.ParseCertificate(raw)
	if err != nil {
		return nil, fmt.Errorf("make authority %s: %w", name, err)
	}
	return &Authority{certificate: certificate, key: key, pem: encode("CERTIFICATE", raw), now: now}, nil
}

// Certificate is the authority's own certificate, PEM encoded.
func (a *Authority) Certificate() []byte { return a.pem }

// Vouch signs another authority, so that whoever trusts this one trusts what the
// other has signed. The certificate, PEM encoded, is to be shown with that.
func (a *Authority) Vouch(other *Authority) ([]byte, error) {
	serial, err := newSerial()
	if err != nil {
		return nil, fmt.Errorf("vouch for an authority: %w", err)
	}
	template := *other.certificate
	template.SerialNumber = serial
	raw, err := x509.CreateCertificate(rand.Reader, &template, a.certificate, other.key.Public(), a.key)
	if err != nil {
		return nil, fmt.Errorf("vouch for an authority: %w", err)
	}
	return encode("CERTIFICATE", raw), nil
}

// Issue makes a key and a certificate for it, good for clients and, with names
// or addresses, for servers.
func (a *Authority) Issue(subject Subject) (Pair, error) {
	pair, err := a.issue(subject)
	if err != nil {
		return Pair{}, fmt.Errorf("issue certificate for %s: %w", subject.CommonName, err)
	}
	return pair, nil
}

func (a *Authority) issue(subject Subject) (Pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, err
	}
	serial, err := newSerial()
	if err != nil {
		return Pair{}, err
	}
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: subject.CommonName, Organization: subject.Organization},
		NotBefore:    a.now().Add(-backdate),
		NotAfter:     a.now().Add(lifetime),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		DNSNames:     subject.Names,
	}
	for _, addr := range subject.Addresses {
		template.IPAddresses = append(template.IPAddresses, net.IP(addr.AsSlice()))
	}
	if len(subject.Names)+len(subject.Addresses) > 0 {
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	if err != nil {
		return Pair{}, err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return Pair{}, err
	}
	return Pair{Certificate: encode("CERTIFICATE", raw), Key: encode("PRIVATE KEY", secret)}, nil
}

// NewKey makes a key pair without a certificate, as the tokens of service
// accounts are signed with: the private and the public key, PEM encoded.
func NewKey() (private, public []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("make key: %w", err)
	}
	secret, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, nil, fmt.Errorf("make key: %w", err)
	}
	open, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return nil, nil, fmt.Errorf("make key: %w", err)
	}
	return encode("EC PRIVATE KEY", secret), encode("PUBLIC KEY", open), nil
}

// Write writes the pair to two files, the key readable by the owner alone.
func (p Pair) Write(certificate, key string) error {
	if err := os.WriteFile(certificate, p.Certificate, 0o644); err != nil {
		return fmt.Errorf("write certificate: %w", err)
	}
	if err := os.WriteFile(key, p.Key, 0o600); err != nil {
		return fmt.Errorf("write key: %w", err)
	}
	return nil
}

func newSerial() (*big.Int, error) {
	return rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
}

func encode(kind string, raw []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: raw})
}
