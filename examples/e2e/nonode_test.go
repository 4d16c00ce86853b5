//go:build e2e

package e2e

import (
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedrbac "k8s.io/client-go/kubernetes/typed/rbac/v1"

	"github.com/socialweb-computer/tenant-executor/examples/localrunner/runner"
	"github.com/socialweb-computer/tenant-executor/examples/testbed"
)

// ps is what an operator sees with a configuration.
func ps(t *testing.T, config string, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(limited(t, time.Minute), bed.Driver, append([]string{"ps", "--config", config}, args...)...).CombinedOutput()
	if err != nil {
		t.Errorf("ps %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// withWait is a configuration with a budget for nodes, and a state folder that has
// seen nothing.
func withWait(t *testing.T, node, keys string) string {
	t.Helper()
	config := podConfig(t, keys, "[wait]\nnode = \""+node+"\"\n")
	replaceInFile(t, config, "[state]\ndir = ", "[state]\ndir = \""+t.TempDir()+"\" # ")
	return config
}

// A job waits for the node that a job of another namespace has: that is what it is
// told, and what ps shows, as far as the driver may look.
func TestWaitsForAJobOfAnotherNamespace(t *testing.T) {
	other := secondNamespace(t)
	localtenant(t, "gateway", "set", "--ceiling", "1")
	defer localtenant(t, "gateway", "set", "--ceiling", "2")
	wantNoNodes(t)
	first := testbed.WithoutSources(bed.Job(bed.Gate("two-namespaces")))
	firstWait := start(t, other, first, runner.Options{})
	defer bed.Open("two-namespaces")
	node := nodeOf(t, "two-namespaces", first.ID)
	config := withWait(t, "8s", "")
	replaceInFile(t, config, "ceiling = 2", "ceiling = 1")
	waits := func() string {
		h := byHand(t, testbed.WithoutSources(bed.Job("true")))
		h.config = config
		out, code := h.do("prepare")
		h.do("cleanup")
		if code != 2 || !strings.Contains(out, "ERROR: no node for the job after 8 s: the only node is busy (maximum 1)") {
			t.Errorf("prepare ended with %d:\n%s", code, out)
		}
		return out
	}
	if out := waits(); !strings.Contains(out, "Waiting for a node: the only node is busy (maximum 1); place 1 of 1 in the queue\n") {
		t.Errorf("the wait is told as:\n%s", out)
	}
	if out := ps(t, config); !regexp.MustCompile(regexp.QuoteMeta(node) + ` .* a job of namespace ci-two\n`).MatchString(out) {
		t.Errorf("ps says:\n%s", out)
	}
	if out := ps(t, config, "-A"); !regexp.MustCompile(regexp.QuoteMeta(node)+` .* ci-two/job-`).MatchString(out) || !strings.Contains(out, "\nci-two ") {
		t.Errorf("ps -A says:\n%s", out)
	}

	// Without the right it is told all the same that the node is busy, since the
	// scheduler says so, and of which namespace the queue is.
	roles := clientOf(t, typedrbac.NewForConfig).ClusterRoles()
	role, err := roles.Get(limited(t, time.Minute), "tenant-executor-nodes", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	whole := slices.Clone(role.Rules)
	role.Rules = slices.DeleteFunc(role.Rules, func(r rbacv1.PolicyRule) bool { return slices.Contains(r.Resources, "pods") })
	if role, err = roles.Update(limited(t, time.Minute), role, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	defer func() {
		role.Rules = whole
		if _, err := roles.Update(limited(t, time.Minute), role, metav1.UpdateOptions{}); err != nil {
			t.Error(err)
		}
	}()
	if out := waits(); !strings.Contains(out, "Waiting for a node: the only node is busy (maximum 1); place 1 of 1 in the queue of namespace ci\n") {
		t.Errorf("without the right the wait is told as:\n%s", out)
	}
	if out := ps(t, config); !regexp.MustCompile(regexp.QuoteMeta(node) + ` .* nothing of the namespaces that may be listed\n`).MatchString(out) {
		t.Errorf("without the right ps says:\n%s", out)
	}
	bed.Open("two-namespaces")
	wantPassed(t, firstWait())
}

// The place in the queue is told soon after it has changed.
func TestThePlaceInTheQueueIsToldSoon(t *testing.T) {
	localtenant(t, "gateway", "set", "--ceiling", "1")
	defer localtenant(t, "gateway", "set", "--ceiling", "2")
	wantNoNodes(t)
	config := withWait(t, "5m", "")
	replaceInFile(t, config, "ceiling = 2", "ceiling = 1")
	gates := []string{"queue-1", "queue-2"}
	first := testbed.WithoutSources(bed.Job(bed.Gate(gates[0])))
	firstWait := start(t, config, first, runner.Options{})
	defer bed.Open(gates[0])
	nodeOf(t, gates[0], first.ID)
	look, queued := told("place 1 of 1 in the queue")
	second := testbed.WithoutSources(bed.Job(bed.Gate(gates[1])))
	secondWait := start(t, config, second, runner.Options{OnLine: look})
	defer bed.Open(gates[1])
	queued(t)
	behind, isSecond := told("place 2 of 2 in the queue")
	moved, isFirst := told("place 1 of 1 in the queue")
	thirdWait := start(t, config, testbed.WithoutSources(bed.Job("true")), runner.Options{OnLine: func(line string) { behind(line); moved(line) }})
	isSecond(t)
	bed.Open(gates[0])
	nodeOf(t, gates[1], second.ID)
	from := time.Now()
	isFirst(t)
	if took := time.Since(from); took > 30*time.Second {
		t.Errorf("the third job is told after %s that it is the first", took)
	}
	bed.Open(gates[1])
	for _, wait := range []func() testbed.Outcome{firstWait, secondWait, thirdWait} {
		wantPassed(t, wait())
	}
}

// Nodes that are free and not what the job asks for are no busy nodes, and another
// attempt would find the same.
func TestNodesThatDoNotMatch(t *testing.T) {
	localtenant(t, "gateway", "set", "--hold", "1m")
	defer localtenant(t, "gateway", "set", "--hold", "5s")
	warm := testbed.WithoutSources(bed.Job("true"))
	wantPassed(t, runJob(t, warm, runner.Options{}))
	wantNoPods(t, warm.ID)
	h := byHand(t, testbed.WithoutSources(bed.Job("true")))
	h.config = withWait(t, "25s", "")
	replaceInFile(t, h.config, "[state]", "[kubernetes.node_selector]\ndisk = \"none\"\n\n[state]")
	out, code := h.do("prepare")
	h.do("cleanup")
	if code != 1 || !regexp.MustCompile(`Waiting for a node: (the only node does not fit|none of the \d nodes fits): \d node\(s\) didn't match Pod's node affinity/selector\n`).MatchString(out) ||
		!regexp.MustCompile(`ERROR: no node for the job after 25 s: (the only node does not fit|none of the \d nodes fits): \d node`).MatchString(out) {
		t.Errorf("prepare ended with %d:\n%s", code, out)
	}
}

// A job that asks for more than its node turns out to have is told so as soon as
// that is known, and the next one at once.
func TestMoreThanANodeHas(t *testing.T) {
	wantNoNodes(t)
	h := byHand(t, testbed.WithoutSources(bed.Job("true")))
	h.config = withWait(t, "2m", `memory_request = "900Gi"`)
	begun := time.Now()
	out, code := h.do("prepare")
	h.do("cleanup")
	const words = "ERROR: the job's containers ask for 900Gi of memory, and the largest node has "
	if code != 1 || !strings.Contains(out, words) || !strings.Contains(out, "Waiting for a node to boot: the cluster has none") || time.Since(begun) > 100*time.Second {
		t.Errorf("prepare ended with %d after %s:\n%s", code, time.Since(begun), out)
	}
	if out, code := h.do("prepare"); code != 1 || !strings.HasPrefix(plain(out), words) {
		t.Errorf("the next prepare ended with %d:\n%s", code, out)
	}
}

// A gateway that boots nothing is told as that, without the name of a cause that
// nobody has seen: the number of Pods for a node cannot be the reason that the first
// node does not come, and is one of several for the second.
func TestAGatewayThatBootsNothing(t *testing.T) {
	const trap = "SCALE_PODS_PER_NODE"
	// From now on it is known how long a boot takes here.
	wantNoNodes(t)
	wantPassed(t, runJob(t, testbed.WithoutSources(bed.Job("true")), runner.Options{}))
	for name, test := range map[string]struct {
		stop, goOn []string
		busy       bool
		says, not  []string
	}{
		"paused, from zero": {[]string{"--paused"}, []string{"--paused=false"}, false,
			[]string{"Waiting for a node: the cluster has none, and none has come\n", "The gateway may be paused or find no machine to rent: the operator has to look at it."}, []string{trap}},
		"a ceiling of 1 that nobody told": {[]string{"--ceiling", "1"}, []string{"--ceiling", "2"}, true,
			[]string{"Waiting for a node: the only node is busy (maximum 10), and no other has come\n", "boot fewer nodes than the 10 of [tenant] ceiling", trap}, []string{"has to set"}},
	} {
		t.Run(name, func(t *testing.T) {
			wantNoNodes(t)
			localtenant(t, append([]string{"gateway", "set"}, test.stop...)...)
			defer localtenant(t, append([]string{"gateway", "set"}, test.goOn...)...)
			gate := safe(t.Name())
			if test.busy {
				first := testbed.WithoutSources(bed.Job(bed.Gate(gate)))
				wait := start(t, bed.Config, first, runner.Options{})
				defer func() { wantPassed(t, wait()) }()
				defer bed.Open(gate)
				nodeOf(t, gate, first.ID)
			}
			h := byHand(t, testbed.WithoutSources(bed.Job("true")))
			h.config = podConfig(t, "", "[wait]\nnode = \"105s\"\n") // boots are known: doubt begins after 90 s
			replaceInFile(t, h.config, "ceiling = 2", "ceiling = 10")
			out, code := h.do("prepare")
			h.do("cleanup")
			if code != 2 || !strings.Contains(out, "ERROR: no node for the job after 1 min 45 s: ") || !strings.Contains(out, "WARNING: No node has come for 1 min ") {
				t.Errorf("prepare ended with %d:\n%s", code, out)
			}
			for _, words := range test.says {
				if !strings.Contains(plain(out), words) {
					t.Errorf("it does not say %q:\n%s", words, out)
				}
			}
			for _, words := range test.not {
				if strings.Contains(out, words) {
					t.Errorf("it says %q:\n%s", words, out)
				}
			}
		})
	}
}

// A start that takes long is told after twenty seconds.
func TestALongStartIsTold(t *testing.T) {
	wantNoNodes(t)
	localtenant(t, "registry", "set", "--delay", "12s") // each of several requests
	defer localtenant(t, "registry", "set", "--delay", "0s")
	look, wait := told("pulling images and starting containers")
	jobWait := start(t, bed.Config, testbed.WithoutSources(bed.Job("true")), runner.Options{OnLine: look})
	wait(t)
	localtenant(t, "registry", "set", "--delay", "0s")
	wantPassed(t, jobWait())
}
