//go:build localtenant

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/socialweb-computer/tenant-executor/examples/localtenant/daemon"
	"github.com/socialweb-computer/tenant-executor/examples/localtenant/node"
)

// The tests in this file run the built command on this machine: as root, with
// the packages of `localtenant deps`, and with minutes of patience when nothing
// is in the cache.
//
//	go test -tags localtenant -run Real .

const rights = `apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: jobs, namespace: ci}
rules:
- {apiGroups: [""], resources: [pods], verbs: [list]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: jobs, namespace: ci}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: jobs}
subjects: [{kind: Group, name: tenant-executor, apiGroup: rbac.authorization.k8s.io}]
`

// patience bounds each wait for something to happen.
const patience = 90 * time.Second

// cluster is a tenant of the test.
type cluster struct {
	t       *testing.T
	program string
	root    string
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("this test makes a real cluster: run it as root")
	}
	dir := t.TempDir()
	c := &cluster{t: t, program: filepath.Join(dir, "localtenant"), root: filepath.Join(dir, "root")}
	build := exec.Command("go", "build", "-o", c.program, ".")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	t.Cleanup(func() { c.run("down") })
	return c
}

// command runs a verb for the tenant of the test.
func (c *cluster) command(args ...string) (string, error) {
	cmd := exec.Command(c.program, append(args, "--name", "it", "--state-root", c.root)...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err
}

func (c *cluster) run(args ...string) string {
	c.t.Helper()
	out, err := c.command(args...)
	if err != nil {
		c.t.Fatalf("%v: %v\n%s", args, err, out)
	}
	return out
}

func (c *cluster) status() daemon.Status {
	c.t.Helper()
	var status daemon.Status
	if err := json.Unmarshal([]byte(c.run("status", "--output", "json")), &status); err != nil {
		c.t.Fatal(err)
	}
	return status
}

// await asks for the status until it is as wanted.
func (c *cluster) await(what string, wanted func(daemon.Status) bool) daemon.Status {
	c.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		status := c.status()
		if wanted(status) {
			return status
		}
		if time.Now().After(deadline) {
			c.t.Fatalf("not within %s: %s; the status is %+v", patience, what, status.Details)
		}
	}
}

func (c *cluster) api() *typedcorev1.CoreV1Client {
	c.t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", strings.TrimSpace(c.run("kubeconfig")))
	if err != nil {
		c.t.Fatal(err)
	}
	client, err := typedcorev1.NewForConfig(config)
	if err != nil {
		c.t.Fatal(err)
	}
	return client
}

func (c *cluster) createPod(name string) {
	c.t.Helper()
	_, err := c.api().Pods("ci").Create(c.t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: new(int64(1)),
			Containers: []corev1.Container{{
				Name: "job", Image: c.status().Registry.Plain + "/localtenant/busybox:1", Command: []string{"sleep", "1000"},
			}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
}

// startPod makes a Pod and waits until it runs.
func (c *cluster) startPod(name string) *corev1.Pod {
	c.t.Helper()
	c.createPod(name)
	ctx, cancel := context.WithTimeout(c.t.Context(), patience)
	defer cancel()
	pods := c.api().Pods("ci")
	watcher, err := pods.Watch(ctx, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", name).String()})
	if err != nil {
		c.t.Fatal(err)
	}
	defer watcher.Stop()
	for event := range watcher.ResultChan() {
		if pod, ok := event.Object.(*corev1.Pod); ok && pod.Status.Phase == corev1.PodRunning {
			return pod
		}
	}
	c.t.Fatalf("the Pod %s does not run within %s", name, patience)
	return nil
}

func (c *cluster) deletePod(name string) {
	c.t.Helper()
	if err := c.api().Pods("ci").Delete(c.t.Context(), name, metav1.DeleteOptions{}); err != nil {
		c.t.Fatal(err)
	}
}

func (c *cluster) up(flags ...string) {
	c.t.Helper()
	manifest := filepath.Join(filepath.Dir(c.program), "rights.yaml")
	if err := os.WriteFile(manifest, []byte(rights), 0o644); err != nil {
		c.t.Fatal(err)
	}
	c.t.Log(c.run(append([]string{"up", "--rbac", manifest, "--pods-per-node", "1", "--boot-time", "0s"}, flags...)...))
}

// machine lists what a node would leave on the machine if it wrote there.
func machine() map[string]bool {
	found := map[string]bool{}
	for _, path := range []string{
		"/var/lib/kubelet", "/var/lib/containerd", "/var/lib/cni", "/var/log/pods", "/var/log/containers",
		"/run/containerd", "/run/netns", "/usr/libexec/kubernetes", "/opt/cni",
	} {
		if _, err := os.Lstat(path); err == nil {
			found[path] = true
		}
	}
	return found
}

func TestRealClusterFromZeroToZero(t *testing.T) {
	c := newCluster(t)
	before := machine()
	c.up("--hold", "3s", "--ceiling", "2")
	if status := c.status(); status.State != daemon.Running || len(status.Nodes) != 0 {
		t.Fatalf("after up: %s with %d nodes", status.State, len(status.Nodes))
	}
	if out := c.run("up", "--rbac", ""); !strings.Contains(out, "is up already") {
		t.Errorf("a second up says %q", out)
	}

	pod := c.startPod("job")
	status := c.status()
	if len(status.Nodes) != 1 || status.Nodes[0].Name != pod.Spec.NodeName || status.Nodes[0].State != node.Ready {
		t.Errorf("the Pod runs on %s, the nodes are %+v", pod.Spec.NodeName, status.Nodes)
	}
	if count := len(status.Nodes[0].Name); count == 0 || status.Gateway.Wanted != 1 {
		t.Errorf("the gateway wants %d nodes", status.Gateway.Wanted)
	}

	c.deletePod("job")
	c.await("no nodes after the hold", func(s daemon.Status) bool { return len(s.Nodes) == 0 })
	if _, err := c.api().Nodes().Get(t.Context(), pod.Spec.NodeName, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the Node object of a dropped node: %v, want it gone", err)
	}

	t.Log(c.run("down"))
	if out := c.run("leftovers"); out != "nothing\n" {
		t.Errorf("left over: %s", out)
	}
	for path := range machine() {
		if !before[path] {
			t.Errorf("a node has made %s on the machine", path)
		}
	}
	if out := c.run("down"); !strings.Contains(out, "nothing is there") {
		t.Errorf("a second down says %q", out)
	}
}

func TestRealFaults(t *testing.T) {
	c := newCluster(t)
	c.up("--paused")
	c.run("node", "add", "first")
	c.run("node", "add", "second")
	pod := c.startPod("job")
	other := map[string]string{"first": "second", "second": "first"}[pod.Spec.NodeName]

	c.run("node", "restart-containerd", pod.Spec.NodeName)
	c.run("node", "restart-kubelet", pod.Spec.NodeName)
	c.run("node", "cut", other)
	c.await("the cut node is not ready", func(s daemon.Status) bool { return state(s, other) == node.NotReady })
	c.run("node", "mend", other)
	c.await("the mended node is ready", func(s daemon.Status) bool { return state(s, other) == node.Ready })

	url := c.status().URL
	c.run("apiserver", "kill")
	if s := c.status(); s.APIServer.Running || s.APIServer.PID != 0 {
		t.Errorf("after the kill: %+v", s.APIServer)
	}
	if out, err := c.command("apiserver", "kill"); err == nil {
		t.Errorf("a second kill says %q", out)
	}
	c.run("apiserver", "start", "--port", "new")
	text, err := os.ReadFile(filepath.Join(c.status().AccessDir, "cluster-url"))
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.TrimSpace(string(text)); got == url || got != c.status().URL {
		t.Errorf("cluster-url is %s, the apiserver was at %s and is at %s", got, url, c.status().URL)
	}
	again, err := c.api().Pods("ci").Get(t.Context(), "job", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if again.Status.ContainerStatuses[0].RestartCount != 0 {
		t.Error("the container did not outlive its containerd, kubelet and apiserver")
	}

	c.run("node", "kill", other)
	if got := state(c.status(), other); got != node.Killed {
		t.Errorf("a killed node is %q", got)
	}
	if _, err := c.api().Nodes().Get(t.Context(), other, metav1.GetOptions{}); err != nil {
		t.Errorf("the Node object of a killed node: %v, want it to stay", err)
	}
	c.run("node", "remove", other)
	if _, err := c.api().Nodes().Get(t.Context(), other, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the Node object of a removed node: %v, want it gone", err)
	}
	if out, err := c.command("node", "add", other); err == nil {
		t.Errorf("a name was used twice: %s", out)
	}
	if out, err := c.command("gateway", "set", "--ceiling", "0"); err == nil {
		t.Errorf("a ceiling of 0 was taken: %s", out)
	}
}

func state(status daemon.Status, name string) node.State {
	for _, n := range status.Nodes {
		if n.Name == name {
			return n.State
		}
	}
	return ""
}

func TestRealCrash(t *testing.T) {
	c := newCluster(t)
	c.up("--hold", "1h")
	c.startPod("job")
	if err := syscall.Kill(c.status().PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	// The kernel ends all that the daemon had started; nobody helps.
	for deadline := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		out, err := c.command("leftovers")
		if err == nil {
			t.Fatal("nothing is left after a crash, though nothing was taken down")
		}
		if !strings.Contains(out, "process ") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("processes outlive their daemon:\n%s", out)
		}
	}
	if out, err := c.command("status"); err == nil || !strings.Contains(out, "crashed") {
		t.Errorf("status: %v\n%s", err, out)
	}
	c.up("--hold", "1h")
	if len(c.status().Nodes) != 0 {
		t.Error("a node of the crashed tenant is listed")
	}
	t.Log(c.run("down"))
	if out := c.run("leftovers"); out != "nothing\n" {
		t.Errorf("left over: %s", out)
	}
	if _, err := os.Stat(c.root); !os.IsNotExist(err) {
		t.Error(fmt.Errorf("the state root is still there: %v", err))
	}
}
