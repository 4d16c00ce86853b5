package cluster_test

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/socialweb-computer/tenant-executor/kube/cluster"
	"github.com/socialweb-computer/tenant-executor/kube/faultserver"
)

// notes is a Memory.
type notes map[string][]byte

func (n notes) ReadFile(name string) ([]byte, error) {
	if data, ok := n[name]; ok {
		return data, nil
	}
	return nil, fs.ErrNotExist
}

func (n notes) WriteFile(name string, data []byte) error {
	n[name] = data
	return nil
}

var errMount = errors.New("it is the mount")

// discovery is the way to a cluster of a Workspace.
func discovery(t *testing.T, w *faultserver.Workspace) cluster.Discovery {
	t.Helper()
	return cluster.Discovery{
		Kubeconfig: w.Kubeconfig(t), Name: "acme", UserAgent: "test", Memory: notes{},
		Acceptable: func(url string) error {
			if strings.Contains(url, "/clusters/") {
				return errMount
			}
			return nil
		},
	}
}

const (
	acme    = "tenancy.example.com/v1alpha1/clusters/acme"
	address = "https://127.0.0.1:36443"
)

func wantFound(t *testing.T, d cluster.Discovery, want string) {
	t.Helper()
	url, fallen, err := d.Find(t.Context())
	if url != want || fallen != nil || err != nil {
		t.Errorf("found %q, %v, %v; want %q", url, fallen, err, want)
	}
}

// The object is found by API discovery, in either form, and from then on
// without it.
func TestFind(t *testing.T) {
	t.Parallel()
	for name, legacy := range map[string]bool{"aggregated": false, "of old": true} {
		w := faultserver.StartWorkspace(t)
		if legacy {
			w.SetLegacy()
		}
		w.SetCluster(acme, address+"/")
		d := discovery(t, w)
		if got := d.Remembered(); got != "" {
			t.Errorf("%s: %q is remembered of nothing", name, got)
		}
		wantFound(t, d, address)
		if got := d.Remembered(); got != address {
			t.Errorf("%s: %q is remembered", name, got)
		}
		before := len(w.Requests())
		w.SetCluster(acme, "https://127.0.0.1:40000")
		wantFound(t, d, "https://127.0.0.1:40000")
		if diff := cmp.Diff([]string{"/apis/" + acme}, w.Requests()[before:]); diff != "" {
			t.Errorf("%s: the second look-up asked for (-want +got):\n%s", name, diff)
		}
	}
}

// Wherever the objects are.
func TestFindChooses(t *testing.T) {
	t.Parallel()
	group := func(name string, namespaced bool) faultserver.Group {
		return faultserver.Group{Name: name, Version: "v1", Resources: []string{"clusters"}, Namespaced: namespaced}
	}
	tests := []struct {
		name   string
		groups []faultserver.Group
		path   string
		change func(*cluster.Discovery)
	}{
		{"another group", []faultserver.Group{group("x.example.com", false)}, "x.example.com/v1/clusters/acme", func(*cluster.Discovery) {}},
		{"in the default namespace", []faultserver.Group{group("x.example.com", true)}, "x.example.com/v1/namespaces/default/clusters/acme", func(*cluster.Discovery) {}},
		{"in the context's namespace", []faultserver.Group{group("x.example.com", true)}, "x.example.com/v1/namespaces/team/clusters/acme",
			func(d *cluster.Discovery) { d.Context = "two" }},
		{"of two groups", []faultserver.Group{group("a.example.com", false), group("b.example.com", false)}, "b.example.com/v1/clusters/acme",
			func(d *cluster.Discovery) { d.Resource = "clusters.b.example.com" }},
		{"under another name", []faultserver.Group{{Name: "c.example.com", Version: "v1", Resources: []string{"tenants"}}}, "c.example.com/v1/tenants/acme",
			func(d *cluster.Discovery) { d.Resource = "tenants.c.example.com" }},
	}
	for _, test := range tests {
		for _, legacy := range []bool{false, true} {
			w := faultserver.StartWorkspace(t)
			if legacy {
				w.SetLegacy()
			}
			w.SetGroups(test.groups...)
			w.SetCluster(test.path, address)
			d := discovery(t, w)
			test.change(&d)
			t.Run(test.name, func(t *testing.T) { wantFound(t, d, address) })
		}
	}
}

// Each trouble has its kind and its words.
func TestFindFails(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		change func(*testing.T, *faultserver.Workspace, *cluster.Discovery)
		kind   cluster.FindKind
		want   string
	}{
		{"no object", func(_ *testing.T, w *faultserver.Workspace, _ *cluster.Discovery) { w.SetObject(acme, "") },
			cluster.NoObject, `there is no clusters.tenancy.example.com "acme" at URL`},
		{"no status", func(_ *testing.T, w *faultserver.Workspace, _ *cluster.Discovery) { w.SetObject(acme, `{"spec": {}}`) },
			cluster.NoURL, `clusters.tenancy.example.com "acme" at URL has no .status.url: no apiserver runs for it yet`},
		{"a phase alone", func(_ *testing.T, w *faultserver.Workspace, _ *cluster.Discovery) {
			w.SetObject(acme, `{"status": {"phase": "Provisioning"}}`)
		}, cluster.NoURL, `(its phase is "Provisioning")`},
		{"another kind of status", func(_ *testing.T, w *faultserver.Workspace, _ *cluster.Discovery) {
			w.SetObject(acme, `{"status": {"url": 7}}`)
		},
			cluster.NoURL, "cannot be understood"},
		{"the mount", func(_ *testing.T, w *faultserver.Workspace, _ *cluster.Discovery) {
			w.SetCluster(acme, "https://kcp.example.com/clusters/root:acme")
		}, cluster.BadURL, "it is the mount"},
		{"forbidden", func(_ *testing.T, w *faultserver.Workspace, _ *cluster.Discovery) {
			w.Refuse(http.StatusForbidden, metav1.StatusReasonForbidden, "clusters is forbidden")
		}, cluster.Refused, "the kcp side at URL (KUBECONFIG) does not let its user in: clusters is forbidden"},
		{"unknown user", func(t *testing.T, _ *faultserver.Workspace, d *cluster.Discovery) {
			write(t, d.Kubeconfig, strings.Replace(read(t, d.Kubeconfig), "workspace-token", "old-token", 1))
		}, cluster.Refused, "does not let its user in"},
		{"another CA", func(t *testing.T, _ *faultserver.Workspace, d *cluster.Discovery) {
			other := faultserver.Start(t).Credentials(t).CAFile
			write(t, d.Kubeconfig, strings.Replace(read(t, d.Kubeconfig), "ca.crt", other, 1))
		}, cluster.Refused, "unknown authority"},
		{"no such API", func(_ *testing.T, w *faultserver.Workspace, _ *cluster.Discovery) { w.SetGroups() },
			cluster.NoResource, `no API group at URL serves "clusters"`},
		{"two such APIs", func(_ *testing.T, w *faultserver.Workspace, _ *cluster.Discovery) {
			w.SetGroups(faultserver.Group{Name: "b.io", Version: "v1", Resources: []string{"clusters"}}, faultserver.Group{Name: "a.io", Version: "v1", Resources: []string{"clusters"}})
		}, cluster.Ambiguous, `several API groups at URL serve "clusters": clusters.a.io, clusters.b.io`},
		{"no kubeconfig", func(_ *testing.T, _ *faultserver.Workspace, d *cluster.Discovery) { d.Kubeconfig = "/nowhere/kcp" },
			cluster.Unusable, "the kubeconfig of the kcp side: /nowhere/kcp: no such file or directory"},
		{"no context", func(_ *testing.T, _ *faultserver.Workspace, d *cluster.Discovery) { d.Context = "three" },
			cluster.Unusable, `it has no context "three"; it has "one", "two"`},
		{"no YAML", func(t *testing.T, _ *faultserver.Workspace, d *cluster.Discovery) { write(t, d.Kubeconfig, "{") },
			cluster.Unusable, "KUBECONFIG: "},
		{"a token that others can read", func(t *testing.T, _ *faultserver.Workspace, d *cluster.Discovery) { chmod(t, d.Kubeconfig, 0o644) },
			cluster.Unusable, "KUBECONFIG: others can read it (mode 0644)"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w := faultserver.StartWorkspace(t)
			w.SetCluster(acme, address)
			d := discovery(t, w)
			test.change(t, w, &d)
			url, _, err := d.Find(t.Context())
			var find *cluster.FindError
			if !errors.As(err, &find) || find.Kind != test.kind || url != "" {
				t.Fatalf("got %q, %v; want a *FindError of kind %d", url, err, test.kind)
			}
			text := strings.NewReplacer(w.URL(), "URL", d.Kubeconfig, "KUBECONFIG").Replace(err.Error())
			if d.Kubeconfig == "/nowhere/kcp" {
				text = err.Error()
			}
			if !strings.Contains(text, test.want) || strings.Contains(text, "workspace-token") {
				t.Errorf("got %s\nwant %s", text, test.want)
			}
		})
	}
}

// Without kcp the cluster is where it was last. A word of kcp's counts all the
// same: an object that is gone is gone.
func TestFindWithoutKCP(t *testing.T) {
	t.Parallel()
	w := faultserver.StartWorkspace(t)
	w.SetCluster(acme, address)
	d := discovery(t, w)
	wantFound(t, d, address)
	for name, trouble := range map[string]func(){
		"down": w.Down,
		"starting": func() {
			w.Up(t)
			w.Refuse(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, "starting")
		},
	} {
		trouble()
		url, fallen, err := d.Find(t.Context())
		var find *cluster.FindError
		if url != address || err != nil || !errors.As(fallen, &find) || find.Kind != cluster.Silent {
			t.Errorf("%s: found %q, %v, %v", name, url, fallen, err)
		}
		w.Down()
	}
	w.Up(t)
	w.Refuse(0, "", "")
	w.SetObject(acme, "")
	if url, _, err := d.Find(t.Context()); err == nil {
		t.Errorf("the object is gone, and %q was found", url)
	}
	w.Down()
	d.Memory = notes{}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, _, err := d.Find(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("the caller ended it: %v", err)
	}
}

// What is remembered is a hint: damaged or dangerous, it counts as nothing.
func TestMemoryIsNotTrusted(t *testing.T) {
	t.Parallel()
	w := faultserver.StartWorkspace(t)
	w.SetCluster(acme, address)
	d := discovery(t, w)
	wantFound(t, d, address)
	kept := maps.Clone(d.Memory.(notes))
	for name, data := range kept {
		for i := range data {
			d.Memory = notes{name: data[:i]}
			if got := d.Remembered(); got != "" {
				t.Fatalf("%d bytes: %q is remembered", i, got)
			}
		}
		d.Memory = notes{name: []byte(strings.Replace(string(data), "36443", "36443/clusters/x", 1))}
		if got := d.Remembered(); got != "" {
			t.Errorf("the mount is remembered: %q", got)
		}
		d.Memory = notes{name: []byte(strings.Replace(string(data), "v1alpha1", "v1", 1))}
		wantFound(t, d, address) // the API is in another version by now
	}
	other := d
	other.Name = "another"
	other.Memory = kept
	if got := other.Remembered(); got != "" {
		t.Errorf("another cluster is remembered at %q", got)
	}
}
