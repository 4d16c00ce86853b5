package node

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	kubelet "k8s.io/kubelet/config/v1beta1"
	"sigs.k8s.io/yaml"

	"github.com/socialweb-computer/tenant-executor/examples/localtenant/faults"
	"github.com/socialweb-computer/tenant-executor/examples/localtenant/network"
	"github.com/socialweb-computer/tenant-executor/examples/localtenant/pki"
	"github.com/socialweb-computer/tenant-executor/examples/localtenant/tenant"
)

// noCluster is an API that knows no node.
type noCluster struct{ refuse error }

func (c noCluster) DeleteNode(context.Context, string) error { return c.refuse }
func (noCluster) NodeReady(string) bool                      { return false }

func manager(t *testing.T, cluster Cluster) *Manager {
	t.Helper()
	place, err := tenant.New(filepath.Join(t.TempDir(), "root"), "demo")
	if err != nil {
		t.Fatal(err)
	}
	if err := place.MakeDirs(); err != nil {
		t.Fatal(err)
	}
	plan, err := network.NewPlan("10.201.0.0/16")
	if err != nil {
		t.Fatal(err)
	}
	issuer, err := pki.NewAuthority("test", time.Now)
	if err != nil {
		t.Fatal(err)
	}
	return NewManager(Options{
		Tenant: place, Plan: plan, Issuer: issuer, Cluster: cluster, Door: "10.201.0.1:6443",
		Paths:    Paths{Self: "/bin/localtenant", Components: "/cache/components", Containerd: "/usr/bin/containerd"},
		Registry: Registry{Addresses: []string{"10.201.0.1:5000", "10.201.0.1:5001"}, PauseImage: "10.201.0.1:5000/localtenant/pause:1"},
		Faults:   &faults.Agenda{},
		Log:      slog.New(slog.DiscardHandler), Changed: func() {},
	})
}

func TestNamesAreFresh(t *testing.T) {
	m := manager(t, noCluster{})
	seen := map[string]bool{}
	for range 20 {
		n, err := m.reserve("")
		if err != nil {
			t.Fatal(err)
		}
		if seen[n.name] || !strings.HasPrefix(n.name, "demo-node-") {
			t.Errorf("the name %q is not fresh", n.name)
		}
		seen[n.name] = true
	}
	if _, err := m.reserve("worker"); err != nil {
		t.Fatal(err)
	}
	delete(m.nodes, "worker")
	for _, name := range []string{"worker", "control", "Worker", "a/b", "..", "-a", strings.Repeat("a", 43)} {
		if _, err := m.reserve(name); !errors.Is(err, ErrName) {
			t.Errorf("reserve(%q) gave %v, want ErrName", name, err)
		}
	}
}

func TestSlotsGoRound(t *testing.T) {
	m := manager(t, noCluster{})
	for want := 1; want <= network.MaxSlots; want++ {
		n, err := m.reserve("")
		if err != nil || n.slot != want {
			t.Fatalf("slot %d, %v; want %d", n.slot, err, want)
		}
		if want == 3 {
			delete(m.nodes, n.name)
		}
	}
	n, err := m.reserve("")
	if err != nil || n.slot != 3 {
		t.Errorf("slot %d, %v; want the free one, 3", n.slot, err)
	}
	if _, err := m.reserve(""); !errors.Is(err, ErrFull) {
		t.Errorf("one too many gave %v, want ErrFull", err)
	}
}

func TestVerbsOnNodesThatCannot(t *testing.T) {
	m := manager(t, noCluster{})
	if _, err := m.reserve("starting"); err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	for _, test := range []struct {
		name string
		do   func() error
		want error
	}{
		{"remove an unknown node", func() error { return m.Remove(ctx, "none") }, ErrUnknown},
		{"kill an unknown node", func() error { return m.Kill("none") }, ErrUnknown},
		{"remove a node that starts", func() error { return m.Remove(ctx, "starting") }, ErrBusy},
		{"kill a node without processes", func() error { return m.Kill("starting") }, ErrKilled},
		{"cut a node without processes", func() error { return m.Cut(ctx, "starting") }, ErrKilled},
		{"restart a kubelet that is not there", func() error { return m.RestartKubelet(ctx, "starting") }, ErrKilled},
	} {
		if err := test.do(); !errors.Is(err, test.want) {
			t.Errorf("%s: %v, want %v", test.name, err, test.want)
		}
	}
	if m.Count() != 0 || len(m.List()) != 1 {
		t.Errorf("a node that starts: count %d, listed %d; want 0 and 1", m.Count(), len(m.List()))
	}
}

func TestObjectStaysWhileTheAPIIsDown(t *testing.T) {
	m := manager(t, noCluster{refuse: errors.New("connection refused")})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := m.deleteObject(ctx, "a"); err == nil || !strings.Contains(err.Error(), "stays") {
		t.Errorf("%v; want to be told that the object stays", err)
	}
}

func TestDiskOfANode(t *testing.T) {
	m := manager(t, noCluster{})
	n, err := m.reserve("worker")
	if err != nil {
		t.Fatal(err)
	}
	if err := n.write(); err != nil {
		t.Fatal(err)
	}
	read := func(name string) string {
		t.Helper()
		text, err := os.ReadFile(n.file(name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for name, wants := range map[string][]string{
		"containerd.toml":                    {`sandbox_image = "10.201.0.1:5000/localtenant/pause:1"`, "restrict_oom_score_adj = true", n.file("certs.d")},
		"cni.d/10-bridge.conflist":           {`"subnet": "10.201.1.0/24"`, `"ipMasq": false`},
		"certs.d/10.201.0.1:5000/hosts.toml": {`[host."http://10.201.0.1:5000"]`},
		"certs.d/10.201.0.1:5001/hosts.toml": {`server = "http://10.201.0.1:5001"`},
		"resolv.conf":                        {"nameserver 10.201.0.1\n"},
		"hosts":                              {"10.201.0.2 worker\n"},
	} {
		for _, want := range wants {
			if text := read(name); !strings.Contains(text, want) {
				t.Errorf("%s does not hold %q:\n%s", name, want, text)
			}
		}
	}
	var config kubelet.KubeletConfiguration
	if err := yaml.UnmarshalStrict([]byte(read("kubelet.yaml")), &config); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"10.201.0.1"}, config.ClusterDNS); diff != "" {
		t.Errorf("cluster DNS (-want +got):\n%s", diff)
	}
	if config.CgroupRoot != n.tenant.NodeCgroup("worker") {
		t.Errorf("the kubelet's cgroup root is %s", config.CgroupRoot)
	}
}

// TestMountsKeepTheirOrder: a folder that covers others comes before what must
// be seen inside of it.
func TestMountsKeepTheirOrder(t *testing.T) {
	m := manager(t, noCluster{})
	n, err := m.reserve("worker")
	if err != nil {
		t.Fatal(err)
	}
	position := map[string]int{}
	for i, mount := range n.mounts() {
		position[mount.Target] = i
	}
	for _, folder := range disk() {
		for _, kept := range []string{n.file("."), n.tenant.NodeLogDir("worker")} {
			if position[folder] > position[kept] {
				t.Errorf("%s would cover %s", folder, kept)
			}
		}
	}
}
