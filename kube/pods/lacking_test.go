package pods_test

import (
	"testing"

	"github.com/socialweb-computer/tenant-executor/kube/pods"
)

// The words are those of a Kubernetes 1.37 with containerd 1.6.
func TestLacking(t *testing.T) {
	t.Parallel()
	for words, want := range map[string]bool{
		`Unschedulable: 0/1 nodes are available: persistentvolumeclaim "no-such-claim" not found. not found`:                                                                                                      true,
		`Unschedulable: 0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims. not found`:                                                                                                     true,
		`FailedMount: MountVolume.SetUp failed for volume "v" : secret "no-such-secret" not found`:                                                                                                                true,
		`FailedMount: MountVolume.SetUp failed for volume "v" : configmap references non-existent config key: b`:                                                                                                  true,
		`FailedMount: MountVolume.SetUp failed for volume "v" : kubernetes.io/csi: mounter.SetUpAt failed to get CSI client: driver name no-such.csi.example.com not found in the list of registered CSI drivers`: true,
		`FailedCreatePodSandBox: Failed to create pod sandbox: rpc error: code = Unknown desc = failed to get sandbox runtime: no runtime for "no-such-handler" is configured`:                                    true,
		`FailedMount: MountVolume.SetUp failed for volume "v" : mount failed: exit status 32 Output: mount: /var/lib/kubelet/pods/x/volumes/kubernetes.io~nfs/v: unknown filesystem type 'nfs'.`:                  true,
		`CreateContainerError: failed to create containerd container: cannot load seccomp profile "/var/lib/kubelet/seccomp/no-such.json": open: no such file or directory`:                                       true,
		`Unschedulable: 0/0 nodes are available: no nodes available to schedule pods`:                                                                                                                             false,
		`FailedMount: MountVolume.SetUp failed for volume "v" : mount failed: exit status 32: mount.nfs: Connection timed out`:                                                                                    false,
		`FailedMount: MountVolume.SetUp failed for volume "kube-root-ca.crt" : object "ci"/"kube-root-ca.crt" not registered`:                                                                                     false,
		`FailedCreatePodSandBox: Failed to create pod sandbox: rpc error: code = DeadlineExceeded desc = context deadline exceeded`:                                                                               false,
		`CreateContainerError: failed to create containerd container: get apparmor_parser version: exec: "apparmor_parser": not found`:                                                                            false,
		`RunContainerError: exec: "sh": executable file not found in $PATH`:                                                                                                                                       false,
	} {
		if got := pods.Lacking(words); got != want {
			t.Errorf("%s: %v, want %v", words, got, want)
		}
	}
}

// A kubelet that refuses a Pod for what it asks for is told from one that is
// short of something, or about to go.
func TestMisfit(t *testing.T) {
	t.Parallel()
	for status, want := range map[string]bool{
		`{"phase":"Failed","reason":"AppArmor","message":"Pod was rejected: Cannot enforce AppArmor: AppArmor is not enabled on the host"}`:      true,
		`{"phase":"Failed","reason":"SysctlForbidden","message":"Pod was rejected: forbidden sysctl"}`:                                           true,
		`{"phase":"Failed","reason":"TopologyAffinityError","message":"Pod was rejected: Resources cannot be allocated with Topology locality"}`: true,
		`{"phase":"Failed","reason":"OutOfcpu","message":"Pod was rejected: Node didn't have enough resource: cpu"}`:                             false,
		`{"phase":"Failed","reason":"NodeShutdown","message":"Pod was rejected as the node is shutting down."}`:                                  false,
		`{"phase":"Failed","reason":"Evicted","message":"The node was low on resource: memory."}`:                                                false,
	} {
		if got := pods.StateOf(read(t, "n1", status)); got.Misfit != want || got.Phase != pods.Ended {
			t.Errorf("%s: %+v, want misfit %v", status, got, want)
		}
	}
}
