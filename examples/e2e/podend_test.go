//go:build e2e

package e2e

import (
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/socialweb-computer/tenant-executor/examples/localrunner/runner"
	"github.com/socialweb-computer/tenant-executor/examples/testbed"
)

// watchPod watches one Pod from its present version on.
func watchPod(t *testing.T, pod *corev1.Pod) <-chan watch.Event {
	t.Helper()
	w, err := admin(t).Pods(pod.Namespace).Watch(limited(t, jobLimit), metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("metadata.name", pod.Name).String(), ResourceVersion: pod.ResourceVersion,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
	return w.ResultChan()
}

// A deleted job Pod ends by itself, and well, whatever its script has left
// behind: nothing waits for a grace to pass. `make bench` prints how long that
// takes.
func TestDeletedPodEndsByItself(t *testing.T) {
	gate := safe(t.Name())
	j := testbed.WithoutSources(bed.Job(
		"(setsid sleep 4201 &)",
		"sh -c 'trap \"\" TERM; while :; do sleep 1; done' &",
		"trap '' TERM",
		bed.Gate(gate)))
	wait := start(t, bed.Config, j, runner.Options{})
	nodeOf(t, gate, j.ID)
	client := admin(t)
	pod, err := podOf(limited(t, time.Minute), client, j.ID)
	if err != nil || pod == nil {
		t.Fatal(pod, err)
	}
	if live, err := testbed.Processes(pod.UID); err != nil || len(live) < 8 {
		t.Fatalf("the Pod has the processes %v (%v); its script's are missing", live, err)
	}
	events := watchPod(t, pod)
	if err := client.Pods(pod.Namespace).Delete(limited(t, time.Minute), pod.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	var last *corev1.Pod
	for event := range events {
		if seen, ok := event.Object.(*corev1.Pod); ok {
			last = seen
		}
		if event.Type == watch.Deleted {
			break
		}
	}
	if last == nil || len(last.Status.ContainerStatuses) != 2 {
		t.Fatalf("the Pod was last seen as %+v", last)
	}
	for _, c := range last.Status.ContainerStatuses {
		// 137 is a process that did not end on TERM.
		if end := c.State.Terminated; end == nil || end.ExitCode != 0 {
			t.Errorf("container %s was last seen as %+v; want that it ended on TERM, with 0", c.Name, c.State)
		}
	}
	if live, err := testbed.Processes(pod.UID); err != nil || len(live) > 0 {
		t.Errorf("the Pod is gone, and its processes %v live (%v)", live, err)
	}
	wantSystemFailure(t, wait(), "ERROR: the job's Pod")
}

// No node is shared while processes of the job before live, also when they take
// their time to die. The Pod's object may be there for a little longer: the
// scheduler does not count a Pod whose containers have all ended.
func TestNodeIsNotSharedWithTheDying(t *testing.T) {
	gates := []string{"dying", "beside-the-dying", "after-the-dying"}
	dying := testbed.WithoutSources(bed.Job(bed.Gate(gates[0])))
	beside := testbed.WithoutSources(bed.Job(bed.Gate(gates[1])))
	dyingWait, besideWait := start(t, bed.Config, dying, runner.Options{}), start(t, bed.Config, beside, runner.Options{})
	defer bed.Open(gates[1])
	node := nodeOf(t, gates[0], dying.ID)
	nodeOf(t, gates[1], beside.ID)

	// All nodes are taken: the next job waits.
	next := testbed.WithoutSources(bed.Job(bed.Gate(gates[2])))
	waits := make(chan struct{})
	said := false
	nextWait := start(t, bed.Config, next, runner.Options{OnLine: func(line string) {
		if !said && strings.Contains(line, "Waiting for a node") {
			said = true
			close(waits)
		}
	}})
	defer bed.Open(gates[2])
	select {
	case <-waits:
	case <-limited(t, time.Minute).Done():
		t.Fatal("the next job does not wait")
	}
	client := admin(t)
	pod, err := podOf(limited(t, time.Minute), client, dying.ID)
	if err != nil || pod == nil {
		t.Fatal(pod, err)
	}
	waiting, err := podOf(limited(t, time.Minute), client, next.ID)
	if err != nil || waiting == nil || waiting.Spec.NodeName != "" {
		t.Fatal(waiting, err)
	}
	events := watchPod(t, waiting)

	// Stopped processes do not heed TERM: they live until the Pod's grace is
	// over and the kubelet kills them.
	live, err := testbed.Processes(pod.UID)
	if err != nil || len(live) == 0 {
		t.Fatal(live, err)
	}
	for _, pid := range live {
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
			t.Logf("stopping process %d: %v", pid, err)
		}
	}
	if err := client.Pods(pod.Namespace).Delete(limited(t, time.Minute), pod.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	alive := 0
	for event := range events {
		seen, ok := event.Object.(*corev1.Pod)
		if !ok || seen.Spec.NodeName == "" {
			continue
		}
		left, err := testbed.Processes(pod.UID)
		if err != nil {
			t.Fatal(err)
		}
		alive = len(left)
		if seen.Spec.NodeName != node {
			t.Errorf("the next job runs on node %s, want %s", seen.Spec.NodeName, node)
		}
		break
	}
	if alive > 0 {
		t.Errorf("the node takes the next job while %d processes of the one before live", alive)
	}
	for _, gate := range slices.Backward(gates) {
		bed.Open(gate)
	}
	wantSystemFailure(t, dyingWait())
	wantPassed(t, besideWait())
	wantPassed(t, nextWait())
}
