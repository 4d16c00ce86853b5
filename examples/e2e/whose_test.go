//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/socialweb-computer/tenant-executor/examples/localrunner/job"
	"github.com/socialweb-computer/tenant-executor/examples/localrunner/runner"
	"github.com/socialweb-computer/tenant-executor/examples/testbed"
)

// handPod is the Pod of a job that was prepared by hand.
func handPod(t *testing.T, j *job.Job) *corev1.Pod {
	t.Helper()
	found, err := podOf(limited(t, time.Minute), admin(t), j.ID)
	if err != nil || found == nil {
		t.Fatalf("the Pod of job %d: %v, %v", j.ID, found, err)
	}
	return found
}

// wantGone waits until a very Pod is not there any more.
func wantGone(t *testing.T, p *corev1.Pod) {
	t.Helper()
	if err := testbed.Until(context.Background(), "Pod "+p.Name+" to go", time.Minute, func(ctx context.Context) (bool, error) {
		found, err := admin(t).Pods(p.Namespace).Get(ctx, p.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		return err == nil && found.UID != p.UID, err
	}); err != nil {
		t.Fatal(err)
	}
}

// A Pod that somebody has made anew by its own definition is not the job's: the
// stage says so, and does not blame the image.
func TestPodMadeAnewUnderItsName(t *testing.T) {
	j := testbed.WithoutSources(bed.Job("true"))
	h := byHand(t, j)
	if out, code := h.do("prepare"); code != 0 {
		t.Fatalf("prepare ended with %d:\n%s", code, out)
	}
	defer h.do("cleanup")
	old := handPod(t, j)
	pods := admin(t).Pods(old.Namespace)
	if err := pods.Delete(limited(t, time.Minute), old.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	wantGone(t, old)
	again := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: old.Name, Labels: old.Labels, Annotations: old.Annotations}, Spec: old.Spec}
	again.Spec.NodeName = ""
	if _, err := pods.Create(limited(t, time.Minute), again, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := testbed.Until(context.Background(), "the new Pod to run", time.Minute, func(context.Context) (bool, error) {
		return handPod(t, j).Status.Phase == corev1.PodRunning, nil
	}); err != nil {
		t.Fatal(err)
	}
	out, code := h.do("run", h.script("echo in another Pod"), "get_sources")
	if code != 2 || !strings.Contains(out, "was deleted, and another Pod has its name now") || strings.Contains(out, "shell") {
		t.Errorf("the stage ended with %d:\n%s", code, out)
	}
}

// prepare that was killed, and prepare again in the same attempt: the Pod of the
// first is on its way out, and the stages run in that of the second.
func TestPrepareAgainAfterAKill(t *testing.T) {
	j := testbed.WithoutSources(bed.Job("true"))
	h := byHand(t, j)
	h.env = []string{"CUSTOM_ENV_CI_RUNNER_SHORT_TOKEN=" + testbed.RunnerLabel(testbed.SecondRunner)}
	config, code := h.do("config")
	_, rest, found := strings.Cut(config, `"TENANT_EXECUTOR_POD":"`)
	name, _, _ := strings.Cut(rest, `"`)
	if code != 0 || !found {
		t.Fatalf("config ended with %d:\n%s", code, config)
	}
	h.env = append(h.env, "TENANT_EXECUTOR_POD="+name)
	cmd := h.command("prepare")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := testbed.Until(context.Background(), "the Pod to run", time.Minute, func(ctx context.Context) (bool, error) {
		p, err := podOf(ctx, admin(t), j.ID)
		return err == nil && p != nil && p.Status.Phase == corev1.PodRunning, err
	}); err != nil {
		t.Fatal(err)
	}
	kill(t, cmd.Process.Pid)
	_ = cmd.Wait() // it was killed
	// A Pod that takes its time to go.
	first := handPod(t, j)
	hold(t, first)
	for range 2 {
		if out, code := h.do("prepare"); code != 0 {
			t.Fatalf("prepare ended with %d:\n%s", code, out)
		}
		if out, code := h.do("run", h.script("echo here"), "get_sources"); code != 0 || out != "here\n" {
			t.Errorf("the stage ended with %d:\n%s", code, out)
		}
	}
	if out, code := h.do("cleanup"); code != 0 {
		t.Errorf("cleanup ended with %d:\n%s", code, out)
	}
	letGo(t, first)
	wantNoPods(t, j.ID)
}

const foreign = "example.com/keep"

// hold keeps a Pod by a finalizer, letGo ends that.
func hold(t *testing.T, p *corev1.Pod)  { t.Helper(); finalize(t, p, []string{foreign}) }
func letGo(t *testing.T, p *corev1.Pod) { t.Helper(); finalize(t, p, nil) }

func finalize(t *testing.T, p *corev1.Pod, finalizers []string) {
	t.Helper()
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"finalizers": finalizers}})
	if err == nil {
		_, err = admin(t).Pods(p.Namespace).Patch(limited(t, time.Minute), p.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	}
	if err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
}

// Who keeps a Pod that was deleted and has ended is named, and it is not tried to
// delete it again.
func TestForeignFinalizerIsNamed(t *testing.T) {
	j := killedRunner(t, testbed.SecondRunner, "finalizer")
	p := handPod(t, j)
	hold(t, p)
	defer letGo(t, p)
	if out := reapAs(t, testbed.SecondRunner); !strings.Contains(out, `"removed": true`) {
		t.Errorf("reap found %s", out)
	}
	if err := testbed.Until(context.Background(), "the Pod to be overdue", time.Minute, func(context.Context) (bool, error) {
		return strings.Contains(reapAs(t, testbed.SecondRunner), `"finalizer"`), nil
	}); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(limited(t, time.Minute), bed.Driver, "ps", "--config", bed.Config).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "its finalizers: "+foreign) {
		t.Errorf("ps: %v\n%s", err, out)
	}
}

// notReady cuts a node off and waits until it is not ready; mend plugs it in.
func notReady(t *testing.T, node string) (mend func()) {
	t.Helper()
	localtenant(t, "node", "cut", node)
	if err := testbed.Until(context.Background(), "node "+node+" to be not ready", time.Minute, func(ctx context.Context) (bool, error) {
		n, err := admin(t).Nodes().Get(ctx, node, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		for _, c := range n.Status.Conditions {
			if c.Type == corev1.NodeReady {
				return c.Status != corev1.ConditionTrue, nil
			}
		}
		return false, nil
	}); err != nil {
		t.Fatal(err)
	}
	var once sync.Once
	mend = func() { once.Do(func() { localtenant(t, "node", "mend", node) }) }
	t.Cleanup(mend)
	return mend
}

// By every way on which a Pod is deleted: on a node that is not ready for a moment
// its object stays until its processes have ended. It goes by force once the node
// has been so for run.node_lost.
func TestNodeThatIsNotReadyForAMoment(t *testing.T) {
	config := func(limit string) string {
		c, err := bed.WriteConfig(testbed.Namespace, "node_lost = \""+limit+"\"\n")
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	for name, test := range map[string]struct {
		// left leaves a Pod, del deletes it.
		left func(t *testing.T, gate string) *job.Job
		del  func(t *testing.T, config string, j *job.Job)
	}{
		"cleanup": {
			left: func(t *testing.T, _ string) *job.Job {
				j := testbed.WithoutSources(bed.Job("true"))
				if out, code := byHand(t, j).do("prepare"); code != 0 {
					t.Fatalf("prepare ended with %d:\n%s", code, out)
				}
				return j
			},
			del: func(t *testing.T, config string, j *job.Job) {
				h := byHand(t, j)
				h.config = config
				if out, code := h.do("cleanup"); code != 0 {
					t.Errorf("cleanup ended with %d:\n%s", code, out)
				}
			},
		},
		"reap": {
			left: func(t *testing.T, gate string) *job.Job { return killedRunner(t, testbed.SecondRunner, gate) },
			del: func(t *testing.T, config string, _ *job.Job) {
				out, err := exec.CommandContext(limited(t, time.Minute), bed.Driver, "reap", "--config", config, "--runner", testbed.RunnerLabel(testbed.SecondRunner)).CombinedOutput()
				if err != nil {
					t.Errorf("reap: %v\n%s", err, out)
				}
			},
		},
		"sweep": {
			left: func(t *testing.T, gate string) *job.Job { return killedRunner(t, testbed.SecondRunner, gate) },
			del: func(t *testing.T, config string, _ *job.Job) {
				wantPassed(t, runJobWith(t, config, testbed.WithoutSources(bed.Job("true")), runner.Options{}))
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, lost := range []bool{false, true} {
				limit := map[bool]string{false: "10m", true: "1s"}[lost]
				j := test.left(t, safe(t.Name())+limit)
				p := handPod(t, j)
				mend := notReady(t, p.Spec.NodeName)
				if lost {
					<-limited(t, 2*time.Second).Done()
				}
				test.del(t, config(limit), j)
				found, err := podOf(limited(t, time.Minute), admin(t), j.ID)
				switch {
				case err != nil:
					t.Fatal(err)
				case lost && found != nil:
					t.Errorf("on a node that is lost the Pod stays: %+v", found.DeletionTimestamp)
				case !lost && (found == nil || found.DeletionTimestamp == nil):
					t.Errorf("on a node that is not ready for a moment the Pod is %v", found)
				}
				mend()
				wantNoPods(t, j.ID)
			}
		})
	}
}

// crowded watches until end is called whether two jobs' Pods are ever on one node,
// of which neither has ended.
func crowded(t *testing.T) (end func()) {
	t.Helper()
	client := admin(t)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			list, err := client.Pods("").List(ctx, metav1.ListOptions{LabelSelector: driverDomain + "component=job"})
			on := map[string]string{}
			for i := 0; err == nil && i < len(list.Items); i++ {
				p := &list.Items[i]
				if p.Spec.NodeName == "" || p.Status.Phase == corev1.PodFailed || p.Status.Phase == corev1.PodSucceeded {
					continue
				}
				if other := on[p.Spec.NodeName]; other != "" {
					t.Errorf("node %s has the Pods %s and %s at once", p.Spec.NodeName, other, p.Name)
				}
				on[p.Spec.NodeName] = p.Name
			}
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
		}
	}()
	return func() { cancel(); <-done }
}

// A kubelet that is restarted at any step costs no job anything, nor does it let
// two jobs share the node.
func TestKubeletRestartedAtEveryStep(t *testing.T) {
	defer crowded(t)()
	localtenant(t, "gateway", "set", "--hold", "30s")
	defer localtenant(t, "gateway", "set", "--hold", "5s")
	for _, stage := range []string{"prepare", "prepare_script", "build_script", "after_script", "cleanup"} {
		j := testbed.AfterScript(testbed.WithoutSources(bed.Job("echo begun; sleep 3; echo done")), "echo after")
		out := runJob(t, j, runner.Options{OnCall: func(c runner.Call) {
			if c.Stage != stage {
				return
			}
			nodes, err := admin(t).Nodes().List(limited(t, time.Minute), metav1.ListOptions{})
			if err != nil {
				t.Error(err)
			}
			for _, n := range nodes.Items {
				if _, err := bed.Do(limited(t, time.Minute), "node", "restart-kubelet", n.Name); err != nil {
					t.Error(err)
				}
			}
		}})
		wantPassed(t, out)
		wantLog(t, out, "begun\n", "done\n", "after\n")
		if out.Attempts != 1 {
			t.Errorf("with the kubelet restarted in %s the job took %d attempts", stage, out.Attempts)
		}
		// The next job comes at once.
		wantPassed(t, runJob(t, testbed.WithoutSources(bed.Job("true")), runner.Options{}))
		wantNoPods(t, j.ID)
	}
}
