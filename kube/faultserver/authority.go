package faultserver

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// validity is how long certificates are valid, from an hour ago on. It is so
// long that nobody warns of their expiry.
const validity = 90 * 24 * time.Hour

// authority is a CA that lives as long as a test.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(name string) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making the CA's key: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: name},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(validity),
		KeyUsage:              x509.KeyUsageCertSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, fmt.Errorf("making the CA: %w", err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("reading the CA back: %w", err)
	}
	return &authority{cert: cert, key: key}, nil
}

// issue makes a certificate for a server on the loopback interface or for a
// client.
func (a *authority) issue(name string, usage x509.ExtKeyUsage, until time.Time) (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("making the key of %s: %w", name, err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()),
		Subject:      pkix.Name{CommonName: name, Organization: []string{"drivers"}},
		NotBefore:    a.cert.NotBefore,
		NotAfter:     until,
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{usage},
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("making the certificate of %s: %w", name, err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}

// pool is the CA as the one that a peer trusts.
func (a *authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}

// Credentials are the files of a client.
type Credentials struct{ CAFile, CertFile, KeyFile string }

// writeCredentials writes the files of a client that trusts trusted and shows
// a certificate of a.
func (a *authority) writeCredentials(folder string, trusted *authority, until time.Time) (Credentials, error) {
	cert, err := a.issue("driver", x509.ExtKeyUsageClientAuth, until)
	if err != nil {
		return Credentials{}, err
	}
	key, err := x509.MarshalPKCS8PrivateKey(cert.PrivateKey)
	if err != nil {
		return Credentials{}, fmt.Errorf("writing down the client's key: %w", err)
	}
	c := Credentials{
		CAFile:   filepath.Join(folder, "ca.crt"),
		CertFile: filepath.Join(folder, "client.crt"),
		KeyFile:  filepath.Join(folder, "client.key"),
	}
	for _, file := range []struct {
		path, kind string
		der        []byte
	}{
		{c.CAFile, "CERTIFICATE", trusted.cert.Raw},
		{c.CertFile, "CERTIFICATE", cert.Certificate[0]},
		{c.KeyFile, "PRIVATE KEY", key},
	} {
		text := pem.EncodeToMemory(&pem.Block{Type: file.kind, Bytes: file.der})
		if err := os.WriteFile(file.path, text, 0o600); err != nil {
			return Credentials{}, err
		}
	}
	return c, nil
}
