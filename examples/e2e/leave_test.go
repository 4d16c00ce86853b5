//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/socialweb-computer/tenant-executor/examples/localrunner/job"
	"github.com/socialweb-computer/tenant-executor/examples/localrunner/runner"
	"github.com/socialweb-computer/tenant-executor/examples/testbed"
)

const driverDomain = "tenant-executor.socialweb.computer/"

// podsOf are the Pods of a runner that are not on their way out.
func podsOf(t *testing.T, token string) []corev1.Pod {
	t.Helper()
	list, err := admin(t).Pods("").List(limited(t, time.Minute), metav1.ListOptions{LabelSelector: driverDomain + "runner=" + testbed.RunnerLabel(token)})
	if err != nil {
		t.Fatal(err)
	}
	var there []corev1.Pod
	for _, p := range list.Items {
		if p.DeletionTimestamp == nil {
			there = append(there, p)
		}
	}
	return there
}

func jobsOf(pods []corev1.Pod) string {
	var ids []string
	for _, p := range pods {
		ids = append(ids, p.Labels[driverDomain+"job-id"])
	}
	return strings.Join(ids, " ")
}

func startApart(t *testing.T, token string, j *job.Job) *testbed.Apart {
	t.Helper()
	a, err := bed.StartApart(limited(t, jobLimit), token, j)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// until waits for a stage's call.
func until(t *testing.T, a *testbed.Apart, stage string) runner.Call {
	t.Helper()
	for c := range a.Calls {
		if c.Stage == stage {
			return c
		}
	}
	_, log := a.Wait()
	t.Fatalf("the job ended before stage %s:\n%s", stage, log)
	return runner.Call{}
}

// kill kills a process; one that has ended by itself is as good.
func kill(t *testing.T, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && err != syscall.ESRCH {
		t.Fatal(err)
	}
}

// killedRunner is a runner that was killed while its job's script ran, and the
// driver with it.
func killedRunner(t *testing.T, token, gate string) *job.Job {
	t.Helper()
	j := testbed.WithoutSources(bed.Job(bed.Gate(gate)))
	a := startApart(t, token, j)
	c := until(t, a, "build_script")
	if err := bed.Arrived(limited(t, jobLimit), gate); err != nil {
		t.Fatal(err)
	}
	kill(t, a.Command.Process.Pid)
	kill(t, c.PID)
	if result, log := a.Wait(); result != nil {
		t.Fatalf("the runner was not killed: %+v\n%s", result, log)
	}
	return j
}

// kills is how many processes TestKilledAtAnyMoment kills: E2E_KILLS, or few.
func kills(t *testing.T) int {
	t.Helper()
	text := os.Getenv("E2E_KILLS")
	if text == "" {
		return 12
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// moments are the stages of a job, and how long each of them takes here at the
// most.
func moments() []struct {
	stage string
	lasts time.Duration
} {
	return []struct {
		stage string
		lasts time.Duration
	}{
		{"config", 100 * time.Millisecond}, {"prepare", 2 * time.Second}, {"prepare_script", 300 * time.Millisecond},
		{"get_sources", 300 * time.Millisecond}, {"build_script", 800 * time.Millisecond}, {"after_script", 300 * time.Millisecond},
		{"cleanup_file_variables", 300 * time.Millisecond}, {"cleanup", 150 * time.Millisecond},
	}
}

// kill -9 at random moments of all stages: of the driver, of the runner, of
// both. After one more job nothing is left.
func TestKilledAtAnyMoment(t *testing.T) {
	hit := map[string]int{}
	left := 0
	for i := range kills(t) {
		victim := []string{"driver", "runner", "runner and driver"}[i%3]
		moment := moments()[rand.N(len(moments()))] //nolint:gosec // any moment will do
		after := rand.N(moment.lasts)               //nolint:gosec // any moment will do
		j := testbed.WithoutSources(bed.Job("sleep 0.5"))
		testbed.AfterScript(j, "true")
		a := startApart(t, "", j)
		stage := killIn(t, a, victim, moment.stage, after)
		a.Wait()
		hit[stage]++
		there := podsOf(t, "")
		left += len(there)
		t.Logf("%3d. %s of job %d killed %s after the start of %s, in %s; there are Pods of jobs: %s",
			i+1, victim, j.ID, after.Round(time.Millisecond), moment.stage, stage, jobsOf(there))
	}
	wantPassed(t, runJob(t, testbed.WithoutSources(bed.Job("true")), runner.Options{}))
	t.Logf("kills by stage: %v", hit)
	t.Logf("Pods seen after each of the %d kills, together: %d", kills(t), left)
	there := podsOf(t, "")
	t.Logf("after one more job: %d Pods, %d undone cleanups", len(there), undoneFiles(t))
	if len(there) > 0 || undoneFiles(t) > 0 {
		t.Errorf("left after one more job: Pods of jobs %s, %d undone cleanups", jobsOf(there), undoneFiles(t))
	}
}

// killIn kills the victim some time after a stage's start, and says in which
// stage that was: the next one may have begun.
func killIn(t *testing.T, a *testbed.Apart, victim, stage string, after time.Duration) string {
	t.Helper()
	last := until(t, a, stage)
	moment := time.NewTimer(after)
	defer moment.Stop()
	for {
		select {
		case c, runs := <-a.Calls:
			if !runs {
				return "nothing: the job had ended"
			}
			last = c
			continue
		case <-moment.C:
		}
		if victim != "driver" {
			kill(t, a.Command.Process.Pid)
		}
		if victim != "runner" {
			kill(t, last.PID)
		}
		return last.Stage
	}
}

// A runner that goes on after its driver was killed in cleanup: the next job
// finds the Pod, since the runner has ended the attempt.
func TestKilledCleanupOfARunnerThatGoesOn(t *testing.T) {
	j := testbed.WithoutSources(bed.Job("true"))
	runJob(t, j, runner.Options{OnCall: func(c runner.Call) {
		if c.Stage == "cleanup" {
			kill(t, c.PID)
		}
	}})
	if there := jobsOf(podsOf(t, "")); there != fmt.Sprint(j.ID) {
		t.Fatalf("after the kill there is %q, want %d", there, j.ID)
	}
	wantPassed(t, runJob(t, testbed.WithoutSources(bed.Job("true")), runner.Options{}))
	wantNoPods(t, j.ID)
}

func undoneFiles(t *testing.T) int {
	t.Helper()
	files, err := bed.StateFiles("undone-")
	if err != nil {
		t.Fatal(err)
	}
	return len(files)
}

// Two runners on one cluster: neither a sweep nor reap touches the other
// runner's Pods, nor a job between two stages.
func TestTwoRunnersAndAJobBetweenTwoStages(t *testing.T) {
	j := testbed.WithoutSources(bed.Job("echo still here"))
	between := startApart(t, "", j)
	c := until(t, between, "prepare_script")
	// The runner stops where it is; the stage ends and no other begins.
	if err := between.Command.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	defer between.Command.Process.Signal(syscall.SIGCONT) //nolint:errcheck // it may have ended
	if err := testbed.Until(context.Background(), "the stage to end", time.Minute, func(context.Context) (bool, error) {
		return ended(c.PID), nil
	}); err != nil {
		t.Fatal(err)
	}
	other := killedRunner(t, testbed.SecondRunner, "two-runners")

	if out := reapAs(t, ""); strings.TrimSpace(out) != "[]" {
		t.Errorf("reap found %s", out)
	}
	if there := jobsOf(podsOf(t, testbed.SecondRunner)); there != fmt.Sprint(other.ID) {
		t.Errorf("of the other runner there is %q, want %d", there, other.ID)
	}
	// Its own runner finds the other one, and makes room for the sweeping job.
	if out := reapAs(t, testbed.SecondRunner); strings.Count(out, `"runner gone"`) != 1 {
		t.Errorf("reap found %s", out)
	}
	wantPassed(t, runJob(t, testbed.WithoutSources(bed.Job("true")), runner.Options{}))
	if there := jobsOf(podsOf(t, "")); there != fmt.Sprint(j.ID) {
		t.Errorf("of this runner there is %q, want %d", there, j.ID)
	}
	if err := between.Command.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	result, log := between.Wait()
	if result == nil || result.Status != runner.Success || !strings.Contains(log, "still here") {
		t.Errorf("the job between two stages ended with %+v:\n%s", result, log)
	}
	wantNoPods(t, j.ID, other.ID)
}

// ended says whether a process is gone, or dead and not yet waited for: its
// runner is stopped.
func ended(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || strings.Contains(string(text), ") Z ")
}

// reapAs runs reap for a runner and gives its JSON.
func reapAs(t *testing.T, token string, more ...string) string {
	t.Helper()
	args := append([]string{"reap", "--config", bed.Config, "--runner", testbed.RunnerLabel(token), "--output", "json"}, more...)
	out, err := exec.CommandContext(limited(t, time.Minute), bed.Driver, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("reap: %v\n%s", err, out)
	}
	return string(out)
}

// reap shows and removes what a killed runner has left, Secrets too.
func TestReap(t *testing.T) {
	j := killedRunner(t, testbed.SecondRunner, "reap")
	there := podsOf(t, testbed.SecondRunner)
	if len(there) != 1 {
		t.Fatalf("there are %d Pods", len(there))
	}
	secrets := admin(t).Secrets(testbed.Namespace)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "left", Labels: map[string]string{
		driverDomain + "runner": testbed.RunnerLabel(testbed.SecondRunner), driverDomain + "job": "0123456789abcdef",
	}, Annotations: map[string]string{driverDomain + "owner": there[0].Annotations[driverDomain+"owner"]}}}
	if _, err := secrets.Create(limited(t, time.Minute), secret, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, dry := range []bool{true, false} {
		var found []struct {
			Kind, Reason string
			Removed      bool
		}
		text := reapAs(t, testbed.SecondRunner, fmt.Sprintf("--dry-run=%t", dry))
		if err := json.Unmarshal([]byte(text), &found); err != nil {
			t.Fatal(err)
		}
		if len(found) != 2 || found[0].Reason != "runner gone" || found[1].Kind != "Secret" || found[1].Reason != "no Pod" ||
			found[0].Removed == dry || found[1].Removed == dry {
			t.Errorf("dry run %t: %s", dry, text)
		}
	}
	wantNoPods(t, j.ID)
	list, err := secrets.List(limited(t, time.Minute), metav1.ListOptions{LabelSelector: driverDomain + "job"})
	if err != nil || len(list.Items) != 0 {
		t.Errorf("Secrets are left: %v, %v", list.Items, err)
	}
}

// A cleanup that the apiserver missed is done by the next job.
func TestUndoneCleanupIsDoneByTheNextJob(t *testing.T) {
	config, err := bed.WriteConfig(testbed.Namespace, "outage = \"2s\"\n[cleanup]\ntimeout = \"2s\"\n")
	if err != nil {
		t.Fatal(err)
	}
	j := testbed.WithoutSources(bed.Job("true"))
	down := false
	out := runJobWith(t, config, j, runner.Options{OnCall: func(c runner.Call) {
		if c.Stage == "cleanup_file_variables" {
			down = true
			localtenant(t, "apiserver", "kill")
		}
	}})
	if !down {
		t.Fatalf("the job ended with %s and was never there", out.Status)
	}
	localtenant(t, "apiserver", "start")
	wantApiserver(t)
	if n := undoneFiles(t); n != 1 {
		t.Fatalf("%d cleanups are remembered", n)
	}
	wantPassed(t, runJob(t, testbed.WithoutSources(bed.Job("true")), runner.Options{}))
	wantNoPods(t, j.ID)
	if n := undoneFiles(t); n != 0 {
		t.Errorf("%d cleanups are remembered", n)
	}
}

// The job after another takes its node, and boots none.
func TestNextJobTakesTheNodeOfTheLast(t *testing.T) {
	client := admin(t)
	// Nodes go together, so what an earlier test has booted has to go first.
	if err := testbed.Until(context.Background(), "the cluster to be empty", 2*time.Minute, func(ctx context.Context) (bool, error) {
		nodes, err := client.Nodes().List(ctx, metav1.ListOptions{})
		return err == nil && len(nodes.Items) == 0, err
	}); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		wantPassed(t, runJob(t, testbed.WithoutSources(bed.Job("true")), runner.Options{}))
	}
	nodes, err := client.Nodes().List(limited(t, time.Minute), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(nodes.Items) != 1 {
		t.Errorf("jobs one after the other have %d nodes", len(nodes.Items))
	}
}
