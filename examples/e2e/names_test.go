//go:build e2e

package e2e

import (
	"strings"
	"testing"

	"github.com/socialweb-computer/tenant-executor/examples/localrunner/job"
	"github.com/socialweb-computer/tenant-executor/examples/localrunner/runner"
)

// hostName is the machine's name for nodes and Pods (examples/localtenant/resolver).
const hostName = "host.localtenant.internal"

// Names are resolved in a job as soon as its node is there, without a Pod of the
// cluster's DNS: GitLab's, for sources and in the script. Services need no DNS. A
// name that is not there fails at once.
func TestNamesInAJob(t *testing.T) {
	wantNoNodes(t)
	j := bed.Job(
		"cat hello.txt",
		"from=$(date +%s); ! wget -q -O- http://no-such-name.localtenant.internal/",
		"[ $(($(date +%s) - from)) -lt 5 ] && echo told at once",
		`grep -E '^127\.0\.0\.1[[:space:]].*\bdb\b' /etc/hosts && echo services are here`,
	)
	if !strings.Contains(j.Git.RepoURL, bed.Address) {
		t.Fatalf("%s does not hold %s", j.Git.RepoURL, bed.Address)
	}
	j.Git.RepoURL = strings.Replace(j.Git.RepoURL, bed.Address, hostName, 1)
	j.Services = []job.Image{{Name: bed.Image("busybox"), Alias: "db", Command: []string{"sleep", "600"}}}
	out := runJob(t, j, runner.Options{})
	wantPassed(t, out)
	wantLog(t, out, "hello\n", "told at once", "services are here")
}
