package main_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/socialweb-computer/tenant-executor/kube/faultserver"
)

// A registry that refuses the image of the sandbox is given as long as for the
// job's images, not all the time that a start may take.
func TestSandboxImage(t *testing.T) {
	t.Parallel()
	const refused = `Failed to create pod sandbox: rpc error: code = Unknown desc = failed to get sandbox image "registry.k8s.io/pause:3.10": failed to pull image "registry.k8s.io/pause:3.10": failed to pull and unpack image "registry.k8s.io/pause:3.10": failed to resolve reference "registry.k8s.io/pause:3.10": unexpected status from HEAD request to https://registry.k8s.io/v2/pause/manifests/3.10: 429 Too Many Requests`
	for _, c := range []struct {
		name, message string
		lasts         time.Duration
		code          int
		says          string
	}{
		{"for too long", refused, 5 * time.Second, systemCode, "ERROR: node n1 cannot pull the sandbox image of the job's Pod, for N s: "},
		{"for a shorter time", refused, 3 * time.Second, systemCode, "ERROR: the job's Pod on node n1: the Pod was still starting after 8 s: FailedCreatePodSandBox"},
		{"another reason", "Failed to create pod sandbox: plugin type=\"bridge\" failed", 5 * time.Second, systemCode, "ERROR: the job's Pod on node n1: the Pod was still starting after 8 s: FailedCreatePodSandBox"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t)
			h.settings["wait.registry"], h.settings["wait.start"] = "4s", "8s"
			h.server.OnCreate(faultserver.Scheduled(node), faultserver.Change(func(p *corev1.Pod) {
				at := time.Now().Truncate(time.Second)
				go h.server.AddEvent(corev1.Event{
					ObjectMeta:     metav1.ObjectMeta{Name: p.Name + ".1", Namespace: p.Namespace},
					InvolvedObject: corev1.ObjectReference{Kind: "Pod", Name: p.Name, Namespace: p.Namespace, UID: p.UID},
					Type:           corev1.EventTypeWarning, Reason: "FailedCreatePodSandBox", Message: c.message, Count: 4,
					FirstTimestamp: metav1.NewTime(at.Add(-c.lasts)), LastTimestamp: metav1.NewTime(at),
				})
			}))
			got := h.stage("prepare")
			if text := h.plain(got.stdout); got.code != c.code || !strings.Contains(text, strings.ReplaceAll(c.says, "after 8 s", "after N s")) && !strings.Contains(text, c.says) {
				t.Errorf("ended with %d, want %d and %q:\n%s", got.code, c.code, c.says, text)
			}
		})
	}
}
