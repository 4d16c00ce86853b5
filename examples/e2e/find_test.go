//go:build e2e

package e2e

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/socialweb-computer/tenant-executor/examples/localrunner/runner"
	"github.com/socialweb-computer/tenant-executor/examples/testbed"
	"github.com/socialweb-computer/tenant-executor/kube/faultserver"
)

// The cluster moves to another port while a script runs, and its Cluster
// object says so: the log goes on, and later jobs find it, also without kcp.
func TestClusterObjectFollowsTheCluster(t *testing.T) {
	const acme = "tenancy.example.com/v1alpha1/clusters/acme"
	workspace := faultserver.StartWorkspace(t)
	moved := func() {
		t.Helper()
		status, err := bed.Status(limited(t, time.Minute))
		if err != nil {
			t.Fatal(err)
		}
		workspace.SetCluster(acme, status.URL)
	}
	moved()
	config, err := bed.WriteConfig(testbed.Namespace, "")
	if err != nil {
		t.Fatal(err)
	}
	status, err := bed.Status(limited(t, time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	replaceInFile(t, config, fmt.Sprintf("url = %q", status.URL),
		fmt.Sprintf("discover_cluster = \"acme\"\ndiscover_kubeconfig = %q", workspace.Kubeconfig(t)))

	j := testbed.WithoutSources(bed.Job("echo before", bed.Gate("moved"), "echo after"))
	wait := start(t, config, j, runner.Options{})
	if err := bed.Arrived(limited(t, jobLimit), "moved"); err != nil {
		t.Fatal(err)
	}
	localtenant(t, "apiserver", "kill")
	localtenant(t, "apiserver", "start", "--port", "new")
	moved()
	wantApiserver(t)
	bed.Open("moved")
	out := wait()
	wantPassed(t, out)
	wantLog(t, out, "before\n", "after\n")

	// What prepare asked for is where the cluster is now.
	workspace.Down()
	second := testbed.WithoutSources(bed.Job("echo without kcp"))
	wantPassed(t, runJobWith(t, config, second, runner.Options{}))
	wantNoPods(t, j.ID, second.ID)

	// The other tests' configuration names the old address.
	if bed.Config, err = bed.WriteConfig(testbed.Namespace, ""); err != nil {
		t.Fatal(err)
	}
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
