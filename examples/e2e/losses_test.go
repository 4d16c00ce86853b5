//go:build e2e

package e2e

import (
	"context"
	"regexp"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/socialweb-computer/tenant-executor/examples/localrunner/job"
	"github.com/socialweb-computer/tenant-executor/examples/localrunner/runner"
	"github.com/socialweb-computer/tenant-executor/examples/testbed"
)

// A cancelled script's processes end, also those that hide, and after_script
// runs in the same Pod.
func TestCancelEndsTheScriptAndKeepsThePod(t *testing.T) {
	j := testbed.WithoutSources(bed.Job(
		"(setsid sleep 4001 &)",
		"sh -c 'trap \"\" TERM; while :; do sleep 4002; done' &",
		"sleep 4003 &",
		`eval "$TASK"`))
	j.Variables = append(j.Variables, job.Variable{Key: "TASK", Value: bed.Gate("cancel"), Public: true, Raw: true})
	testbed.AfterScript(j, "echo after status=$CI_JOB_STATUS", "ps -o args | grep 'sleep 400[123]' || echo no process is left")
	cancel := make(chan struct{})
	wait := start(t, bed.Config, j, runner.Options{Cancel: cancel})
	node := nodeOf(t, "cancel", j.ID)
	close(cancel)
	out := wait()
	if out.Status != runner.Canceled {
		t.Errorf("ended with %s (on node %s)", out.Status, node)
	}
	wantLog(t, out, "after status=canceled\n", "no process is left\n")
	// What the shell says of the commands that it was waiting for.
	recorded(t, "Cancel", out, aside(), varying{line: regexp.MustCompile(`Terminated`)})
	wantNoPods(t, j.ID)
}

func TestPodDeletedMidScript(t *testing.T) {
	j := testbed.WithoutSources(bed.Job(bed.Gate("deleted")))
	wait := start(t, bed.Config, j, runner.Options{})
	nodeOf(t, "deleted", j.ID)
	client := admin(t)
	pod, err := podOf(limited(t, time.Minute), client, j.ID)
	if err != nil || pod == nil {
		t.Fatal(pod, err)
	}
	if err := client.Pods(pod.Namespace).Delete(limited(t, time.Minute), pod.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	out := wait()
	wantSystemFailure(t, out, "ERROR: the job's Pod")
	if n := strings.Count(out.Log, "ERROR: the job's Pod"); n != 1 {
		t.Errorf("the loss is told %d times", n)
	}
	wantNoPods(t, j.ID)
}

// An apiserver that stays away ends the job, and never as passed: here the
// script goes on and would end well. With the built-in executor's exec strategy
// a job whose script fails passes when the apiserver is killed.
func TestApiserverStaysAway(t *testing.T) {
	config, err := bed.WriteConfig(testbed.Namespace, "outage = \"9s\"\n[cleanup]\ntimeout = \"1m\"\n")
	if err != nil {
		t.Fatal(err)
	}
	j := testbed.WithoutSources(bed.Job(bed.Gate("apiserver")))
	gaveUp := make(chan struct{})
	told := false
	wait := start(t, config, j, runner.Options{OnLine: func(line string) {
		if !told && strings.Contains(line, "could not be reached for") {
			told = true
			close(gaveUp)
		}
	}})
	nodeOf(t, "apiserver", j.ID)
	localtenant(t, "apiserver", "kill")
	bed.Open("apiserver")
	select {
	case <-gaveUp:
	case <-limited(t, 2*time.Minute).Done():
		t.Error("the driver does not give up")
	}
	localtenant(t, "apiserver", "start")
	wantSystemFailure(t, wait(), "trying to reach it again", "the script was running and had written")
	wantNoPods(t, j.ID)
}

// A node that dies without a word, also when it is the only one, ends the job
// within a minute.
func TestNodeDiesSilently(t *testing.T) {
	client := admin(t)
	// So that the silence of the connection comes before the word of the cluster.
	config, err := bed.WriteConfig(testbed.Namespace, "silence = \"5s\"\n")
	if err != nil {
		t.Fatal(err)
	}
	for _, others := range []bool{false, true} {
		name := map[bool]string{false: "the only node", true: "one of two"}[others]
		t.Run(name, func(t *testing.T) {
			if err := testbed.Until(context.Background(), "the cluster to be empty", 2*time.Minute, func(ctx context.Context) (bool, error) {
				nodes, err := client.Nodes().List(ctx, metav1.ListOptions{})
				return err == nil && len(nodes.Items) == 0, err
			}); err != nil {
				t.Fatal(err)
			}
			gate, otherGate := safe(t.Name()), safe(t.Name())+"-other"
			j := task(testbed.WithoutSources(bed.Job("")), bed.Gate(gate))
			wait := start(t, config, j, runner.Options{})
			node := nodeOf(t, gate, j.ID)
			if others {
				other := testbed.WithoutSources(bed.Job(bed.Gate(otherGate)))
				otherWait := start(t, bed.Config, other, runner.Options{})
				nodeOf(t, otherGate, other.ID)
				defer func() {
					bed.Open(otherGate)
					wantPassed(t, otherWait())
				}()
			}
			localtenant(t, "node", "cut", node)
			localtenant(t, "node", "kill", node)
			// Nobody else takes it away while jobs come, and it counts as a node.
			defer localtenant(t, "node", "remove", node)
			died := time.Now()
			out := wait()
			wantSystemFailure(t, out, "ERROR: node "+node)
			if took := time.Since(died); took > time.Minute {
				t.Errorf("it took %s to notice", took)
			}
			if !others {
				recorded(t, "Node loss", out, aside())
			}
			wantNoPods(t, j.ID)
		})
	}
}

// kill -9 of prepare, at any moment: cleanup finds what there is.
func TestPrepareKilledAtAnyMoment(t *testing.T) {
	var ids []int64
	for i := range 20 {
		j := testbed.WithoutSources(bed.Job("true"))
		ids = append(ids, j.ID)
		killPrepare(t, j, time.Duration(i)*75*time.Millisecond)
	}
	wantNoPods(t, ids...)
}

// Output arrives byte for byte, through the whole of the runner.
func TestOutputArrivesByteForByte(t *testing.T) {
	j := testbed.WithoutSources(bed.Job(
		`head -c 200000 /dev/zero | tr '\0' z; echo`,
		`for i in 200 210 277 300 377; do printf "\\$i"; done; echo`,
		`echo tail`))
	out := runJob(t, j, runner.Options{})
	wantPassed(t, out)
	wantLog(t, out, "\n"+strings.Repeat("z", 200000)+"\n", "\x80\x88\xbf\xc0\xff\n", "\ntail\n")
}
