//go:build e2e

package e2e

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typednode "k8s.io/client-go/kubernetes/typed/node/v1"

	"github.com/socialweb-computer/tenant-executor/examples/localrunner/runner"
	"github.com/socialweb-computer/tenant-executor/examples/testbed"
)

// runtimeClass makes a class for a handler of the nodes' container runtime.
func runtimeClass(t *testing.T, class nodev1.RuntimeClass) {
	t.Helper()
	client := clientOf(t, typednode.NewForConfig)
	if _, err := client.RuntimeClasses().Create(limited(t, time.Minute), &class, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = client.RuntimeClasses().Delete(limited(t, time.Minute), class.Name, metav1.DeleteOptions{})
	})
}

// A runtime class has the node's container runtime make the Pod in its own way,
// and says what that costs and on which nodes it is there.
func TestRuntimeClass(t *testing.T) {
	runtimeClass(t, nodev1.RuntimeClass{
		ObjectMeta: metav1.ObjectMeta{Name: "e2e-without-devices"}, Handler: "without-devices",
		Overhead:   &nodev1.Overhead{PodFixed: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("32Mi")}},
		Scheduling: &nodev1.Scheduling{NodeSelector: map[string]string{"kubernetes.io/os": "linux"}},
	})
	const script = "if test -e /dev/kmsg; then echo with devices; else echo without devices; fi"
	out := runJobWith(t, podConfig(t, "privileged = true\n", ""), testbed.WithoutSources(bed.Job(script)), runner.Options{})
	wantPassed(t, out)
	wantLog(t, out, "\nwith devices\n")

	gate := safe(t.Name())
	j := testbed.WithoutSources(bed.Job(script, bed.Gate(gate)))
	defer bed.Open(gate)
	wait := start(t, podConfig(t, "privileged = true\nruntime_class_name = \"e2e-without-devices\"\n", ""), j, runner.Options{})
	if err := bed.Arrived(limited(t, jobLimit), gate); err != nil {
		t.Fatal(err)
	}
	found, err := podOf(limited(t, time.Minute), admin(t), j.ID)
	if err != nil || found == nil {
		t.Fatalf("the Pod: %v, %v", found, err)
	}
	if found.Spec.Overhead.Memory().String() != "32Mi" || found.Spec.NodeSelector["kubernetes.io/os"] != "linux" {
		t.Errorf("the Pod has overhead %v and node selector %v", found.Spec.Overhead, found.Spec.NodeSelector)
	}
	bed.Open(gate)
	out = wait()
	wantPassed(t, out)
	wantLog(t, out, "\nwithout devices\n")
}

// What the Pod names and the cluster or the node does not have fails the job
// once, and the log names it. These nodes have no AppArmor, no NFS and no CSI
// driver.
func TestWhatTheClusterLacks(t *testing.T) {
	runtimeClass(t, nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: "e2e-no-handler"}, Handler: "no-such-handler"})
	const lacks, refused = "The operator has to provide it, in the namespace of the Pod or on the nodes", "The message is the cluster's own; a setting of the [kubernetes] section"
	const short = "[wait]\nnode = \"20s\"\nstart = \"8s\"\n"
	for name, test := range map[string]struct {
		keys, tables string
		says         []string
	}{
		"runtime class": {keys: "runtime_class_name = \"no-such-class\"\n",
			says: []string{`RuntimeClass "no-such-class" not found`, refused}},
		"runtime of a class": {keys: "runtime_class_name = \"e2e-no-handler\"\n",
			says: []string{"still starting after 8 s: FailedCreatePodSandBox: ", `no runtime for "no-such-handler" is configured`, lacks}},
		"claim": {tables: "[[kubernetes.volumes.pvc]]\nname = \"no-such-claim\"\nmount_path = \"/v\"\n",
			says: []string{`still waiting for a node after 20 s: Unschedulable: `, `persistentvolumeclaim "no-such-claim" not found`, lacks}},
		"secret": {tables: "[[kubernetes.volumes.secret]]\nname = \"no-such-secret\"\nmount_path = \"/v\"\n",
			says: []string{"still starting after 8 s: FailedMount: ", `secret "no-such-secret" not found`, lacks}},
		"csi driver": {tables: "[[kubernetes.volumes.csi]]\nname = \"v\"\ndriver = \"no-such.csi.example.com\"\nmount_path = \"/v\"\n",
			says: []string{"still starting after 8 s: FailedMount: ", "driver name no-such.csi.example.com not found", lacks}},
		"nfs": {tables: "[[kubernetes.volumes.nfs]]\nname = \"v\"\nserver = \"127.0.0.1\"\npath = \"/x\"\nmount_path = \"/v\"\n",
			says: []string{"still starting after 8 s: FailedMount: ", "-t nfs 127.0.0.1:/x", lacks}},
		"seccomp profile": {tables: "[kubernetes.pod_security_context.seccomp_profile]\ntype = \"Localhost\"\nlocalhost_profile = \"no-such.json\"\n",
			says: []string{"cannot load seccomp profile", "no-such.json", lacks}},
		"AppArmor": {tables: "[kubernetes.pod_security_context.app_armor_profile]\ntype = \"RuntimeDefault\"\n",
			says: []string{" does not take the job's Pod: ", "AppArmor is not enabled on the host", refused}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // they mostly wait
			j := testbed.WithoutSources(bed.Job("echo never"))
			out := runJobWith(t, podConfig(t, test.keys, test.tables+short), j, runner.Options{})
			if out.Status != runner.Failed || out.FailureReason != "script_failure" || out.Attempts != 1 {
				t.Errorf("ended with %s, %s after %d attempts; want one build failure", out.Status, out.FailureReason, out.Attempts)
			}
			wantLog(t, out, test.says...)
			if n := strings.Count(out.Log, "ecreating the Pod"); n != 0 {
				t.Errorf("the Pod was made anew %d times", n)
			}
			wantNoPods(t, j.ID)
		})
	}
}

// A node without SELinux runs Pods that have a type, as the kubernetes executor's
// do.
func TestSELinuxType(t *testing.T) {
	gate := safe(t.Name())
	j := testbed.WithoutSources(bed.Job("echo ran", bed.Gate(gate)))
	defer bed.Open(gate)
	wait := start(t, podConfig(t, "", "[kubernetes.pod_security_context]\nselinux_type = \"container_t\"\n[kubernetes.build_container_security_context]\nselinux_type = \"spc_t\"\n"), j, runner.Options{})
	if err := bed.Arrived(limited(t, jobLimit), gate); err != nil {
		t.Fatal(err)
	}
	found, err := podOf(limited(t, time.Minute), admin(t), j.ID)
	if err != nil || found == nil {
		t.Fatalf("the Pod: %v, %v", found, err)
	}
	if whole, own := found.Spec.SecurityContext.SELinuxOptions, found.Spec.Containers[0].SecurityContext.SELinuxOptions; whole == nil || whole.Type != "container_t" || own == nil || own.Type != "spc_t" {
		t.Errorf("the Pod has %+v, its build container %+v", whole, own)
	}
	bed.Open(gate)
	out := wait()
	wantPassed(t, out)
	wantLog(t, out, "\nran\n")
}
