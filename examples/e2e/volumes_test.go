//go:build e2e

package e2e

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/socialweb-computer/tenant-executor/examples/localrunner/job"
	"github.com/socialweb-computer/tenant-executor/examples/localrunner/runner"
	"github.com/socialweb-computer/tenant-executor/examples/testbed"
)

// claim makes a volume on a node's disk and a claim for it, which the cluster
// binds.
func claim(t *testing.T, name string) {
	t.Helper()
	client := admin(t)
	size := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("10Mi")}
	kind, access := "", []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	made := corev1.HostPathDirectoryOrCreate
	if _, err := client.PersistentVolumes().Create(limited(t, time.Minute), &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeSpec{
			Capacity: size, AccessModes: access, PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/var/lib/" + name, Type: &made}},
		},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = client.PersistentVolumeClaims(testbed.Namespace).Delete(limited(t, time.Minute), name, metav1.DeleteOptions{})
		_ = client.PersistentVolumes().Delete(limited(t, time.Minute), name, metav1.DeleteOptions{})
	})
	if _, err := client.PersistentVolumeClaims(testbed.Namespace).Create(limited(t, time.Minute), &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: access, VolumeName: name, StorageClassName: &kind,
			Resources: corev1.VolumeResourceRequirements{Requests: size},
		},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// Jobs after each other share what lies on a claim: their builds, their caches
// and any other folder, which may be read-only or a part of the volume.
func TestVolumeOfAClaim(t *testing.T) {
	// The volume is a folder of the node, so both jobs have to be on one.
	localtenant(t, "gateway", "set", "--hold", "1m")
	defer localtenant(t, "gateway", "set", "--hold", "5s")
	claim(t, "e2e-claim")
	config := podConfig(t, "", `
[[kubernetes.volumes.pvc]]
name = "e2e-claim"
mount_path = "/builds"
sub_path = "builds"
[[kubernetes.volumes.pvc]]
name = "e2e-$WHICH"
mount_path = "/cache"
sub_path = "cache-$CI_PIPELINE_ID"
[[kubernetes.volumes.pvc]]
name = "e2e-claim"
mount_path = "/whole"
[[kubernetes.volumes.pvc]]
name = "e2e-claim"
mount_path = "/look"
sub_path = "notes"
read_only = true
`)
	with := func(script ...string) *job.Job {
		j := bed.Job(script...)
		j.Variables = append(j.Variables, job.Variable{Key: "WHICH", Value: "claim", Public: true})
		j.Cache = []job.Cache{{Key: "k", Policy: "pull-push", Paths: []string{"kept"}, When: "on_success"}}
		return j
	}
	first := runJobWith(t, config, with("echo note >/whole/notes/one", "ls /whole", "echo from-the-cache >kept"), runner.Options{})
	wantPassed(t, first)
	second := runJobWith(t, config, with(
		"cat /look/one", "(touch /look/x 2>&1 || true) | grep -i 'read-only'", "cat kept",
		"echo repositories: $(ls -d /whole/builds/*/*/root/demo | wc -l)",
	), runner.Options{})
	wantPassed(t, second)
	wantLog(t, second, "\nnote\n", "Read-only file system", "\nfrom-the-cache\n", "repositories: 2\n")
	if !strings.Contains(plain(second.Log), "repository in /builds/testbedto/") {
		t.Error("the path of a shared folder does not show the runner and its slot")
	}
}
