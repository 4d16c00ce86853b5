package pods

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// An image that cannot be pulled for now has a budget of its own, from its
// first failure on, for as long as it lasts.
func TestAwaitPulls(t *testing.T) {
	t.Parallel()
	const down, limited = "dial tcp: connection refused", "429 Too Many Requests"
	creating := waitingFor("ContainerCreating", "")
	for _, test := range []struct {
		name    string
		pull    time.Duration
		changes []at
		err     string
		kind    Kind
		after   time.Duration
	}{
		{"mends itself", time.Minute, []at{{0, creating}, {time.Second, waitingFor("ErrImagePull", down)}, {59 * time.Second, runs()}}, "", 0, 0},
		{"lasts", time.Minute, []at{{0, creating}, {time.Second, waitingFor("ErrImagePull", down)}},
			"container build with image debian:12: ErrImagePull: " + down, RegistryDown, time.Minute},
		{"goes on under another reason", time.Minute, []at{{0, waitingFor("ErrImagePull", down)}, {30 * time.Second, waitingFor("ImagePullBackOff", limited)}},
			"container build with image debian:12: ImagePullBackOff: " + limited, RegistryLimit, time.Minute},
		{"comes back", time.Minute, []at{{0, waitingFor("ErrImagePull", down)}, {30 * time.Second, creating}, {10 * time.Second, waitingFor("ErrImagePull", down)}, {59 * time.Second, runs()}}, "", 0, 0},
		{"there is something better to do", 0, []at{{5 * time.Second, waitingFor("ErrImagePull", down)}},
			"container build with image debian:12: ErrImagePull: " + down, RegistryDown, 0},
		{"says no", time.Minute, []at{{0, waitingFor("ErrImagePull", "403 Forbidden")}},
			"container build with image debian:12: ErrImagePull: 403 Forbidden", PullDenied, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				budgets := Budgets{Node: time.Hour, Start: time.Hour, Pull: func(container string) time.Duration {
					if container != "build" {
						t.Errorf("asked for the budget of %q", container)
					}
					return test.pull
				}}
				_, _, err := await(t.Context(), budgets, &listener{}, test.changes)
				if test.err == "" {
					if err != nil {
						t.Errorf("got %v", err)
					}
					return
				}
				failed, ok := err.(*ContainerError)
				if !ok || fmt.Sprint(err) != test.err || failed.Problem.Kind != test.kind || failed.After != test.after || failed.Node != "n1" {
					t.Errorf("got %+v, want %s, kind %d after %s on n1", err, test.err, test.kind, test.after)
				}
			})
		})
	}
}

func TestMayPullOtherwise(t *testing.T) {
	t.Parallel()
	for reason, want := range map[string]bool{
		"ErrImagePull": true, "ImagePullBackOff": true, "ErrImageNeverPull": true,
		"InvalidImageName": false, "RunContainerError": false, "CreateContainerError": false,
	} {
		state := StateOf(waitingFor(reason, "exec format error").Pod)
		if got := state.Problems[0].MayPullOtherwise(); got != want {
			t.Errorf("%s: %v, want %v", reason, got, want)
		}
	}
}

// A container behind an entrypoint runs long before it can be used.
func TestNotStartedIsNotRunning(t *testing.T) {
	t.Parallel()
	yes, no := true, false
	for started, want := range map[*bool]Phase{nil: Running, &yes: Running, &no: Starting} {
		pod := runs().Pod
		pod.Status.ContainerStatuses[0].Started = started
		if got := StateOf(pod).Phase; got != want {
			t.Errorf("started %v: phase %s, want %s", started, got, want)
		}
	}
}
