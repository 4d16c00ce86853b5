//go:build e2e

package e2e

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/socialweb-computer/tenant-executor/examples/localrunner/runner"
	"github.com/socialweb-computer/tenant-executor/examples/testbed"
	"github.com/socialweb-computer/tenant-executor/kube/faultserver"
)

// The cluster moves to another port while a script runs, and its Cluster
// object says so: the log goes on, and later jobs find it, also while kcp is
// down.
func TestClusterObjectFollowsTheCluster(t *testing.T) {
	config, status := discovering(t)
	j := testbed.WithoutSources(bed.Job("echo before", bed.Gate("moved"), "echo after"))
	wait := start(t, config, j, runner.Options{})
	if err := bed.Arrived(limited(t, jobLimit), "moved"); err != nil {
		t.Fatal(err)
	}
	localtenant(t, "apiserver", "kill")
	localtenant(t, "apiserver", "start", "--port", "new")
	wantApiserver(t)
	bed.Open("moved")
	out := wait()
	wantPassed(t, out)
	wantLog(t, out, "before\n", "after\n")
	if moved, err := bed.Status(limited(t, time.Minute)); err != nil || moved.URL == status.URL {
		t.Fatalf("the cluster is still at %s, %v", status.URL, err)
	}

	// What the first job found is where the cluster is now.
	localtenant(t, "kcp", "kill")
	defer localtenant(t, "kcp", "start")
	second := testbed.WithoutSources(bed.Job("echo without kcp"))
	wantPassed(t, runJobWith(t, config, second, runner.Options{}))
	wantNoPods(t, j.ID, second.ID)

	// The other tests' configuration names the old address.
	var err error
	if bed.Config, err = bed.WriteConfig(testbed.Namespace, ""); err != nil {
		t.Fatal(err)
	}
}

// discovering is a configuration that has the cluster looked up on the kcp side,
// and where it is at present.
func discovering(t *testing.T) (config string, status testbed.Status) {
	t.Helper()
	config, err := bed.WriteConfig(testbed.Namespace, "")
	if err != nil {
		t.Fatal(err)
	}
	if status, err = bed.Status(limited(t, time.Minute)); err != nil {
		t.Fatal(err)
	}
	replaceInFile(t, config, fmt.Sprintf("url = %q", status.URL),
		fmt.Sprintf("discover_cluster = %q\ndiscover_kubeconfig = %q", status.KCP.Cluster, status.KCP.Kubeconfig))
	return config, status
}

// The mount answers like an apiserver, and is refused before it is asked.
func TestTheMountIsRefused(t *testing.T) {
	config, err := bed.WriteConfig(testbed.Namespace, "")
	if err != nil {
		t.Fatal(err)
	}
	status, err := bed.Status(limited(t, time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(status.Mount.URL, "/clusters/") {
		t.Fatalf("the mount is at %q", status.Mount.URL)
	}
	replaceInFile(t, config, fmt.Sprintf("url = %q", status.URL), fmt.Sprintf("url = %q", status.Mount.URL))
	h := byHand(t, testbed.WithoutSources(bed.Job("true")))
	h.config = config
	h.wants("prepare", 2, "this is the kcp mount, which takes bearer tokens only and carries no exec")
}

// What a real apiserver makes of a certificate of a CA that it does not take:
// prepare ends at once, with the reason, and makes no Pod.
func TestCertificateOfAnotherCA(t *testing.T) {
	config, err := bed.WriteConfig(testbed.Namespace, "")
	if err != nil {
		t.Fatal(err)
	}
	status, err := bed.Status(limited(t, time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	other := faultserver.Start(t).Credentials(t)
	replaceInFile(t, config, filepath.Join(status.AccessDir, "client.crt"), other.CertFile)
	replaceInFile(t, config, filepath.Join(status.AccessDir, "client.key"), other.KeyFile)
	j := testbed.WithoutSources(bed.Job("true"))
	h := byHand(t, j)
	h.config = config
	h.wants("prepare", 2, other.CertFile+`: it is signed by "CN=test CA", and the cluster takes certificates signed by `)
	wantNoPods(t, j.ID)
}
