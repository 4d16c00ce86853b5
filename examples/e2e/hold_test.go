//go:build e2e

package e2e

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/socialweb-computer/tenant-executor/examples/localrunner/runner"
	"github.com/socialweb-computer/tenant-executor/examples/testbed"
)

// A Pod that binds to a node just as the gateway's hold ends and drops it is
// made anew within prepare: no job fails, and the runner's attempts are not
// used up. Each round comes a little later after the last job, so that some
// meet the edge.
func TestPodsMadeAtTheEdgeOfTheHold(t *testing.T) {
	const hold = 2 * time.Second
	localtenant(t, "gateway", "set", "--hold", hold.String())
	defer localtenant(t, "gateway", "set", "--hold", "5s")
	remade := 0
	rounds := 12
	if text := os.Getenv("E2E_ROUNDS"); text != "" {
		var err error
		if rounds, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	for round := range rounds {
		h := byHand(t, testbed.WithoutSources(bed.Job("true")))
		out, code := h.do("prepare")
		if code != 0 {
			t.Errorf("round %d: prepare ended with %d:\n%s", round, code, out)
		}
		remade += strings.Count(out, "recreating the Pod.")
		if out, code := h.do("run", h.script("echo ran"), "build_script"); code != 0 || out != "ran\n" {
			t.Errorf("round %d: the stage ended with %d: %q", round, code, out)
		}
		h.do("cleanup")
		// From the end of a job to the next: around the hold, which begins when
		// the Pod is gone, about a second after cleanup.
		<-limited(t, hold+time.Duration(round%12)*100*time.Millisecond).Done()
	}
	t.Logf("%d Pods were recreated", remade)
	if remade == 0 {
		t.Log("no round met the edge of the hold")
	}
}

// A gateway that counts several Pods for a node boots none for a second job,
// whose Pod must not share: the job log names the setting and its value.
func TestPodsPerNodeTrapIsNamed(t *testing.T) {
	wantNoNodes(t)
	localtenant(t, "gateway", "set", "--pods-per-node", "8")
	defer localtenant(t, "gateway", "set", "--pods-per-node", "1")
	config, err := bed.WriteConfig(testbed.Namespace, "")
	if err != nil {
		t.Fatal(err)
	}
	replaceInFile(t, config, "ceiling = 2", "ceiling = 2\npods_per_node = 8")
	first := testbed.WithoutSources(bed.Job(bed.Gate("trap")))
	firstWait := start(t, config, first, runner.Options{})
	defer bed.Open("trap")
	nodeOf(t, "trap", first.ID)
	told := make(chan struct{})
	said := false
	second := testbed.WithoutSources(bed.Job("true"))
	secondWait := start(t, config, second, runner.Options{OnLine: func(line string) {
		if !said && strings.Contains(line, "SOCIALWEB_CLUSTERPROVIDER_SCALE_PODS_PER_NODE to 1") {
			said = true
			close(told)
		}
	}})
	select {
	case <-told:
	case <-limited(t, time.Minute).Done():
		t.Error("the second job does not say why it waits")
	}
	bed.Open("trap")
	wantPassed(t, firstWait())
	out := secondWait()
	wantPassed(t, out)
	wantLog(t, out, "Waiting for a node: the gateway boots one for every 8 Pods, and 1 node is there for 2 job Pods")
}
