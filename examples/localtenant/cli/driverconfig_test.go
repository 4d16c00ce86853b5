package cli

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/pelletier/go-toml/v2"

	"github.com/socialweb-computer/tenant-executor/examples/localtenant/controlplane"
	"github.com/socialweb-computer/tenant-executor/examples/localtenant/daemon"
)

func TestDriverConfig(t *testing.T) {
	details := &daemon.Details{
		URL: "https://127.0.0.1:24444", AccessDir: "/state/it's \"here\"/access",
		Registry: daemon.RegistryStatus{Plain: "10.201.0.1:5000"},
		KCP:      controlplane.KCP{Kubeconfig: "/state/demo/kcp.kubeconfig", Cluster: "demo"},
	}
	kubernetes := map[string]any{
		"namespace": "ci", "image": "10.201.0.1:5000/localtenant/busybox:1", "helper_image": "10.201.0.1:5000/localtenant/helper:1",
	}
	cluster := func(more map[string]any) map[string]any {
		for key, name := range map[string]string{"ca_file": "ca.crt", "cert_file": "client.crt", "key_file": "client.key"} {
			more[key] = details.AccessDir + "/" + name
		}
		return more
	}
	for discover, want := range map[bool]map[string]any{
		false: cluster(map[string]any{"url": "https://127.0.0.1:24444"}),
		true:  cluster(map[string]any{"discover_kubeconfig": "/state/demo/kcp.kubeconfig", "discover_cluster": "demo"}),
	} {
		text, err := toml.Marshal(newDriverConfig(details, discover))
		if err != nil {
			t.Fatal(err)
		}
		var got map[string]any
		if err := toml.Unmarshal(text, &got); err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		if diff := cmp.Diff(map[string]any{"cluster": want, "kubernetes": kubernetes}, got); diff != "" {
			t.Errorf("discover %v (-want +got):\n%s", discover, diff)
		}
	}
}
