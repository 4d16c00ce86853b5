package controlplane

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/socialweb-computer/tenant-executor/examples/localtenant/network"
	"github.com/socialweb-computer/tenant-executor/examples/localtenant/proc"
	"github.com/socialweb-computer/tenant-executor/examples/localtenant/tenant"
)

// plane makes a control plane whose programs are a shell script. Its network is
// a part of the loopback network, which needs no bridge.
func plane(t *testing.T, script string) *Plane {
	t.Helper()
	place, err := tenant.New(filepath.Join(t.TempDir(), "root"), "demo")
	if err != nil {
		t.Fatal(err)
	}
	if err := place.MakeDirs(); err != nil {
		t.Fatal(err)
	}
	plan, err := network.NewPlan("127.77.0.0/16")
	if err != nil {
		t.Fatal(err)
	}
	keys, err := NewKeys(place, plan.Host(), plan.Services(), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	components := filepath.Join(t.TempDir(), "components")
	if err := os.WriteFile(components, []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	spawner := proc.NewSpawner()
	t.Cleanup(spawner.Close)
	return New(place, plan, keys, components, spawner, slog.New(slog.DiscardHandler))
}

func TestAccessFiles(t *testing.T) {
	p := plane(t, "")
	text, err := os.ReadFile(filepath.Join(p.tenant.AccessDir(), "client.crt"))
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(text)
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	if certificate.Subject.CommonName != DriverName || !slices.Equal(certificate.Subject.Organization, []string{DriverName}) {
		t.Errorf("the driver is %s; its group must be the one of examples/rbac.yaml and no other", certificate.Subject)
	}
	secret := []string{filepath.Join(p.tenant.AccessDir(), "client.key")}
	keys, err := filepath.Glob(filepath.Join(p.tenant.PKIDir(), "*.key"))
	if err != nil || len(keys) < 3 {
		t.Fatalf("keys are %v, %v", keys, err)
	}
	for _, path := range append(secret, keys...) {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v; only its owner may read it", path, info.Mode(), err)
		}
	}
}

func TestServersName(t *testing.T) {
	p := plane(t, "")
	text, err := os.ReadFile(p.keys.file("apiserver.crt"))
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(text)
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	// The host, the nodes, and the kubernetes service.
	for _, name := range []string{"127.0.0.1", "127.77.0.1", "127.77.240.1", "localhost"} {
		if err := certificate.VerifyHostname(name); err != nil {
			t.Error(err)
		}
	}
}

func TestFlags(t *testing.T) {
	p := plane(t, "")
	flags := apiserverFlags(p.tenant, p.keys, p.plan.Host(), p.plan.Services(), 24444, 24445, "policy")
	for _, want := range []string{
		"--bind-address=127.0.0.1", "--secure-port=24444", "--etcd-servers=http://127.0.0.1:24445",
		"--authorization-mode=Node,RBAC", "--audit-log-path=" + p.tenant.AuditLog(),
	} {
		if !slices.Contains(flags, want) {
			t.Errorf("the apiserver has no flag %s", want)
		}
	}
	if !strings.Contains(auditPolicy, "users: ["+DriverName+"]") {
		t.Error("the audit policy is not about the driver")
	}
}

func TestKCPIsApart(t *testing.T) {
	p := plane(t, "")
	flags := kcpFlags(p.keys, p.tenant, p.plan.Host(), 24447, 24445)
	for _, want := range []string{
		"--bind-address=127.0.0.1", "--secure-port=24447", "--etcd-servers=http://127.0.0.1:24445", "--etcd-prefix=/kcp",
		"--client-ca-file=" + p.tenant.KCPAuthority(),
	} {
		if !slices.Contains(flags, want) {
			t.Errorf("the kcp side has no flag %s", want)
		}
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(p.keys.Authority.Certificate())
	block, _ := pem.Decode(p.keys.KCP.Admin.Certificate)
	admin, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := admin.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err == nil {
		t.Error("the administrator of the kcp side is one of the tenant too")
	}
}

func TestComponentThatFails(t *testing.T) {
	p := plane(t, "echo \"$1 has no disk\" >&2\nexit 7\n")
	err := p.Start(t.Context(), func(step string) { t.Errorf("%s is said to be up", step) })
	if err == nil {
		t.Fatal("a control plane without etcd is up")
	}
	for _, want := range []string{"etcd has ended", "exit status 7", "etcd has no disk"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not say %q: %v", want, err)
		}
	}
	for _, component := range p.Components() {
		if component.Running || component.PID != 0 {
			t.Errorf("%s is said to run", component.Name)
		}
	}
}

func TestKillAndStartOutOfTurn(t *testing.T) {
	p := plane(t, "exec sleep 1000\n")
	if err := p.KillAPIServer(); !errors.Is(err, ErrStopped) {
		t.Errorf("killed before its start: %v, want ErrStopped", err)
	}
	if err := p.start(apiserver, nil); err != nil {
		t.Fatal(err)
	}
	if err := p.StartAPIServer(t.Context(), 0); !errors.Is(err, ErrRunning) {
		t.Errorf("started twice: %v, want ErrRunning", err)
	}
	if state := p.APIServer(); !state.Running || state.PID == 0 {
		t.Errorf("state is %+v", state)
	}
	if err := p.KillAPIServer(); err != nil {
		t.Fatal(err)
	}
	if state := p.APIServer(); state.Running || state.PID != 0 {
		t.Errorf("after the kill its state is %+v", state)
	}
}

func TestPublish(t *testing.T) {
	p := plane(t, "")
	for _, port := range []int{24444, 24446} {
		p.port = port
		if err := p.publish(); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(p.tenant.ClusterURL())
		if err != nil || string(text) != p.URL()+"\n" {
			t.Errorf("cluster-url is %q, %v; want %s", text, err, p.URL())
		}
	}
}
