package settings_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/socialweb-computer/tenant-executor/executor/settings"
)

// inherited is as another file would have it.
func inherited() settings.Inherited {
	return settings.Inherited{
		"cluster":    {"url": "https://127.0.0.1:1", "ca_file": "/other/ca.crt", "cert_file": "/other/client.crt", "key_file": "/other/client.key"},
		"kubernetes": {"helper_image": "inherited:1", "image": "inherited:2", "node_selector": map[string]any{"pool": "a", "zone": "b"}, "cpu_limit": "3"},
		"job":        {"builds_dir": "/inherited"},
		"warm":       {"pause_pod_image": "pause:1", "policy": []any{map[string]any{"idle_count": int64(2)}}},
	}
}

func over(t *testing.T, text string) (settings.Settings, error) {
	t.Helper()
	draft, err := settings.Read("driver.toml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return draft.Over(inherited(), "config.toml")
}

// A file that says nothing has what it inherits, with the defaults.
func TestInheritsAll(t *testing.T) {
	s, err := over(t, "[inherit]\nconfig_file = \"/x/config.toml\"\n")
	if err != nil {
		t.Fatal(err)
	}
	want := settings.Defaults()
	want.Inherit.ConfigFile = "/x/config.toml"
	want.Cluster = settings.Cluster{URL: "https://127.0.0.1:1", CAFile: "/other/ca.crt", CertFile: "/other/client.crt", KeyFile: "/other/client.key", Transport: "spdy"}
	want.Kubernetes.HelperImage, want.Kubernetes.Image, want.Kubernetes.CPULimit = "inherited:1", "inherited:2", "3"
	want.Kubernetes.NodeSelector = map[string]string{"pool": "a", "zone": "b"}
	want.Job.BuildsDir = "/inherited"
	want.Warm.PausePodImage, want.Warm.Policies = "pause:1", []settings.Policy{{IdleCount: 2}}
	if diff := cmp.Diff(want, s); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// What the file says wins, each key as a whole, the empty value too.
func TestOwnKeysWin(t *testing.T) {
	s, err := over(t, `
[kubernetes]
image = ""
node_selector = { own = "c" }
cpu_request = "1"
[job]
cache_dir = "/own"
[[warm.policy]]
idle_count = 7
`)
	if err != nil {
		t.Fatal(err)
	}
	if s.Kubernetes.Image != "" || s.Kubernetes.CPULimit != "3" || s.Kubernetes.CPURequest != "1" || s.Kubernetes.HelperImage != "inherited:1" ||
		s.Job.BuildsDir != "/inherited" || s.Job.CacheDir != "/own" || s.Warm.PausePodImage != "pause:1" {
		t.Errorf("got %+v", s)
	}
	if diff := cmp.Diff(map[string]string{"own": "c"}, s.Kubernetes.NodeSelector); diff != "" {
		t.Errorf("the selectors are mixed:\n%s", diff)
	}
	if diff := cmp.Diff([]settings.Policy{{IdleCount: 7}}, s.Warm.Policies); diff != "" {
		t.Errorf("the policies are mixed:\n%s", diff)
	}
}

// The file's own way to the cluster stands alone.
func TestOwnCluster(t *testing.T) {
	for _, test := range []struct {
		text string
		want settings.Cluster
	}{
		{"url = \"https://127.0.0.1:2\"", settings.Cluster{URL: "https://127.0.0.1:2", CAFile: "/other/ca.crt", CertFile: "/other/client.crt", KeyFile: "/other/client.key"}},
		{"in_cluster = true", settings.Cluster{InCluster: true}},
		{"discover_cluster = \"acme\"\ndiscover_kubeconfig = \"/x/kcp\"", settings.Cluster{
			DiscoverCluster: "acme", DiscoverKubeconfig: "/x/kcp", CAFile: "/other/ca.crt", CertFile: "/other/client.crt", KeyFile: "/other/client.key"}},
	} {
		s, err := over(t, "[cluster]\n"+test.text)
		if err != nil {
			t.Errorf("%s: %v", test.text, err)
		}
		test.want.Transport = settings.Defaults().Cluster.Transport
		if diff := cmp.Diff(test.want, s.Cluster); diff != "" {
			t.Errorf("%s:\n%s", test.text, diff)
		}
	}
}

// What is wrong together names both files.
func TestWrongTogether(t *testing.T) {
	_, err := over(t, "[kubernetes]\ncpu_request = \"4\"")
	if err == nil {
		t.Fatal("accepted")
	}
	for _, part := range []string{"driver.toml", "config.toml", "kubernetes.cpu_request is 4", "cpu_limit, which is 3"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%v lacks %q", err, part)
		}
	}
}

func TestAccept(t *testing.T) {
	for _, test := range []struct {
		table, key string
		value      any
		want       string // of the error, "" for none
	}{
		{"kubernetes", "image", "debian:12", ""},
		{"kubernetes", "node_selector", map[string]any{"a": "b"}, ""},
		{"kubernetes", "image", int64(3), "string"},
		{"kubernetes", "nosuchkey", "x", "no key kubernetes.nosuchkey"},
		{"warm", "policy", []any{map[string]any{"idle_count": int64(1), "strange": true}}, "unknown: strange"},
	} {
		err := settings.Accept(test.table, test.key, test.value)
		var refused *settings.NotAcceptedError
		switch {
		case test.want == "" && err != nil:
			t.Errorf("%s.%s = %v: %v", test.table, test.key, test.value, err)
		case test.want != "" && (!errors.As(err, &refused) || !strings.Contains(err.Error(), test.want)):
			t.Errorf("%s.%s = %v: error %v, want one with %q", test.table, test.key, test.value, err, test.want)
		}
	}
}
