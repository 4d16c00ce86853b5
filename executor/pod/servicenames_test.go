package pod_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/socialweb-computer/tenant-executor/executor/pod"
)

// A Pod tells people what its services are called, and what a patch has added;
// one of an older driver has its containers' names alone.
func TestServiceNames(t *testing.T) {
	built, err := served().Build()
	if err != nil {
		t.Fatal(err)
	}
	want := []pod.ServiceName{
		{Container: "cache-7", Image: "redis:7", Names: []string{"redis", "cache-7"}},
		{Container: "db", Image: "reg.example.com:5000/a/b:1", Names: []string{"reg.example.com-a-b", "db", "postgres", "db2"}},
		{Container: "svc-0", Image: "redis:7", Names: []string{"redis", "cache-7"}},
		{Container: "svc-1", Image: "webide"},
	}
	if diff := cmp.Diff(want, pod.ServiceNames(built.Pod)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	delete(built.Pod.Annotations, pod.AnnotationServices)
	for i := range want {
		want[i].Names = nil
	}
	if diff := cmp.Diff(want, pod.ServiceNames(built.Pod)); diff != "" {
		t.Errorf("without the annotation: -want +got:\n%s", diff)
	}
}
