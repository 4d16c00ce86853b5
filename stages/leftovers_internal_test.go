package stages

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/socialweb-computer/tenant-executor/executor/pod"
	"github.com/socialweb-computer/tenant-executor/kube/capacity"
	"github.com/socialweb-computer/tenant-executor/kube/cluster"
	"github.com/socialweb-computer/tenant-executor/kube/faultserver"
	"github.com/socialweb-computer/tenant-executor/kube/pods"
	"github.com/socialweb-computer/tenant-executor/kube/reap"
	"github.com/socialweb-computer/tenant-executor/stages/state"
)

// A cleanup that another attempt has taken over after the list of cleanups was
// read, and before its Pods were: they are the attempt's.
func TestUndoneThatWasTakenOver(t *testing.T) {
	server := faultserver.Start(t)
	files := server.Credentials(t)
	c, err := cluster.Connect(t.Context(), cluster.Fixed(cluster.Config{URL: server.URL(), CAFile: files.CAFile, CertFile: files.CertFile, KeyFile: files.KeyFile}))
	if err != nil {
		t.Fatal(err)
	}
	folder, err := state.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	l := &leftovers{
		cluster: c, pods: pods.NewClient(c, time.Minute), nodes: capacity.NewNodes(c, time.Minute),
		reap: reap.NewClient(c, time.Minute), clock: Clock{}, state: folder, reach: &reach{known: []string{"ci"}},
	}
	u := state.Undone{Cluster: c.Identity(), Key: "0123456789abcdef", Namespace: "ci", JobID: 1, Since: time.Now()}
	server.AddPod(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ci", Name: "a", Labels: map[string]string{pod.LabelComponent: pod.ComponentJob, pod.LabelJob: u.Key},
	}})
	if left, _, err := l.ofUndone(t.Context(), u); len(left) != 0 || err != nil {
		t.Errorf("a cleanup that was taken over finds %v, %v", left, err)
	}
	if err := folder.AddUndone(u); err != nil {
		t.Fatal(err)
	}
	if left, all, err := l.ofUndone(t.Context(), u); len(left) != 1 || !all || err != nil {
		t.Errorf("a cleanup that is to be done finds %v, %v", left, err)
	}
}

// What could not be cleaned up before the cluster's CA was replaced is cleaned up
// after; what is about another cluster stays remembered.
func TestUndoneOfAnotherAuthority(t *testing.T) {
	t.Parallel()
	server := faultserver.Start(t)
	files := server.Credentials(t)
	c, err := cluster.Connect(t.Context(), cluster.Fixed(cluster.Config{URL: server.URL(), CAFile: files.CAFile, CertFile: files.CertFile, KeyFile: files.KeyFile}))
	if err != nil {
		t.Fatal(err)
	}
	folder, err := state.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	l := &leftovers{
		cluster: c, pods: pods.NewClient(c, time.Minute), nodes: capacity.NewNodes(c, time.Minute),
		reap: reap.NewClient(c, time.Minute), clock: Clock{}, state: folder, reach: &reach{known: []string{"ci"}},
	}
	before := state.Undone{Cluster: "0000000000000000", Key: "0123456789abcdef", Namespace: "ci", JobID: 1, Since: time.Now()}
	another := state.Undone{Cluster: "1111111111111111", Key: "fedcba9876543210", Namespace: "ci", JobID: 2, Since: time.Now()}
	server.AddPod(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ci", Name: "a", Labels: map[string]string{pod.LabelComponent: pod.ComponentJob, pod.LabelJob: before.Key},
	}})
	for _, u := range []state.Undone{before, another} {
		if err := folder.AddUndone(u); err != nil {
			t.Fatal(err)
		}
	}
	if n := l.undo(t.Context(), 3); n != 1 || len(server.Pods()) != 0 {
		t.Errorf("%d objects were removed, %d Pods are left", n, len(server.Pods()))
	}
	if folder.HasUndone(before) || !folder.HasUndone(another) {
		t.Error("the wrong cleanup is forgotten")
	}
}
