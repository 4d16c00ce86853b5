package main_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/socialweb-computer/tenant-executor/kube/faultserver"
)

// added has the cluster add a container to each Pod, as a webhook does.
func added(status corev1.ContainerStatus, init bool, phase corev1.PodPhase) faultserver.Step {
	return faultserver.Change(func(p *corev1.Pod) {
		container := corev1.Container{Name: status.Name, Image: status.Image}
		p.Status.Phase = phase
		if init {
			p.Spec.InitContainers = append(p.Spec.InitContainers, container)
			p.Status.InitContainerStatuses = append(p.Status.InitContainerStatuses, status)
			return
		}
		p.Spec.Containers = append(p.Spec.Containers, container)
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, status)
	})
}

// A container that others have put into the Pod is not the job's: what keeps it
// from running is a system failure that names it and shows its words, with one
// Pod made for it.
func TestContainersOfOthersFail(t *testing.T) {
	t.Parallel()
	const whose = ", which is not the job's (a webhook or a policy of the cluster has added it)"
	status := func(state corev1.ContainerState) corev1.ContainerStatus {
		return corev1.ContainerStatus{Name: "spy", Image: "spy:9", State: state}
	}
	missing := status(corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: "spy:9: not found"}})
	failed := status(corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Error", ExitCode: 1}})
	loops := status(corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "back-off 10s restarting failed container"}})
	loops.LastTerminationState = failed.State
	for _, test := range []struct {
		name string
		step faultserver.Step
		says []string
	}{
		{"sidecar without an image", added(missing, false, corev1.PodPending), []string{
			"ERROR: the Pod does not run because of container spy with image spy:9" + whose + ": ErrImagePull: spy:9: not found"}},
		{"init container without an image", added(missing, true, corev1.PodPending), []string{
			"ERROR: the Pod does not run because of container spy with image spy:9" + whose + ": ErrImagePull: spy:9: not found"}},
		{"init container that ends", added(failed, true, corev1.PodFailed), []string{
			"What container spy said last:", "no licence", "ERROR: the Pod does not run because of container spy with image spy:9" + whose + ": Error: exit code 1"}},
		{"init container that is started again and again", added(loops, true, corev1.PodPending), []string{
			"What container spy said last:", "no licence", "ERROR: the Pod does not run because of container spy with image spy:9" + whose + ", for N s: CrashLoopBackOff: back-off 10s"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t)
			h.settings["wait.start"] = "2s"
			h.server.OnCreate(faultserver.Scheduled(node), test.step)
			h.server.Log("spy", time.Now(), "no licence")
			got := h.stage("prepare")
			text := h.plain(got.stdout)
			for _, want := range append(test.says, "A webhook or a policy of the cluster has added the container. The operator has to find whose it is") {
				if !strings.Contains(text, want) {
					t.Errorf("the log lacks %q", want)
				}
			}
			if got.code != systemCode || t.Failed() {
				t.Errorf("ended with %d, want %d:\n%s", got.code, systemCode, text)
			}
			if made := h.server.Requests().Count("create", "pods"); made != 1 {
				t.Errorf("%d Pods were made for a container that no other Pod would be without", made)
			}
			h.expectNoScript(got.code)
		})
	}
}

// What others have added may end or start again while the job runs.
func TestContainersOfOthersMayEnd(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.play()
	ends := corev1.ContainerStatus{Name: "spy", Image: "spy:9",
		State:                corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}},
		LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Error", ExitCode: 1}}}
	h.server.OnCreate(faultserver.Scheduled(node), faultserver.Running(), added(ends, false, corev1.PodRunning))
	if got := h.stage("prepare"); got.code != 0 {
		t.Fatalf("prepare ended with %d:\n%s", got.code, got.stdout)
	}
	h.expect(h.run("build_script", "echo done; sleep 2"), 0, "done\n", "")
}
