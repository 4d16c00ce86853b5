package main_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/socialweb-computer/tenant-executor/kube/faultserver"
)

// What the cluster warns of stands in the job log where the Pod fails, each once
// and without what the log says anyway, least of all in the failure that follows.
// That names what is lacking also where warnings are not wanted.
func TestWarningsOfThePod(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, print string
		want        int
	}{{"by default", "", 1}, {"print_pod_warning_events", "false", 0}} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t)
			h.settings["wait.start"] = "2s"
			if test.print != "" {
				h.settings["kubernetes.print_pod_warning_events"] = test.print
			}
			h.server.OnCreate(faultserver.Scheduled(node))
			stage := h.start("prepare")
			h.server.Wait(t, "the Pod is made", func() bool { return len(h.server.Pods()) == 1 })
			made := h.server.Pods()[0]
			for name, e := range map[string]corev1.Event{
				"mount":  {Type: "Warning", Reason: "FailedMount", Message: "MountVolume.SetUp failed for volume \"x\":\n secret \"y\" not found"},
				"again":  {Type: "Warning", Reason: "FailedMount", Message: "MountVolume.SetUp failed for volume \"x\": secret \"y\" not found"},
				"net":    {Type: "Warning", Reason: "NetworkNotReady", Message: "network is not ready:\n no CNI"},
				"nets":   {Type: "Warning", Reason: "NetworkNotReady", Message: "network is not ready: no CNI"},
				"queue":  {Type: "Warning", Reason: "FailedScheduling", Message: "0/0 nodes are available"},
				"normal": {Type: "Normal", Reason: "Scheduled", Message: "Successfully assigned"},
				"pull":   {Type: "Warning", Reason: "Failed", Message: "Error: ErrImagePull"},
				"image":  {Type: "Warning", Reason: "Failed", Message: "Failed to pull image \"debian:12\": not found"},
				"node":   {Type: "Warning", Reason: "NodeNotReady", Message: "Node is not ready"},
			} {
				e.ObjectMeta = metav1.ObjectMeta{Name: made.Name + "." + name, Namespace: namespace}
				e.InvolvedObject = corev1.ObjectReference{Kind: "Pod", Namespace: namespace, Name: made.Name, UID: made.UID}
				h.server.AddEvent(e)
			}
			got := stage.wait()
			line := `WARNING: The cluster says of the job's Pod: NetworkNotReady: network is not ready: no CNI`
			reason := `ERROR: the job's Pod on node n1: the Pod was still starting after 2 s: FailedMount: MountVolume.SetUp failed for volume "x": secret "y" not found`
			if got.code != buildCode || !strings.Contains(got.stdout, reason) || strings.Count(got.stdout, line) != test.want || strings.Count(got.stdout, "The cluster says") != test.want {
				t.Errorf("prepare ended with %d, and %d times with the warning:\n%s", got.code, strings.Count(got.stdout, line), got.stdout)
			}
		})
	}
}
