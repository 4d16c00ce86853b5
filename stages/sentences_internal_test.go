package stages

import (
	"regexp"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/socialweb-computer/tenant-executor/executor/settings"
	"github.com/socialweb-computer/tenant-executor/kube/pods"
	"github.com/socialweb-computer/tenant-executor/kube/stream/agent"
)

// A message is whole whatever is missing of what it is made of: the cluster leaves
// out reasons, messages, images and times.
func TestMessagesAreWhole(t *testing.T) {
	t.Parallel()
	d := &Driver{}
	full := &Driver{settings: settings.Settings{Kubernetes: limits("2Gi", "4Gi")}, asked: overwrites{operators: limits("1Gi", "4Gi")}}
	var said []string
	say := func(err error) {
		if err != nil {
			said = append(said, err.Error())
		}
	}
	for kind := pods.Passing; kind <= pods.Exited; kind++ {
		for _, container := range []string{"build", "helper", "db"} {
			for _, image := range []string{"", "debian:12"} {
				for _, words := range [][2]string{{"", ""}, {"Error", ""}, {"", "exec: no such file"}, {"Error", "exec: no such file"}} {
					p := pods.Problem{Container: container, Image: image, Kind: kind, Reason: words[0], Message: words[1], Ended: true, Code: 3}
					say(containerFailure(p))
					if f := endedEarly(p); f != nil {
						say(f)
					}
					said = append(said, "service db has ended: "+d.endOf(p))
				}
			}
		}
	}
	for _, driver := range []*Driver{d, full} {
		for _, detail := range []string{"", "no space left on device"} {
			for _, trouble := range []agent.Trouble{agent.TroubleNone, agent.TroubleNoShell, agent.TroubleStart, agent.TroubleDisk, agent.TroubleNoRoom, agent.TroubleLost} {
				for _, oom := range []int{0, 1} {
					for _, signal := range []int{0, int(syscall.SIGKILL), int(syscall.SIGTERM)} {
						say(driver.verdict("build", agent.Status{Trouble: trouble, Detail: detail, Signal: signal, OOM: oom}))
					}
				}
			}
		}
	}
	for _, reason := range []string{"", "Evicted"} {
		for _, message := range []string{"", "The node was low on resource: memory."} {
			for _, deleted := range []bool{false, true} {
				found := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ci", Name: "job-1"}, Status: corev1.PodStatus{Phase: corev1.PodFailed, Reason: reason, Message: message}}
				if deleted {
					found.DeletionTimestamp = &metav1.Time{}
				}
				say(lossOf(found, "build"))
			}
		}
	}
	for _, phase := range []pods.Phase{pods.Unscheduled, pods.Starting} {
		for _, detail := range []string{"", "Unschedulable"} {
			said = append(said, inVain(&pods.PhaseTimeoutError{State: pods.State{Phase: phase, Detail: detail}, After: time.Minute}))
		}
	}
	broken := regexp.MustCompile(`  |\( | \)|\(\)|: *$|: :|:: | ,|, *$|^\W|%!|\bimage $|\bimage[,:]`)
	for _, text := range said {
		if at := broken.FindString(text); at != "" {
			t.Errorf("%q is not whole: %q", text, at)
		}
	}
	if len(said) < 200 {
		t.Errorf("only %d messages were made", len(said))
	}
}

func limits(limit, most string) settings.Kubernetes {
	var k settings.Kubernetes
	k.MemoryLimit, k.MemoryLimitOverwriteMaxAllowed = limit, most
	return k
}
