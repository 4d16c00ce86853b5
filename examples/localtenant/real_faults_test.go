//go:build localtenant

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/socialweb-computer/tenant-executor/examples/localtenant/daemon"
	"github.com/socialweb-computer/tenant-executor/examples/localtenant/faults"
	"github.com/socialweb-computer/tenant-executor/examples/localtenant/node"
)

// until asks for something of the API until it is as wanted.
func (c *cluster) until(what string, wanted func() bool) {
	c.t.Helper()
	for deadline := time.Now().Add(patience); !wanted(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			c.t.Fatalf("not within %s: %s", patience, what)
		}
	}
}

// log asks the kubelet of a Pod for its log.
func (c *cluster) log(pod string) error {
	_, err := c.api().Pods("ci").GetLogs(pod, &corev1.PodLogOptions{}).DoRaw(c.t.Context())
	return err
}

func TestRealFailingBootAndUnreachableKubelet(t *testing.T) {
	c := newCluster(t)
	c.up("--hold", "1h", "--ceiling", "1")
	c.run("fault", "set", "--failing-boots", "1", "--unreachable", "20s")
	pod := c.startPod("job")
	if left := c.status().Faults; left.FailingBoots != 0 {
		t.Errorf("still to come: %+v", left)
	}
	log, err := os.ReadFile(filepath.Join(c.status().LogDir, "daemon.log"))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Count(string(log), "failed on demand") != 1 {
		t.Errorf("no boot has failed, or more than one:\n%s", log)
	}
	if err := c.log("job"); !apierrors.IsInternalError(err) {
		t.Errorf("the log of a Pod on a node that is out of reach: %v", err)
	}
	if got := state(c.status(), pod.Spec.NodeName); got != node.Ready {
		t.Errorf("a node that is out of reach is %q, want ready", got)
	}
	c.until("the kubelet can be reached", func() bool { return c.log("job") == nil })
}

func TestRealNeverReadyAndDropOnBind(t *testing.T) {
	c := newCluster(t)
	c.up("--paused")
	c.run("fault", "set", "--never-ready", "1")
	c.run("node", "add", "--wait", "0", "lame")
	c.until("the lame node says why it is not ready", func() bool {
		object, err := c.api().Nodes().Get(t.Context(), "lame", metav1.GetOptions{})
		if err != nil {
			return false
		}
		for _, condition := range object.Status.Conditions {
			if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionFalse && strings.Contains(condition.Message, "cni plugin not initialized") {
				return true
			}
		}
		return false
	})
	c.run("node", "add", "well")
	if s := c.status(); state(s, "lame") != node.Starting || state(s, "well") != node.Ready {
		t.Errorf("the nodes are %+v", s.Nodes)
	}

	c.run("fault", "set", "--drops-on-bind", "1")
	c.createPod("job")
	c.await("the node is dropped", func(s daemon.Status) bool { return state(s, "well") == "" })
	if _, err := c.api().Nodes().Get(t.Context(), "well", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the Node object of a dropped node: %v, want it gone", err)
	}
	pod, err := c.api().Pods("ci").Get(t.Context(), "job", metav1.GetOptions{})
	if err != nil || pod.Spec.NodeName != "well" || pod.Status.Phase != corev1.PodPending {
		t.Errorf("the Pod is bound to %q and %s, %v; want it pending on the node that is gone", pod.Spec.NodeName, pod.Status.Phase, err)
	}
	if left := c.status().Faults; left != (faults.Settings{}) {
		t.Errorf("still to come: %+v", left)
	}

	c.run("fault", "set", "--failing-boots", "3")
	if out, err := c.command("fault", "set", "--failing-boots", "-1"); err == nil {
		t.Errorf("a count of -1 was taken: %s", out)
	}
	if out := c.run("fault", "clear"); strings.TrimSpace(out) != "none" {
		t.Errorf("after clear: %s", out)
	}
	c.run("node", "add", "--wait", "0", "next")
}
