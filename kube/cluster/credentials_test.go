package cluster_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/socialweb-computer/tenant-executor/kube/cluster"
	"github.com/socialweb-computer/tenant-executor/kube/faultserver"
)

func configOf(server *faultserver.Server, files faultserver.Credentials) cluster.Config {
	return cluster.Config{URL: server.URL(), CAFile: files.CAFile, CertFile: files.CertFile, KeyFile: files.KeyFile, UserAgent: "test"}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// What a file is that should be PEM is said before the cluster is asked.
func TestFilesAreRefused(t *testing.T) {
	t.Parallel()
	server := faultserver.Start(t)
	const token = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJ4In0.c2lnbmF0dXJl"
	tests := []struct {
		name   string
		change func(t *testing.T, c faultserver.Credentials) faultserver.Credentials
		// blame is the file that the error names.
		blame func(faultserver.Credentials) string
		want  string
	}{
		{"bearer token", func(t *testing.T, c faultserver.Credentials) faultserver.Credentials {
			write(t, c.CertFile, token+"\n")
			return c
		}, cert, "it holds no certificate (PEM), it is a bearer token; the tenant cluster's loopback address takes a client certificate"},
		{"static token", func(t *testing.T, c faultserver.Credentials) faultserver.Credentials {
			write(t, c.KeyFile, "kcp-admin-token-0123456789")
			return c
		}, key, "it holds no private key (PEM), it is a bearer token"},
		{"kubeconfig with a token", func(t *testing.T, c faultserver.Credentials) faultserver.Credentials {
			write(t, c.CertFile, "apiVersion: v1\nkind: Config\nusers:\n- name: a\n  user:\n    token: abc\n")
			return c
		}, cert, "it is a kubeconfig with a bearer token"},
		{"kubeconfig", func(t *testing.T, c faultserver.Credentials) faultserver.Credentials {
			write(t, c.CAFile, "apiVersion: v1\nkind: Config\nusers: []\n")
			return c
		}, ca, "decode its certificate-authority-data"},
		{"damaged certificate", func(t *testing.T, c faultserver.Credentials) faultserver.Credentials {
			write(t, c.CertFile, "-----BEGIN CERTIFICATE-----\nYWJj\n-----END CERTIFICATE-----\n")
			return c
		}, cert, "its certificate is damaged"},
		{"empty", func(t *testing.T, c faultserver.Credentials) faultserver.Credentials {
			write(t, c.KeyFile, "")
			return c
		}, key, "it holds no private key (PEM)"},
		{"unreadable", func(t *testing.T, c faultserver.Credentials) faultserver.Credentials {
			c.CertFile = t.TempDir()
			return c
		}, cert, "is a directory"},
		{"missing", func(_ *testing.T, c faultserver.Credentials) faultserver.Credentials {
			c.KeyFile = "/nowhere/client.key"
			return c
		}, key, "no such file or directory"},
		{"key of another", func(t *testing.T, c faultserver.Credentials) faultserver.Credentials {
			c.KeyFile = server.Credentials(t).KeyFile
			return c
		}, cert, "private key does not match public key"},
		{"key that the group can read", func(t *testing.T, c faultserver.Credentials) faultserver.Credentials {
			chmod(t, c.KeyFile, 0o640)
			return c
		}, key, "others can read it (mode 0640)"},
		{"key that everybody can read", func(t *testing.T, c faultserver.Credentials) faultserver.Credentials {
			chmod(t, c.KeyFile, 0o604)
			return c
		}, key, "chmod 600"},
		{"expired", func(t *testing.T, _ faultserver.Credentials) faultserver.Credentials { return server.ExpiredClient(t) },
			cert, "the certificate expired on "},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			files := test.change(t, server.Credentials(t))
			_, err := cluster.Connect(t.Context(), cluster.Fixed(configOf(server, files)))
			var file *cluster.FileError
			if !errors.As(err, &file) || file.Path != test.blame(files) || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("got %v; want a *FileError of %s with %q", err, test.blame(files), test.want)
			}
			if strings.Count(err.Error(), file.Path) != 1 || strings.Contains(err.Error(), token) {
				t.Errorf("the path is not said once, or the token is shown: %v", err)
			}
		})
	}
	if _, err := cluster.Connect(t.Context(), cluster.Fixed(configOf(server, server.Credentials(t)))); err != nil {
		t.Errorf("good files: %v", err)
	}
}

func ca(c faultserver.Credentials) string   { return c.CAFile }
func cert(c faultserver.Credentials) string { return c.CertFile }
func key(c faultserver.Credentials) string  { return c.KeyFile }

func chmod(t *testing.T, path string, mode os.FileMode) {
	t.Helper()
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

// The server says which CA's certificates it takes: a cluster may have another
// CA for clients than for servers, so the file with the CA does not tell. Of two
// CAs of one name the key tells.
func TestCertificateOfAnotherCA(t *testing.T) {
	t.Parallel()
	server := faultserver.Start(t)
	old := faultserver.Start(t).Credentials(t) // each server has a CA of its own, of one name
	old.CAFile = server.Credentials(t).CAFile
	for want, files := range map[string]faultserver.Credentials{
		`: it is signed by "CN=another CA", and the cluster takes certificates signed by "CN=test CA" alone`: server.ForeignClient(t),
		`: it is signed by "CN=test CA", which is not the CA of that name in ` + old.CAFile:                  old,
	} {
		c := connect(t, server, files)
		err := cluster.Retry(t.Context(), time.Minute, func(ctx context.Context) error { return list(ctx, c) })
		if !cluster.Denied(err) {
			t.Fatalf("the server answered %v", err)
		}
		if c.Refind(t.Context(), err) {
			t.Error("the cluster has moved")
		}
		if trouble := c.Trouble(err); trouble == nil || !strings.Contains(trouble.Error(), files.CertFile+want) {
			t.Errorf("got %v, want %s", trouble, want)
		}
		if trouble := c.Trouble(errFinal); trouble != nil {
			t.Errorf("it is also told of another error: %v", trouble)
		}
	}
}

// A server with anonymous requests answers "forbidden" where others answer
// "unauthorized": it is looked into at once and not repeated.
func TestAnonymousIsNobody(t *testing.T) {
	t.Parallel()
	err := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", errors.New(`User "system:anonymous" cannot list resource "pods"`))
	if !cluster.Denied(err) || !cluster.Foreign(err) {
		t.Errorf("Denied is %v, Foreign %v", cluster.Denied(err), cluster.Foreign(err))
	}
	known := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", errors.New(`User "driver" cannot list resource "pods"`))
	if cluster.Foreign(known) {
		t.Error("a caller who is known counts as a stranger")
	}
}

// Certificates are replaced while a stage runs: the next connection has the
// new ones, also if a request fails with the old ones first.
func TestCertificatesAreReadForEachConnection(t *testing.T) {
	t.Parallel()
	server := faultserver.Start(t)
	files, fresh := server.ForeignClient(t), server.Credentials(t)
	execs, requests := connect(t, server, files), connect(t, server, files)
	if string(execs.Config().CertData) != read(t, files.CertFile) {
		t.Fatal("the connection has not the certificate of the file")
	}
	write(t, files.CertFile, read(t, fresh.CertFile))
	if got := string(execs.Config().CertData); got == read(t, files.CertFile) {
		t.Error("a certificate without its key was taken")
	}
	write(t, files.KeyFile, read(t, fresh.KeyFile))
	if got := execs.Config(); string(got.CertData) != read(t, fresh.CertFile) || string(got.KeyData) != read(t, fresh.KeyFile) {
		t.Error("the connection has not the new certificate")
	}
	if err := requests.Retry(t.Context(), time.Minute, func(ctx context.Context) error { return list(ctx, requests) }); err != nil {
		t.Errorf("with the new certificate: %v", err)
	}
}

func TestExpiry(t *testing.T) {
	t.Parallel()
	server := faultserver.Start(t)
	want := time.Now().Add(48 * time.Hour).Truncate(time.Second)
	files := server.ClientUntil(t, want)
	if until, file := connect(t, server, files).Expiry(); !until.Equal(want) || file != files.CertFile {
		t.Errorf("got %s, %s; want %s", until, file, want)
	}
}

// In a Pod the service account takes the place of the certificate.
func TestInCluster(t *testing.T) {
	t.Parallel()
	for _, env := range []map[string]string{nil, {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, {"KUBERNETES_SERVICE_PORT": "443"}} {
		if _, err := cluster.InCluster(env); !errors.Is(err, cluster.ErrNotInCluster) {
			t.Errorf("%v: %v", env, err)
		}
	}
	got, err := cluster.InCluster(map[string]string{"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"})
	const folder = "/var/run/secrets/kubernetes.io/serviceaccount"
	want := cluster.Config{URL: "https://[fd00::1]:443", CAFile: folder + "/ca.crt", TokenFile: folder + "/token"}
	if err != nil || got != want {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
}

func TestTokenFile(t *testing.T) {
	t.Parallel()
	server := faultserver.Start(t)
	token := filepath.Join(t.TempDir(), "token")
	config := cluster.Config{URL: server.URL(), CAFile: server.Credentials(t).CAFile, TokenFile: token}
	var file *cluster.FileError
	if _, err := cluster.Connect(t.Context(), cluster.Fixed(config)); !errors.As(err, &file) || file.Path != token {
		t.Errorf("no token: %v", err)
	}
	write(t, token, "\n")
	if _, err := cluster.Connect(t.Context(), cluster.Fixed(config)); !errors.As(err, &file) || file.Path != token {
		t.Errorf("an empty token: %v", err)
	}
	write(t, token, "secret")
	c, err := cluster.Connect(t.Context(), cluster.Fixed(config))
	if err != nil {
		t.Fatal(err)
	}
	if got := c.Config(); got.BearerTokenFile != token || len(got.CertData) > 0 {
		t.Errorf("the connection has token file %q and certificate %q", got.BearerTokenFile, got.CertData)
	}
	if until, _ := c.Expiry(); !until.IsZero() {
		t.Errorf("the token counts as a certificate until %s", until)
	}
}
