package cli

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/pelletier/go-toml/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/socialweb-computer/tenant-executor/examples/localtenant/controlplane"
	"github.com/socialweb-computer/tenant-executor/examples/localtenant/daemon"
	"github.com/socialweb-computer/tenant-executor/examples/localtenant/gateway"
)

func TestDriverConfig(t *testing.T) {
	details := &daemon.Details{
		URL: "https://127.0.0.1:24444", AccessDir: "/state/it's \"here\"/access",
		Registry: daemon.RegistryStatus{Plain: "10.201.0.1:5000"},
		KCP:      controlplane.KCP{Kubeconfig: "/state/demo/kcp.kubeconfig", Cluster: "demo"},
		Gateway: gateway.Status{Settings: gateway.Settings{
			Ceiling: 3, PodsPerNode: 1, Hold: metav1.Duration{Duration: 90 * time.Second},
		}},
	}
	kubernetes := map[string]any{
		"namespace": "ci", "image": "10.201.0.1:5000/localtenant/busybox:1", "helper_image": "10.201.0.1:5000/localtenant/helper:1",
	}
	tenant := map[string]any{"ceiling": int64(3), "pods_per_node": int64(1), "hold": "1m30s"}
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
		if diff := cmp.Diff(map[string]any{"cluster": want, "tenant": tenant, "kubernetes": kubernetes}, got); diff != "" {
			t.Errorf("discover %v (-want +got):\n%s", discover, diff)
		}
	}
}
