package kcp

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/socialweb-computer/tenant-executor/examples/localtenant/cluster"
)

// TestDefinition: the kind is the one that the directory writes, and its status
// is a subresource, as that of a real one.
func TestDefinition(t *testing.T) {
	objects, err := cluster.ReadManifest(strings.NewReader(definition))
	if err != nil || len(objects) != 1 {
		t.Fatalf("%d objects, %v", len(objects), err)
	}
	want := Resource()
	if got := objects[0].GetName(); got != want.Resource+"."+want.Group {
		t.Errorf("the definition is of %s", got)
	}
	versions, _, err := unstructured.NestedSlice(objects[0].Object, "spec", "versions")
	if err != nil || len(versions) != 1 {
		t.Fatalf("versions: %v, %v", versions, err)
	}
	version := versions[0].(map[string]any)
	if version["name"] != want.Version {
		t.Errorf("version %v, want %s", version["name"], want.Version)
	}
	if _, found, _ := unstructured.NestedMap(version, "subresources", "status"); !found {
		t.Error("the status is no subresource")
	}
	for _, field := range []string{"url", "phase"} {
		if _, found, _ := unstructured.NestedMap(version, "schema", "openAPIV3Schema", "properties", "status", "properties", field); !found {
			t.Errorf("the schema has no status.%s: it would be dropped", field)
		}
	}
}

// recorder is an apiserver that notes what is written.
type recorder struct {
	mu       sync.Mutex
	requests []string
	// refuse answers with 403.
	refuse bool
}

func (r *recorder) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	body, _ := io.ReadAll(request.Body)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.requests = append(r.requests, request.Method+" "+request.URL.Path+" "+request.Header.Get("Content-Type")+" "+string(body))
	w.Header().Set("Content-Type", "application/json")
	if r.refuse {
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","code":403,"status":"Failure","reason":"Forbidden","message":"not you"}`)
		return
	}
	_, _ = io.WriteString(w, `{"apiVersion":"tenancy.socialweb.computer/v1alpha1","kind":"Cluster","metadata":{"name":"demo"}}`)
}

func directory(t *testing.T, handler http.Handler) *Directory {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	d, err := NewDirectory(&rest.Config{Host: server.URL}, "demo")
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestPublish(t *testing.T) {
	r := &recorder{}
	if err := directory(t, r).Publish(t.Context(), "https://127.0.0.1:7", Ready); err != nil {
		t.Fatal(err)
	}
	const path = "PATCH /apis/tenancy.socialweb.computer/v1alpha1/clusters/demo"
	want := []string{
		path + ` application/apply-patch+yaml {"apiVersion":"tenancy.socialweb.computer/v1alpha1","kind":"Cluster","metadata":{"name":"demo"},"spec":{}}`,
		path + `/status application/merge-patch+json {"status":{"phase":"Ready","url":"https://127.0.0.1:7"}}`,
	}
	if diff := cmp.Diff(want, r.requests); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

func TestPublishFails(t *testing.T) {
	err := directory(t, &recorder{refuse: true}).Publish(t.Context(), "https://127.0.0.1:7", Ready)
	if err == nil || !strings.Contains(err.Error(), "write Cluster demo on the kcp side") || !strings.Contains(err.Error(), "not you") {
		t.Errorf("%v; want to be told what could not be written, and why", err)
	}
}
