package pki

import (
	"crypto/tls"
	"crypto/x509"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
)

func noon() time.Time { return time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC) }

func authority(t *testing.T) *Authority {
	t.Helper()
	made, err := NewAuthority("test", noon)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func leaf(t *testing.T, pair Pair) *x509.Certificate {
	t.Helper()
	both, err := tls.X509KeyPair(pair.Certificate, pair.Key)
	if err != nil {
		t.Fatalf("certificate and key do not fit: %v", err)
	}
	return both.Leaf
}

func TestIssue(t *testing.T) {
	authority := authority(t)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority.Certificate())
	pair, err := authority.Issue(Subject{
		CommonName: "system:node:a", Organization: []string{"system:nodes"},
		Names: []string{"a"}, Addresses: []netip.Addr{netip.MustParseAddr("10.201.0.2")},
	})
	if err != nil {
		t.Fatal(err)
	}
	server := leaf(t, pair)
	for _, name := range []string{"a", "10.201.0.2"} {
		for _, usage := range []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth} {
			_, err := server.Verify(x509.VerifyOptions{Roots: roots, DNSName: name, CurrentTime: noon(), KeyUsages: []x509.ExtKeyUsage{usage}})
			if err != nil {
				t.Errorf("as %s for usage %v: %v", name, usage, err)
			}
		}
	}
	if server.Subject.CommonName != "system:node:a" || len(server.Subject.Organization) != 1 || server.Subject.Organization[0] != "system:nodes" {
		t.Errorf("subject is %s", server.Subject)
	}
	if _, err := server.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: noon().Add(lifetime + time.Hour)}); err == nil {
		t.Error("it never expires")
	}
}

func TestClientsAreNoServers(t *testing.T) {
	authority := authority(t)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority.Certificate())
	pair, err := authority.Issue(Subject{CommonName: "someone"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = leaf(t, pair).Verify(x509.VerifyOptions{Roots: roots, CurrentTime: noon(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
	if err == nil {
		t.Error("a client's certificate serves")
	}
}

func TestWrite(t *testing.T) {
	authority := authority(t)
	pair, err := authority.Issue(Subject{CommonName: "someone"})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	key := filepath.Join(dir, "client.key")
	if err := pair.Write(filepath.Join(dir, "client.crt"), key); err != nil {
		t.Fatal(err)
	}
	kubeconfig := filepath.Join(dir, "kubeconfig")
	for _, server := range []string{"https://127.0.0.1:1", "https://127.0.0.1:2"} {
		if err := WriteKubeconfig(kubeconfig, "demo", server, authority.Certificate(), pair); err != nil {
			t.Fatal(err)
		}
		config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
		if err != nil {
			t.Fatal(err)
		}
		if config.Host != server {
			t.Errorf("the kubeconfig leads to %s, want %s", config.Host, server)
		}
	}
	for _, path := range []string{key, kubeconfig} {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v; only its owner may read it", path, info.Mode())
		}
	}
	left, err := filepath.Glob(filepath.Join(dir, "*.new"))
	if err != nil || len(left) > 0 {
		t.Errorf("drafts are left: %v, %v", left, err)
	}
}
