package pods

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// bubbleClock is the time of a synctest bubble, which stands still until
// everybody waits for it.
type bubbleClock struct{}

func (bubbleClock) Now() time.Time                         { return time.Now() }
func (bubbleClock) After(d time.Duration) <-chan time.Time { return time.After(d) }

// listener writes down what an Observer hears.
type listener struct{ heard []string }

func (l *listener) Waiting(_ context.Context, state State, inPhase time.Duration) {
	l.heard = append(l.heard, fmt.Sprintf("%s after %s: %s", state.Phase, inPhase, state.Detail))
}

func (l *listener) Started(container string) { l.heard = append(l.heard, container+" started") }

func (l *listener) Blind(err error) { l.heard = append(l.heard, "blind: "+err.Error()) }

// at is a change that comes some time after the one before.
type at struct {
	after  time.Duration
	change Change
}

func pending(message string) Change {
	return Change{Pod: &corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: message,
	}}}}}
}

func with(state corev1.ContainerState) *corev1.Pod {
	return &corev1.Pod{
		Spec: corev1.PodSpec{NodeName: "n1", Containers: []corev1.Container{{Name: "build"}}},
		Status: corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{{
			Name: "build", Image: "debian:12", State: state,
		}}},
	}
}

func waitingFor(reason, message string) Change {
	return Change{Pod: with(corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}})}
}

func ended(reason string, code int32) Change {
	return Change{Pod: with(corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: reason, ExitCode: code}})}
}

func runs() Change {
	pod := with(corev1.ContainerState{Running: &corev1.ContainerStateRunning{}})
	pod.Status.Phase = corev1.PodRunning
	return Change{Pod: pod}
}

// runsUnready is a container whose startup probe has not passed.
func runsUnready() Change {
	c := runs()
	c.Pod.Status.ContainerStatuses[0].Started = new(bool)
	return c
}

func evicted() Change {
	c := runs()
	c.Pod.Status = corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted", Message: "low on disk"}
	return c
}

func deleted() Change {
	c := runs()
	c.Pod.DeletionTimestamp = &metav1.Time{Time: time.Unix(0, 0)}
	return c
}

func TestAwait(t *testing.T) {
	t.Parallel()
	// Off the heartbeat.
	const half = heartbeat / 2
	budgets := Budgets{Node: 10*time.Minute + half, Start: 5*time.Minute + half}
	creating := waitingFor("ContainerCreating", "")
	tests := []struct {
		name    string
		changes []at
		timing  Timing
		err     string
		kind    any
		heard   []string
	}{
		{"quick", []at{{0, pending("")}, {time.Second, creating}, {2 * time.Second, runs()}},
			Timing{Node: time.Second, Start: 2 * time.Second}, "", nil,
			[]string{"waiting for a node after 0s: Unschedulable", "starting after 0s: ", "build started"}},
		{"an entrypoint that runs for long", []at{{0, runsUnready()}, {time.Second, runsUnready()}, {time.Second, runs()}},
			Timing{Start: 2 * time.Second}, "", nil, []string{"build started", "starting after 0s: "}},
		{"straight to running", []at{{3 * time.Second, runs()}}, Timing{Node: 3 * time.Second}, "", nil, nil},
		{"each phase has its own budget", []at{{0, pending("m")}, {9*time.Minute + half, creating}, {4*time.Minute + half, runs()}},
			Timing{Node: 9*time.Minute + half, Start: 4*time.Minute + half}, "", nil, append(append(
				[]string{"waiting for a node after 0s: Unschedulable: m"}, beats("waiting for a node", "Unschedulable: m", 9*time.Minute+half)...),
				append(append([]string{"starting after 0s: "}, beats("starting", "", 4*time.Minute+half)...), "build started")...)},
		{"no node in time", []at{{0, pending("0/0 nodes are available")}},
			Timing{}, "the Pod was still waiting for a node after 10m5s: Unschedulable: 0/0 nodes are available", &PhaseTimeoutError{},
			append([]string{"waiting for a node after 0s: Unschedulable: 0/0 nodes are available"},
				beats("waiting for a node", "Unschedulable: 0/0 nodes are available", budgets.Node)...)},
		{"no start in time", []at{{half, waitingFor("ErrImagePull", "i/o timeout")}},
			Timing{Node: half}, "the Pod was still starting after 5m5s: ErrImagePull (container build): i/o timeout", &PhaseTimeoutError{},
			append([]string{"starting after 0s: ErrImagePull (container build): i/o timeout"},
				beats("starting", "ErrImagePull (container build): i/o timeout", budgets.Start)...)},
		{"a change of reason keeps the budget", []at{{0, pending("a")}, {6 * time.Minute, pending("b")}},
			Timing{}, "the Pod was still waiting for a node after 10m5s: Unschedulable: b", &PhaseTimeoutError{}, nil},
		{"the same twice is said once", []at{{0, pending("a")}, {time.Second, pending("a")}, {time.Second, runs()}},
			Timing{Node: 2 * time.Second}, "", nil, []string{"waiting for a node after 0s: Unschedulable: a", "build started"}},
		{"blind for a while", []at{{0, pending("a")}, {time.Second, Change{Err: errors.New("refused")}}, {time.Second, runs()}},
			Timing{Node: 2 * time.Second}, "", nil, []string{"waiting for a node after 0s: Unschedulable: a", "blind: refused", "build started"}},
		{"an image that is not there", []at{{0, waitingFor("ImagePullBackOff", "manifest unknown")}},
			Timing{}, "container build with image debian:12: ImagePullBackOff: manifest unknown", &ContainerError{}, nil},
		{"a container that ends", []at{{0, ended("Completed", 0)}},
			Timing{}, "container build with image debian:12: Completed: exit code 0", &ContainerError{}, []string{"build started"}},
		{"evicted", []at{{0, evicted()}}, Timing{}, "the Pod ended before it ran: Evicted: low on disk", &FailedError{}, nil},
		{"on its way out", []at{{0, deleted()}}, Timing{}, "Pod ci/job was deleted", &GoneError{}, nil},
		{"gone", []at{{0, pending("a")}, {time.Second, Change{Gone: true}}}, Timing{}, "Pod ci/job was deleted", &GoneError{}, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := &listener{}
				_, timing, err := await(t.Context(), budgets, l, test.changes)
				if text := fmt.Sprint(err); err != nil && text != test.err || err == nil && test.err != "" {
					t.Errorf("got  %v\nwant %s", err, test.err)
				}
				if got, want := fmt.Sprintf("%T", err), fmt.Sprintf("%T", test.kind); got != want {
					t.Errorf("the error is a %s, want %s", got, want)
				}
				if timing != test.timing {
					t.Errorf("timing %+v, want %+v", timing, test.timing)
				}
				if test.heard != nil {
					if diff := cmp.Diff(test.heard, l.heard); diff != "" {
						t.Error(diff)
					}
				}
			})
		})
	}
}

// await lets a wait see some changes and then nothing more.
func await(ctx context.Context, budgets Budgets, o Observer, coming []at) (*corev1.Pod, Timing, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	changes := make(chan Change)
	go func() {
		for _, next := range coming {
			select {
			case <-ctx.Done():
				return
			case <-time.After(next.after):
			}
			select {
			case <-ctx.Done():
				return
			case changes <- next.change:
			}
		}
	}()
	return newWaiting(Ref{Namespace: "ci", Name: "job"}, budgets, bubbleClock{}, o, Roles{}).run(ctx, changes)
}

// beats are the heartbeats until a time.
func beats(phase, detail string, end time.Duration) []string {
	var all []string
	for d := heartbeat; d < end; d += heartbeat {
		all = append(all, fmt.Sprintf("%s after %s: %s", phase, d, detail))
	}
	return all
}

func TestAwaitEndsWithTheContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, _, err := await(ctx, Budgets{Node: time.Hour, Start: time.Hour}, &listener{}, []at{{0, pending("a")}})
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
	})
}
