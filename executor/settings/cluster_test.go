package settings_test

import (
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/socialweb-computer/tenant-executor/executor/settings"
)

const (
	helper    = "[kubernetes]\nhelper_image = \"helper:1\"\n"
	files     = "ca_file = \"/x/ca.crt\"\ncert_file = \"/x/client.crt\"\nkey_file = \"/x/client.key\"\n"
	discovery = "discover_cluster = \"acme\"\ndiscover_kubeconfig = \"/x/kcp\"\n"
)

// One way to the cluster is needed, and not two.
func TestWaysToTheCluster(t *testing.T) {
	for _, text := range []string{
		"url = \"https://127.0.0.1:1\"\n" + files,
		discovery + files,
		discovery + "discover_context = \"c\"\ndiscover_resource = \"clusters.example.com\"\n" + files,
		"in_cluster = true\n",
		"in_cluster = false\nurl = \"https://127.0.0.1:1\"\n" + files,
	} {
		if _, err := settings.Parse("f", []byte("[cluster]\n"+text+helper)); err != nil {
			t.Errorf("refused: %v\nin\n%s", err, text)
		}
	}
	for _, test := range []struct {
		name, text string
		want       []string
	}{
		{"none", files, []string{"cluster.url is not set", "cluster.discover_cluster", "cluster.in_cluster"}},
		{"in_cluster off", "in_cluster = false\n" + files, []string{"cluster.url is not set"}},
		{"two", "url = \"https://127.0.0.1:1\"\n" + discovery + files, []string{"cluster.url and cluster.discover_cluster are set: keep one"}},
		{"three", "url = \"https://127.0.0.1:1\"\nin_cluster = true\n" + discovery, []string{"cluster.url and cluster.discover_cluster and cluster.in_cluster are set"}},
		{"files in a Pod", "in_cluster = true\n" + files, []string{"cluster.ca_file is set beside cluster.in_cluster", "cluster.cert_file", "cluster.key_file"}},
		{"no files", discovery, []string{"cluster.ca_file is not set", "cluster.cert_file is not set", "cluster.key_file is not set"}},
		{"no kubeconfig", "discover_cluster = \"acme\"\n" + files, []string{"cluster.discover_kubeconfig is not set"}},
		{"relative kubeconfig", "discover_cluster = \"acme\"\ndiscover_kubeconfig = \"kcp\"\n" + files, []string{"cluster.discover_kubeconfig", "whole path"}},
		{"no name", "discover_kubeconfig = \"/x\"\ndiscover_context = \"c\"\ndiscover_resource = \"clusters.a\"\nurl = \"https://127.0.0.1:1\"\n" + files,
			[]string{"discover_kubeconfig is set without", "discover_context is set without", "discover_resource is set without"}},
		{"no group", discovery + "discover_resource = \"clusters\"\n" + files, []string{"cluster.discover_resource", "clusters.example.com"}},
		{"a path", "discover_cluster = \"a/b\"\ndiscover_kubeconfig = \"/x\"\n" + files, []string{"cluster.discover_cluster", "alone"}},
		{"no boolean", "in_cluster = \"yes\"\n", []string{"in_cluster"}},
		{"state folder", "in_cluster = true\n[state]\ndir = \"state\"\n", []string{"state.dir", "whole path"}},
	} {
		_, err := settings.Parse("f", []byte("[cluster]\n"+test.text+helper))
		if err == nil {
			t.Errorf("%s: accepted", test.name)
			continue
		}
		for _, part := range test.want {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: the error lacks %q:\n%v", test.name, part, err)
			}
		}
	}
}

// The example of a runner in a Pod carries a whole configuration file.
func TestConfigurationInTheManifest(t *testing.T) {
	text, err := os.ReadFile("../../examples/in-cluster-runner.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, document := range strings.Split(string(text), "\n---\n") {
		var config corev1.ConfigMap
		if !strings.Contains(document, "kind: ConfigMap") {
			continue
		}
		if err := yaml.UnmarshalStrict([]byte(document), &config); err != nil {
			t.Fatal(err)
		}
		s, err := settings.Parse("config.toml", []byte(config.Data["config.toml"]))
		if err != nil || !s.Cluster.InCluster {
			t.Errorf("%+v, %v", s.Cluster, err)
		}
		return
	}
	t.Error("the manifest has no ConfigMap")
}
