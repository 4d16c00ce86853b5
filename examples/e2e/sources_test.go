//go:build e2e

package e2e

import (
	"net"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/socialweb-computer/tenant-executor/examples/localrunner/runner"
)

// The Pod network of a node that has just joined may come up after the node is
// ready: the way to the job's repository is waited for. Here the address of the
// git server is not there before the job log says that it is missing.
func TestFreshNodeWithoutTheWayToTheRepository(t *testing.T) {
	host, _, err := net.SplitHostPort(bed.Registry)
	if err != nil {
		t.Fatal(err)
	}
	late := host[:strings.LastIndexByte(host, '.')] + ".250"
	out, err := exec.CommandContext(limited(t, time.Minute), "ip", "-o", "address", "show", "to", host).Output()
	if fields := strings.Fields(string(out)); err != nil || len(fields) < 2 {
		t.Fatalf("the bridge at %s: %q, %v", host, out, err)
	}
	bridge := strings.Fields(string(out))[1]
	address := func(verb string) error {
		return exec.CommandContext(limited(t, time.Minute), "ip", "address", verb, late+"/32", "dev", bridge).Run()
	}
	t.Cleanup(func() { _ = address("del") })
	j := bed.Job("echo never")
	j.Git.RepoURL = "http://" + late + ":9/group/demo.git"
	var once sync.Once
	ended := runJobWith(t, bed.Config, j, runner.Options{OnLine: func(line string) {
		if strings.Contains(line, "Waiting for the node's network: "+late+":9") {
			once.Do(func() {
				if err := address("add"); err != nil {
					t.Error(err)
				}
			})
		}
	}})
	wantLog(t, ended, "is not reached from the job's Pod (it does not answer)", late+":9 is reached from the job's Pod, after")
}
