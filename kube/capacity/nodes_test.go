package capacity_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/socialweb-computer/tenant-executor/kube/capacity"
	"github.com/socialweb-computer/tenant-executor/kube/cluster"
	"github.com/socialweb-computer/tenant-executor/kube/faultserver"
)

func newNodes(t *testing.T) (*faultserver.Server, *capacity.Nodes) {
	t.Helper()
	server := faultserver.Start(t)
	files := server.Credentials(t)
	c, err := cluster.Connect(t.Context(), cluster.Fixed(cluster.Config{URL: server.URL(), CAFile: files.CAFile, CertFile: files.CertFile, KeyFile: files.KeyFile, UserAgent: "test"}))
	if err != nil {
		t.Fatal(err)
	}
	return server, capacity.NewNodes(c, time.Minute)
}

func TestCount(t *testing.T) {
	t.Parallel()
	server, nodes := newNodes(t)
	if got, err := nodes.Count(t.Context()); err != nil || got != (capacity.Count{}) {
		t.Errorf("no nodes: got %+v, %v", got, err)
	}
	server.SetNode("a", true)
	server.SetNode("b", false)
	server.SetNode("c", true)
	server.Fail(1, "list", "nodes", faultserver.Abort())
	if got, err := nodes.Count(t.Context()); err != nil || got != (capacity.Count{Total: 3, Ready: 2}) {
		t.Errorf("three nodes: got %+v, %v", got, err)
	}
}

func TestHealth(t *testing.T) {
	t.Parallel()
	server, nodes := newNodes(t)
	since := time.Now().Add(-time.Hour).Truncate(time.Second)
	server.SetNodeSince("well", true, since)
	server.SetNodeSince("ill", false, since)
	server.SetNode("gone", true)
	server.RemoveNode("gone")
	for name, want := range map[string]capacity.Health{
		"well": {Exists: true, Ready: true, Reason: "KubeletReady: kubelet is posting ready status", Since: since, Arch: "amd64"},
		"ill":  {Exists: true, Reason: "NodeStatusUnknown: Kubelet stopped posting node status.", Since: since, Arch: "amd64"},
		"gone": {},
	} {
		if got, err := nodes.Health(t.Context(), name); err != nil || !cmp.Equal(got, want) {
			t.Errorf("%s: got %+v, %v", name, got, err)
		}
	}
}

// What cannot be read is not taken for a node that is gone.
func TestHealthThatCannotBeRead(t *testing.T) {
	t.Parallel()
	server, nodes := newNodes(t)
	server.SetNode("well", true)
	server.Fail(1, "get", "nodes", faultserver.AnswerStatus(http.StatusForbidden, metav1.StatusReasonForbidden, "no"))
	if got, err := nodes.Health(t.Context(), "well"); !cluster.Denied(err) || err.Error() != "reading node well: no" {
		t.Errorf("got %+v, %v", got, err)
	}
}
