package cluster_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/socialweb-computer/tenant-executor/kube/cluster"
)

// issue makes a certificate that is valid from a time on for a year. Without
// an issuer it is a CA.
func issue(t *testing.T, from time.Time, issuer *tls.Certificate) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(from.UnixNano()), Subject: pkix.Name{CommonName: "somebody"},
		NotBefore: from, NotAfter: from.Add(365 * 24 * time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	parent, signer := template, any(key)
	if issuer == nil {
		template.NotAfter = from.Add(10 * 365 * 24 * time.Hour)
		template.IsCA, template.BasicConstraintsValid, template.Subject.CommonName = true, true, "CA"
		template.KeyUsage |= x509.KeyUsageCertSign
	} else {
		parent, signer = issuer.Leaf, issuer.PrivateKey
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

// clockServer is an apiserver whose clock is ahead of this host's. Its
// certificate is valid from a time on.
func clockServer(t *testing.T, ca tls.Certificate, ahead time.Duration, from time.Time) string {
	t.Helper()
	web := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Date", time.Now().Add(ahead).UTC().Format(http.TimeFormat))
		http.Error(w, "who are you", http.StatusUnauthorized)
	}))
	web.Config.ErrorLog = log.New(io.Discard, "", 0)
	web.TLS = &tls.Config{Certificates: []tls.Certificate{issue(t, from, &ca)}, MinVersion: tls.VersionTLS12}
	web.StartTLS()
	t.Cleanup(web.Close)
	return web.URL
}

func save(t *testing.T, ca, client tls.Certificate, url string) cluster.Config {
	t.Helper()
	folder := t.TempDir()
	c := cluster.Config{URL: url, CAFile: filepath.Join(folder, "ca.crt"), CertFile: filepath.Join(folder, "client.crt"), KeyFile: filepath.Join(folder, "client.key")}
	key, err := x509.MarshalPKCS8PrivateKey(client.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	encode := func(kind string, der []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
	}
	write(t, c.CAFile, encode("CERTIFICATE", ca.Certificate[0]))
	write(t, c.CertFile, encode("CERTIFICATE", client.Certificate[0]))
	write(t, c.KeyFile, encode("PRIVATE KEY", key))
	return c
}

// A certificate that is not valid yet may mean that this host's clock is wrong:
// the cluster's own clock tells.
func TestClockSkew(t *testing.T) {
	t.Parallel()
	now := time.Now()
	ca := issue(t, now.Add(-500*24*time.Hour), nil)
	const behind = "this host's clock is 2h0m0s behind the cluster's: set it right"

	t.Run("client certificate", func(t *testing.T) {
		t.Parallel()
		url := clockServer(t, ca, 2*time.Hour, now.Add(time.Hour))
		c := save(t, ca, issue(t, now.Add(time.Hour), &ca), url)
		_, err := cluster.Connect(t.Context(), cluster.Fixed(c))
		var validity *cluster.ValidityError
		if !errors.As(err, &validity) || !strings.Contains(err.Error(), "the certificate is valid from ") || !about(err, behind) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("client certificate, clocks agree", func(t *testing.T) {
		t.Parallel()
		url := clockServer(t, ca, 20*time.Second, now.Add(-time.Hour))
		c := save(t, ca, issue(t, now.Add(time.Hour), &ca), url)
		_, err := cluster.Connect(t.Context(), cluster.Fixed(c))
		var validity *cluster.ValidityError
		if !errors.As(err, &validity) || validity.Skew != 0 || strings.Contains(err.Error(), "set it right") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("client certificate, nobody there", func(t *testing.T) {
		t.Parallel()
		c := save(t, ca, issue(t, now.Add(time.Hour), &ca), "https://127.0.0.1:1")
		_, err := cluster.Connect(t.Context(), cluster.Fixed(c))
		if err == nil || !strings.Contains(err.Error(), "this host's clock says") {
			t.Errorf("got %v", err)
		}
	})
	for name, test := range map[string]struct {
		ahead time.Duration
		from  time.Time
		want  string
	}{
		"server certificate not valid yet": {2 * time.Hour, now.Add(time.Hour), behind},
		"server certificate expired":       {-48 * time.Hour, now.Add(-366 * 24 * time.Hour), "this host's clock is 48h0m0s ahead of the cluster's: set it right"},
		"clocks agree":                     {0, now.Add(time.Hour), ""},
		"nobody knows the caller":          {0, now.Add(-time.Hour), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := clockServer(t, ca, test.ahead, test.from)
			c, err := cluster.Connect(t.Context(), cluster.Fixed(save(t, ca, issue(t, now.Add(-time.Hour), &ca), url)))
			if err != nil {
				t.Fatal(err)
			}
			err = c.Retry(t.Context(), time.Minute, func(ctx context.Context) error { return list(ctx, c) })
			if !cluster.Denied(err) {
				t.Fatalf("the server answered %v", err)
			}
			if trouble := c.Trouble(err); test.want == "" && trouble != nil || test.want != "" && !about(trouble, test.want) {
				t.Errorf("got %v, want %s", trouble, test.want)
			}
		})
	}
}

// about compares a text with a time in it, which may be off by some seconds.
func about(err error, want string) bool {
	if err == nil {
		return false
	}
	_, text, _ := strings.Cut(err.Error(), "this host's clock is ")
	got, rest, _ := strings.Cut(text, " ")
	_, wanted, _ := strings.Cut(want, "this host's clock is ")
	duration, tail, _ := strings.Cut(wanted, " ")
	a, err1 := time.ParseDuration(got)
	b, err2 := time.ParseDuration(duration)
	return err1 == nil && err2 == nil && (a-b).Abs() < 30*time.Second && rest == tail
}
