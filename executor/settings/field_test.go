package settings_test

import (
	"testing"

	"github.com/socialweb-computer/tenant-executor/executor/settings"
)

// The resources of the containers have a limit for jobs each.
func TestLimited(t *testing.T) {
	k := settings.Defaults().Kubernetes
	got := map[string]string{}
	for _, f := range k.Limited() {
		got[f.Key] = f.LimitKey
	}
	for _, container := range []string{"", "helper_"} {
		for _, resource := range []string{"cpu", "memory", "ephemeral_storage"} {
			for _, side := range []string{"_request", "_limit"} {
				key := container + resource + side
				if got[key] != key+"_overwrite_max_allowed" {
					t.Errorf("%s is limited by %q", key, got[key])
				}
			}
		}
	}
}

func TestFields(t *testing.T) {
	k := settings.Kubernetes{Namespace: "ci", PodLabels: map[string]string{"a": "b"}}
	namespace, _ := k.Field("namespace")
	labels, _ := k.Field("pod_labels")
	if namespace.Text() != "ci" || namespace.Map() != nil || labels.Map()["a"] != "b" || labels.Text() != "" {
		t.Errorf("got %q %v, %q %v", namespace.Text(), namespace.Map(), labels.Text(), labels.Map())
	}
	if !namespace.SetText("other") || namespace.SetMap(nil) || labels.SetText("x") || !labels.SetMap(nil) {
		t.Error("a key takes what it cannot hold, or does not take what it can")
	}
	if k.Namespace != "other" || k.PodLabels != nil {
		t.Errorf("got %q, %v", k.Namespace, k.PodLabels)
	}
	namespace.Take(&settings.Kubernetes{Namespace: "third"})
	if k.Namespace != "third" {
		t.Errorf("took %q", k.Namespace)
	}
	if missing, found := k.Field("nosuchkey"); found || missing.Text() != "" {
		t.Errorf("found %+v", missing)
	}
	seen := map[string]bool{}
	for _, f := range k.Fields() {
		if f.Key == "" || seen[f.Key] {
			t.Errorf("key %q of %s is empty or there twice", f.Key, f.Name)
		}
		seen[f.Key] = true
	}
}
