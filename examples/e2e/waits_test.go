//go:build e2e

package e2e

import (
	"context"
	"regexp"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/socialweb-computer/tenant-executor/examples/localrunner/runner"
	"github.com/socialweb-computer/tenant-executor/examples/testbed"
)

// wantNoNodes waits until the gateway has dropped all nodes.
func wantNoNodes(t *testing.T) {
	t.Helper()
	client := admin(t)
	if err := testbed.Until(context.Background(), "the hold to end", time.Minute, func(ctx context.Context) (bool, error) {
		nodes, err := client.Nodes().List(ctx, metav1.ListOptions{})
		return err == nil && len(nodes.Items) == 0, err
	}); err != nil {
		t.Fatal(err)
	}
}

// fault has something go wrong with what the gateway boots next, and nothing
// more at the test's end.
func fault(t *testing.T, args ...string) {
	t.Helper()
	localtenant(t, append([]string{"fault", "set"}, args...)...)
	t.Cleanup(func() {
		if _, err := bed.Do(context.Background(), "fault", "clear"); err != nil {
			t.Error(err)
		}
	})
}

// Two jobs come to an empty cluster. The second one is told its place. A third one
// finds a node.
func TestSecondJobWhileTheFirstNodeBoots(t *testing.T) {
	wantNoNodes(t)
	localtenant(t, "gateway", "set", "--boot-time", "4s", "--hold", "20s")
	defer localtenant(t, "gateway", "set", "--boot-time", "1s", "--hold", "5s")
	first, second := testbed.WithoutSources(bed.Job("true")), testbed.WithoutSources(bed.Job("true"))
	waits := make(chan struct{})
	said := false
	firstWait := start(t, bed.Config, first, runner.Options{OnLine: func(line string) {
		if !said && strings.Contains(line, "Waiting for a node to boot: the cluster has none") {
			said = true
			close(waits)
		}
	}})
	select {
	case <-waits:
	case <-limited(t, time.Minute).Done():
		t.Error("the first job does not say that it waits")
	}
	out := runJob(t, second, runner.Options{})
	wantPassed(t, out)
	cold := firstWait()
	wantPassed(t, cold)
	wantNoPods(t, first.ID, second.ID)
	warm := runJob(t, testbed.WithoutSources(bed.Job("true")), runner.Options{})
	wantPassed(t, warm)
	wantFewOfOurs(t, warm.Log)
	recorded(t, "Warm start", warm)
	// The cluster may be seen while the node joins, and the second job while none
	// has joined.
	recorded(t, "Cold start", cold,
		varying{line: regexp.MustCompile(`^Waiting for a node: \d of \d nodes? (is|are) not ready yet`), shown: true},
		varying{line: regexp.MustCompile(`^Waiting for a node to boot: the cluster has none; place 1 of 2 in the queue`)})
	if !regexp.MustCompile("Waiting for a node to boot: the cluster has none; place 2 of 2 in the queue").MatchString(out.Log) {
		t.Errorf("the second job does not tell its place:\n%s", plain(out.Log))
	}
}

// A machine that does not come up is booted again by the gateway; the job waits
// for it and says since when.
func TestABootThatFails(t *testing.T) {
	wantNoNodes(t)
	fault(t, "--failing-boots", "1")
	out := runJob(t, testbed.WithoutSources(bed.Job("true")), runner.Options{})
	wantPassed(t, out)
	wantLog(t, out, "Waiting for a node to boot: the cluster has none")
	if m := regexp.MustCompile(`\(node ((?:\d+m)?\d+s),`).FindStringSubmatch(out.Log); m == nil || len(m[1]) == 2 && m[1] < "5s" {
		t.Errorf("the wait of two boots and a pause is told as %v:\n%s", m, plain(out.Log))
	}
}

// A node that registers and never gets ready is told as such, and the wait ends
// with its budget, as a failure of the system.
func TestANodeThatNeverGetsReady(t *testing.T) {
	wantNoNodes(t)
	fault(t, "--never-ready", "1")
	config, err := bed.WriteConfig(testbed.Namespace, "[wait]\nnode = \"8s\"\n")
	if err != nil {
		t.Fatal(err)
	}
	h := byHand(t, testbed.WithoutSources(bed.Job("true")))
	h.config = config
	out, code := h.do("prepare")
	h.do("cleanup")
	if code != 2 || !strings.Contains(out, "Waiting for a node: 1 of 1 node is not ready yet") || !strings.Contains(out, "ERROR: no node for the job after 8 s: 1 of 1 node is not ready yet") {
		t.Errorf("prepare ended with %d:\n%s", code, out)
	}
}

// A node is ready and its kubelet cannot be reached yet: prepare goes on asking,
// no attempt is used up, and the wait is told.
func TestAKubeletThatIsReachedLate(t *testing.T) {
	wantNoNodes(t)
	fault(t, "--unreachable", "15s")
	out := runJob(t, testbed.WithoutSources(bed.Job("echo reached")), runner.Options{})
	wantPassed(t, out)
	wantLog(t, out, "reached\n")
	m := regexp.MustCompile(`, exec ((?:\d+m)?\d+s)\)`).FindStringSubmatch(out.Log)
	if m == nil || m[1] == "0s" || m[1] == "1s" {
		t.Errorf("the wait for the kubelet is told as %v:\n%s", m, plain(out.Log))
	}
	prepares := 0
	for _, call := range out.Calls {
		if call.Stage == "prepare" {
			prepares++
		}
	}
	if prepares != 1 {
		t.Errorf("%d prepares", prepares)
	}
}

// A fresh node has no image, and the registry is slow: the wait is bounded by a
// budget of its own, and says what it was.
func TestASlowRegistryOnAFreshNode(t *testing.T) {
	wantNoNodes(t)
	localtenant(t, "registry", "set", "--delay", "10s")
	defer localtenant(t, "registry", "set", "--delay", "0s")
	config, err := bed.WriteConfig(testbed.Namespace, "[wait]\nstart = \"5s\"\n")
	if err != nil {
		t.Fatal(err)
	}
	h := byHand(t, testbed.WithoutSources(bed.Job("true")))
	h.config = config
	out, code := h.do("prepare")
	h.do("cleanup")
	if code != 2 || !strings.Contains(out, "the Pod was still starting after 5 s") {
		t.Errorf("prepare ended with %d:\n%s", code, out)
	}
}

// The gateway drops the node at the moment that the Pod is bound to it: prepare
// makes the Pod anew, and the runner sees one attempt.
func TestANodeThatIsDroppedUnderThePod(t *testing.T) {
	fault(t, "--drops-on-bind", "1")
	out := runJob(t, testbed.WithoutSources(bed.Job("echo ran")), runner.Options{})
	wantPassed(t, out)
	wantLog(t, out, "Nothing has run yet; recreating the Pod.", "ran\n")
	prepares := 0
	for _, call := range out.Calls {
		if call.Stage == "prepare" {
			prepares++
		}
	}
	if prepares != 1 {
		t.Errorf("%d prepares", prepares)
	}
}
