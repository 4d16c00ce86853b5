package cli

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/pelletier/go-toml/v2"

	"github.com/socialweb-computer/tenant-executor/examples/localtenant/daemon"
)

func TestDriverConfig(t *testing.T) {
	details := &daemon.Details{
		URL: "https://127.0.0.1:24444", AccessDir: "/state/it's \"here\"/access",
		Registry: daemon.RegistryStatus{Plain: "10.201.0.1:5000"},
	}
	want := map[string]any{
		"cluster": map[string]any{
			"url":       "https://127.0.0.1:24444",
			"ca_file":   details.AccessDir + "/ca.crt",
			"cert_file": details.AccessDir + "/client.crt",
			"key_file":  details.AccessDir + "/client.key",
		},
		"kubernetes": map[string]any{
			"namespace":    "ci",
			"image":        "10.201.0.1:5000/localtenant/busybox:1",
			"helper_image": "10.201.0.1:5000/localtenant/helper:1",
		},
	}
	text, err := toml.Marshal(newDriverConfig(details))
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := toml.Unmarshal(text, &got); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("configuration (-want +got):\n%s", diff)
	}
}
