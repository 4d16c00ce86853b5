//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/socialweb-computer/tenant-executor/examples/localrunner/job"
	"github.com/socialweb-computer/tenant-executor/examples/localrunner/runner"
	"github.com/socialweb-computer/tenant-executor/examples/testbed"
)

// A job from zero nodes: it waits for one, clones, runs in its own image,
// uploads and caches; then the cluster is empty again.
func TestFirstJobFromZeroNodes(t *testing.T) {
	client := admin(t)
	if err := testbed.Until(context.Background(), "the cluster to be empty", time.Minute, func(ctx context.Context) (bool, error) {
		nodes, err := client.Nodes().List(ctx, metav1.ListOptions{})
		return err == nil && len(nodes.Items) == 0, err
	}); err != nil {
		t.Fatal(err)
	}
	j := bed.Job("git log -1 --format=%s", "cat hello.txt", "mkdir -p cached && echo cached >cached/file", "echo made >artifact.txt", "cat /etc/os-release")
	j.Image.Name = bed.Image("debian")
	j.Artifacts = []job.Artifact{{Name: "made", Paths: []string{"artifact.txt"}, When: "on_success", Type: "archive", Format: "zip"}}
	j.Cache = []job.Cache{{Key: "k", Policy: "pull-push", Paths: []string{"cached/"}, When: "on_success"}}
	out := runJob(t, j, runner.Options{})
	wantPassed(t, out)
	wantLog(t, out, "Waiting for a node", "runs on node", "hello\n", "Debian", "cached", "Job succeeded")
	if strings.Contains(out.Log, "Missing gitlab-runner") {
		t.Error("gitlab-runner was not found in the helper container")
	}
	archive, err := bed.Artifacts(j)
	if err != nil || archive.Size == 0 {
		t.Errorf("artifacts: %+v, error %v", archive, err)
	}
	var stages []string
	for _, call := range out.Calls {
		stages = append(stages, call.Stage)
	}
	want := "config prepare prepare_script get_sources restore_cache build_script archive_cache upload_artifacts_on_success cleanup_file_variables cleanup"
	if got := strings.Join(stages, " "); got != want {
		t.Errorf("stages\n%s\nwant\n%s", got, want)
	}
	wantNoPods(t, j.ID)
	if err := testbed.Until(context.Background(), "the hold to end", time.Minute, func(ctx context.Context) (bool, error) {
		nodes, err := client.Nodes().List(ctx, metav1.ListOptions{})
		return err == nil && len(nodes.Items) == 0, err
	}); err != nil {
		t.Error(err)
	}
}

func TestExitCodesArrive(t *testing.T) {
	for _, code := range []int{1, 42, 137, 255} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			j := testbed.WithoutSources(bed.Job(fmt.Sprintf("echo before; exit %d", code)))
			out := runJob(t, j, runner.Options{})
			if out.Status != runner.Failed || out.FailureReason != "script_failure" || out.ExitCode != code {
				t.Errorf("ended with %s, %s, exit code %d; want a script failure with %d", out.Status, out.FailureReason, out.ExitCode, code)
			}
			wantLog(t, out, "before\n")
		})
	}
}

// nodeOf waits until a job's script is at its gate and gives its Pod's node.
func nodeOf(t *testing.T, gate string, id int64) string {
	t.Helper()
	if err := bed.Arrived(limited(t, jobLimit), gate); err != nil {
		t.Fatal(err)
	}
	pod, err := podOf(limited(t, time.Minute), admin(t), id)
	if err != nil || pod == nil {
		t.Fatalf("the Pod of job %d: %v, %v", id, pod, err)
	}
	return pod.Spec.NodeName
}

func TestTwoJobsNeverShareANode(t *testing.T) {
	other := secondNamespace(t)
	for name, config := range map[string]string{"one namespace": bed.Config, "two namespaces": other} {
		t.Run(name, func(t *testing.T) {
			gates := []string{t.Name() + "-a", t.Name() + "-b"}
			gates[0], gates[1] = safe(gates[0]), safe(gates[1])
			first := testbed.WithoutSources(bed.Job(bed.Gate(gates[0])))
			second := testbed.WithoutSources(bed.Job(bed.Gate(gates[1])))
			waits := []func() testbed.Outcome{start(t, bed.Config, first, runner.Options{}), start(t, config, second, runner.Options{})}
			defer bed.Open(gates[0])
			defer bed.Open(gates[1])
			a, b := nodeOf(t, gates[0], first.ID), nodeOf(t, gates[1], second.ID)
			if a == b {
				t.Errorf("both jobs run on node %s at once", a)
			}
			bed.Open(gates[0])
			bed.Open(gates[1])
			for _, wait := range waits {
				wantPassed(t, wait())
			}
		})
	}
}

func safe(name string) string {
	return strings.NewReplacer("/", "-", " ", "-", "#", "-").Replace(name)
}

// At the ceiling a job waits, says so, and runs when a node is free.
func TestThirdJobWaitsAtTheCeiling(t *testing.T) {
	gates := []string{"ceiling-0", "ceiling-1", "ceiling-2"}
	var jobs []*job.Job
	var waits []func() testbed.Outcome
	for _, gate := range gates[:2] {
		j := testbed.WithoutSources(bed.Job(bed.Gate(gate)))
		jobs = append(jobs, j)
		waits = append(waits, start(t, bed.Config, j, runner.Options{}))
		defer bed.Open(gate)
	}
	nodes := map[string]bool{nodeOf(t, gates[0], jobs[0].ID): true, nodeOf(t, gates[1], jobs[1].ID): true}
	if len(nodes) != 2 {
		t.Fatalf("two jobs run on nodes %v", nodes)
	}
	third := task(testbed.WithoutSources(bed.Job("")), bed.Gate(gates[2]))
	waiting := make(chan struct{})
	said := false
	thirdWait := start(t, bed.Config, third, runner.Options{OnLine: func(line string) {
		if !said && strings.Contains(line, "Waiting for a node: all 2 nodes are busy (maximum 2); place 1 of 1 in the queue") {
			said = true
			close(waiting)
		}
	}})
	select {
	case <-waiting:
	case <-limited(t, time.Minute).Done():
		t.Error("the third job does not say that it waits")
	}
	pod, err := podOf(limited(t, time.Minute), admin(t), third.ID)
	if err != nil || pod == nil || pod.Spec.NodeName != "" {
		t.Errorf("the third job's Pod is not waiting: %v, %v", pod, err)
	}
	bed.Open(gates[0])
	wantPassed(t, waits[0]())
	if node := nodeOf(t, gates[2], third.ID); !nodes[node] {
		t.Errorf("the third job runs on node %s, which is none of %v", node, nodes)
	}
	bed.Open(gates[1])
	bed.Open(gates[2])
	wantPassed(t, waits[1]())
	out := thirdWait()
	wantPassed(t, out)
	recorded(t, "Ceiling", out)
}

// An image that does not exist fails the job once, with the image's name: each
// attempt might boot a node.
func TestMissingImageIsABuildFailureOnce(t *testing.T) {
	j := testbed.WithoutSources(bed.Job("true"))
	j.Image.Name = bed.Registry + "/localtenant/nosuchimage:9"
	out := runJob(t, j, runner.Options{})
	if out.Status != runner.Failed || out.FailureReason != "script_failure" || out.Attempts != 1 {
		t.Errorf("ended with %s, %s after %d attempts; want one build failure", out.Status, out.FailureReason, out.Attempts)
	}
	wantLog(t, out, "ERROR: container build with image "+j.Image.Name, "not found", "Check the image's name and tag")
	recorded(t, "Image missing", out, aside())
	wantNoPods(t, j.ID)
}

// An image without what the driver needs is the image's fault.
func TestUnusableHelperIsToldLoudly(t *testing.T) {
	config, err := bed.WriteConfig(testbed.Namespace, "")
	if err != nil {
		t.Fatal(err)
	}
	replaceInFile(t, config, bed.Image("helper"), bed.Image("debian"))
	out := runJobWith(t, config, testbed.WithoutSources(bed.Job("true")), runner.Options{})
	if out.Status != runner.Failed || out.Attempts != 1 {
		t.Errorf("ended with %s after %d attempts; want one failure", out.Status, out.Attempts)
	}
	wantLog(t, out, "neither gitlab-runner nor gitlab-runner-helper", "artifacts and caches would be lost")
}
