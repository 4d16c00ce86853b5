//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/socialweb-computer/tenant-executor/examples/localrunner/runner"
	"github.com/socialweb-computer/tenant-executor/examples/testbed"
)

const placeholders = "tenant-executor.socialweb.computer/component=placeholder"

// warmConfig is a configuration with a [warm] table.
func warmConfig(t *testing.T, warm string) string {
	t.Helper()
	path, err := bed.WriteConfig(testbed.Namespace, fmt.Sprintf("[warm]\npause_pod_image = %q\n%s", bed.Image("pause"), warm))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// fromZero sets the gateway for one test, and waits until there are no nodes,
// before it and after it.
func fromZero(t *testing.T, settings ...string) {
	t.Helper()
	empty := func() {
		ctx := limited(t, time.Minute)
		zero := int64(0)
		if err := admin(t).Pods(testbed.Namespace).DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: &zero}, metav1.ListOptions{LabelSelector: placeholders}); err != nil {
			t.Error(err)
		}
		localtenant(t, "gateway", "set", "--hold", "1s")
		wantNodes(t, time.Minute, 0)
	}
	empty()
	localtenant(t, append([]string{"gateway", "set"}, settings...)...)
	t.Cleanup(func() {
		empty()
		localtenant(t, "gateway", "set", "--ceiling", "2", "--hold", "5s", "--boot-time", "1s")
	})
}

func wantNodes(t *testing.T, limit time.Duration, n int) {
	t.Helper()
	client := admin(t)
	if err := testbed.Until(context.Background(), fmt.Sprintf("%d nodes", n), limit, func(ctx context.Context) (bool, error) {
		nodes, err := client.Nodes().List(ctx, metav1.ListOptions{})
		if err == nil && len(nodes.Items) != n {
			err = fmt.Errorf("there are %d", len(nodes.Items))
		}
		return err == nil, err
	}); err != nil {
		t.Fatal(err)
	}
}

// held waits until n placeholders run, each on a node of its own, and gives
// the nodes.
func held(t *testing.T, n int) map[string]bool {
	t.Helper()
	client := admin(t)
	nodes := map[string]bool{}
	if err := testbed.Until(context.Background(), fmt.Sprintf("%d placeholders", n), time.Minute, func(ctx context.Context) (bool, error) {
		list, err := client.Pods(testbed.Namespace).List(ctx, metav1.ListOptions{LabelSelector: placeholders})
		if err != nil {
			return false, err
		}
		clear(nodes)
		for _, pod := range list.Items {
			if pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil {
				nodes[pod.Spec.NodeName] = true
			}
		}
		return len(nodes) == n, fmt.Errorf("placeholders run on %v", nodes)
	}); err != nil {
		t.Fatal(err)
	}
	return nodes
}

// everNodes counts the nodes that there ever were, until the test ends.
func everNodes(t *testing.T) (count func() int) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	w, err := admin(t).Nodes().Watch(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	seen := map[string]bool{}
	go func() {
		for event := range w.ResultChan() {
			if node, is := event.Object.(*corev1.Node); is {
				mu.Lock()
				seen[node.Name] = true
				mu.Unlock()
			}
		}
	}()
	return func() int {
		mu.Lock()
		defer mu.Unlock()
		return len(seen)
	}
}

// keeper is a running tenant-executor warm.
type keeper struct {
	cmd    *exec.Cmd
	output *bytes.Buffer
}

func startKeeper(t *testing.T, config string) *keeper {
	t.Helper()
	k := &keeper{cmd: exec.Command(bed.Driver, "warm", "--config", config), output: &bytes.Buffer{}}
	k.cmd.Stderr = k.output
	if err := k.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if k.cmd.ProcessState == nil {
			_ = k.cmd.Process.Kill()
			_ = k.cmd.Wait()
		}
		if t.Failed() {
			t.Logf("output of tenant-executor warm:\n%s", k.output)
		}
	})
	return k
}

// end tells it to end and wants it to do so well.
func (k *keeper) end(t *testing.T) {
	t.Helper()
	if err := k.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := k.cmd.Wait(); err != nil {
		t.Errorf("tenant-executor warm ended with %v", err)
	}
}

// prepared is how long a job's prepare took.
func prepared(out testbed.Outcome) time.Duration {
	for _, call := range out.Calls {
		if call.Stage == "prepare" {
			return call.Duration
		}
	}
	return 0
}

// Two placeholders are two nodes; jobs take them without a wait, and spares
// boot, until the ceiling. Two keepers with different policies keep what the
// greater one says. The placeholders of keepers that are gone are used as well.
func TestPoliciesKeepNodesFree(t *testing.T) {
	fromZero(t, "--ceiling", "3", "--hold", "3s", "--boot-time", "1s")
	greater := warmConfig(t, "[[warm.policy]]\nidle_count = 2\n")
	config := warmConfig(t, "[[warm.policy]]\nidle_count = 1\n")
	show, err := exec.Command(bed.Driver, "warm", "--once", "--dry-run", "--config", greater).CombinedOutput()
	if err != nil || !strings.Contains(string(show), "create placeholder-warm-0; create placeholder-warm-1") {
		t.Errorf("--dry-run: %v\n%s", err, show)
	}
	first, second := startKeeper(t, greater), startKeeper(t, config)
	warm := held(t, 2)
	wantNodes(t, time.Second, 2)

	a := testbed.WithoutSources(bed.Job(bed.Gate("warm-a")))
	waitA := start(t, config, a, runner.Options{})
	defer bed.Open("warm-a")
	nodeA := nodeOf(t, "warm-a", a.ID)
	if !warm[nodeA] {
		t.Errorf("the job runs on node %s, which was not held: %v", nodeA, warm)
	}
	// The spare boots, and the placeholder beside the job is gone.
	wantNodes(t, time.Minute, 3)
	if warm = held(t, 2); warm[nodeA] {
		t.Errorf("a placeholder is on the job's node %s", nodeA)
	}
	b := testbed.WithoutSources(bed.Job(bed.Gate("warm-b")))
	waitB := start(t, config, b, runner.Options{})
	defer bed.Open("warm-b")
	if nodeB := nodeOf(t, "warm-b", b.ID); !warm[nodeB] {
		t.Errorf("the second job runs on node %s, which was not held: %v", nodeB, warm)
	}
	// At the ceiling the last placeholder waits, and a job still comes first.
	held(t, 1)
	first.end(t)
	second.end(t)
	c := testbed.WithoutSources(bed.Job("echo third"))
	wantPassed(t, runJobWith(t, config, c, runner.Options{}))
	bed.Open("warm-a")
	bed.Open("warm-b")
	for _, wait := range []func() testbed.Outcome{waitA, waitB} {
		out := wait()
		wantPassed(t, out)
		if strings.Contains(out.Log, "Waiting for a node") {
			t.Error("the job waited for a node")
		}
	}
	for _, k := range []*keeper{first, second} {
		if strings.Contains(k.output.String(), "WARNING") {
			t.Errorf("tenant-executor warm complains:\n%s", k.output)
		}
	}
}

// A keeper replaces placeholders whose time is up, on the same nodes. Nobody is
// needed to let the nodes go when it was killed.
func TestPlaceholdersEndByThemselves(t *testing.T) {
	fromZero(t, "--ceiling", "3", "--hold", "1s", "--boot-time", "0s")
	ever := everNodes(t)
	k := startKeeper(t, warmConfig(t, "lifetime = \"10s\"\n[[warm.policy]]\nidle_count = 2\n"))
	nodes := held(t, 2)
	client := admin(t)
	first, err := client.Pods(testbed.Namespace).List(limited(t, time.Minute), metav1.ListOptions{LabelSelector: placeholders})
	if err != nil {
		t.Fatal(err)
	}
	old := map[types.UID]bool{}
	for _, pod := range first.Items {
		old[pod.UID] = true
	}
	if err := testbed.Until(context.Background(), "other placeholders", time.Minute, func(ctx context.Context) (bool, error) {
		list, err := client.Pods(testbed.Namespace).List(ctx, metav1.ListOptions{LabelSelector: placeholders})
		if err != nil {
			return false, err
		}
		running := 0
		for _, pod := range list.Items {
			if !old[pod.UID] && pod.Status.Phase == corev1.PodRunning {
				running++
			}
		}
		return running == 2, fmt.Errorf("%d of them run", running)
	}); err != nil {
		t.Fatal(err)
	}
	if again := held(t, 2); !maps.Equal(nodes, again) {
		t.Errorf("held are now %v, before %v", again, nodes)
	}
	if err := k.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = k.cmd.Wait()
	wantNodes(t, time.Minute, 0)
	if n := ever(); n != 2 {
		t.Errorf("%d nodes were booted for 2 placeholders", n)
	}
}

// The second job of a pipeline starts on the first one's node after the
// gateway's hold would have dropped it, no node boots beside it, and when the
// time is up everything goes.
func TestLinger(t *testing.T) {
	const hold = 3 * time.Second
	fromZero(t, "--ceiling", "3", "--hold", hold.String(), "--boot-time", "1s")
	ever := everNodes(t)
	config := warmConfig(t, "linger = \"15s\"\n")
	first := testbed.WithoutSources(bed.Job("echo first"))
	out := runJobWith(t, config, first, runner.Options{})
	wantPassed(t, out)
	cold := prepared(out)
	wantLog(t, out, "Waiting for a node")
	nodes := held(t, 1)

	over := time.Now().Add(2 * hold)
	if err := testbed.Until(context.Background(), "the hold to be over", time.Minute, func(context.Context) (bool, error) {
		return time.Now().After(over), nil
	}); err != nil {
		t.Fatal(err)
	}
	second := testbed.WithoutSources(bed.Job(bed.Gate("lingering")))
	wait := start(t, config, second, runner.Options{})
	defer bed.Open("lingering")
	if node := nodeOf(t, "lingering", second.ID); !nodes[node] {
		t.Errorf("the second job runs on node %s, held was %v", node, nodes)
	}
	list, err := admin(t).Pods(testbed.Namespace).List(limited(t, time.Minute), metav1.ListOptions{LabelSelector: placeholders})
	if err != nil || len(list.Items) != 0 {
		t.Errorf("while the job runs there are %d placeholders, error %v", len(list.Items), err)
	}
	bed.Open("lingering")
	out = wait()
	wantPassed(t, out)
	if strings.Contains(out.Log, "Waiting for a node") {
		t.Error("the second job waited for a node")
	}
	t.Logf("prepare took %s from zero nodes and %s on the lingering node", cold, prepared(out))
	held(t, 1)
	wantNodes(t, time.Minute, 0)
	if n := ever(); n != 1 {
		t.Errorf("%d nodes were booted for two jobs in a row; want 1", n)
	}
}
