//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/socialweb-computer/tenant-executor/examples/testbed"
)

// clusterDefinition has a real apiserver serve Cluster objects.
const clusterDefinition = `{
  "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
  "metadata": {"name": "clusters.e2e.example.com"},
  "spec": {
    "group": "e2e.example.com", "scope": "Cluster",
    "names": {"plural": "clusters", "singular": "cluster", "kind": "Cluster"},
    "versions": [{
      "name": "v1alpha1", "served": true, "storage": true, "subresources": {"status": {}},
      "schema": {"openAPIV3Schema": {"type": "object", "properties": {"status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}}
    }]
  }
}`

// The Cluster object is found on a real apiserver, by its own discovery: the
// tenant's apiserver plays the kcp side. Every stage of a job works so.
func TestDiscoveryOfARealAPIServer(t *testing.T) {
	const definitions, objects = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "/apis/e2e.example.com/v1alpha1/clusters"
	ctx := limited(t, 2*time.Minute)
	status, err := bed.Status(ctx)
	if err != nil {
		t.Fatal(err)
	}
	api := admin(t).RESTClient()
	if err := api.Post().AbsPath(definitions).Body([]byte(clusterDefinition)).Do(ctx).Error(); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = api.Delete().AbsPath(definitions, "clusters.e2e.example.com").Do(context.Background()).Error()
	})
	object := `{"apiVersion": "e2e.example.com/v1alpha1", "kind": "Cluster", "metadata": {"name": "acme"}}`
	if err := testbed.Until(ctx, "the Cluster API", time.Minute, func(ctx context.Context) (bool, error) {
		err := api.Post().AbsPath(objects).Body([]byte(object)).Do(ctx).Error()
		return err == nil || apierrors.IsAlreadyExists(err), err
	}); err != nil {
		t.Fatal(err)
	}
	config, err := bed.WriteConfig(testbed.Namespace, "")
	if err != nil {
		t.Fatal(err)
	}
	replaceInFile(t, config, fmt.Sprintf("url = %q", status.URL),
		fmt.Sprintf("discover_cluster = \"acme\"\ndiscover_kubeconfig = %q", status.Kubeconfig))
	h := byHand(t, testbed.WithoutSources(bed.Job("true")))
	h.config = config
	h.wants("prepare", 2, `clusters.e2e.example.com "acme" at `+status.URL+" has no .status.url")

	for _, step := range []struct {
		url, says string
		code      int
	}{
		{"https://127.0.0.1:9/clusters/root:acme", "this is the kcp mount", 2},
		{status.URL, "Using tenant cluster", 0},
	} {
		patch := fmt.Sprintf(`{"status": {"url": %q, "phase": "Ready"}}`, step.url)
		if err := api.Patch("application/merge-patch+json").AbsPath(objects, "acme", "status").Body([]byte(patch)).Do(ctx).Error(); err != nil {
			t.Fatal(err)
		}
		h.wants("prepare", step.code, step.says)
	}
	h.wants("cleanup", 0, "")
}
