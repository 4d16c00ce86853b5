package pods_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/google/go-cmp/cmp"

	"github.com/socialweb-computer/tenant-executor/kube/cluster"
	"github.com/socialweb-computer/tenant-executor/kube/faultserver"
	"github.com/socialweb-computer/tenant-executor/kube/pods"
)

const namespace = "ci"

// handClock is a clock whose long timers end when the test says so. Short ones
// end at once: they only keep loops from turning fast.
type handClock struct {
	asked chan chan time.Time
}

func newHandClock() *handClock { return &handClock{asked: make(chan chan time.Time, 100)} }

func (c *handClock) Now() time.Time { return time.Unix(0, 0) }

func (c *handClock) After(d time.Duration) <-chan time.Time {
	timer := make(chan time.Time, 1)
	if d <= time.Second {
		timer <- c.Now()
		return timer
	}
	select {
	case c.asked <- timer:
	default:
	}
	return timer
}

// ring ends the next long timer.
func (c *handClock) ring(ctx context.Context) {
	select {
	case timer := <-c.asked:
		timer <- c.Now()
	case <-ctx.Done():
	}
}

func newClient(t *testing.T, server *faultserver.Server, budget time.Duration) *pods.Client {
	t.Helper()
	files := server.Credentials(t)
	c, err := cluster.Connect(t.Context(), cluster.Fixed(cluster.Config{URL: server.URL(), CAFile: files.CAFile, CertFile: files.CertFile, KeyFile: files.KeyFile, UserAgent: "test"}))
	if err != nil {
		t.Fatal(err)
	}
	return pods.NewClient(c, budget)
}

func somePod(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"job": "1"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "build", Image: "debian:12"}, {Name: "helper", Image: "helper:1"}}},
	}
}

// life is what becomes of a Pod in the tests of Follow.
func life() []faultserver.Step {
	return []faultserver.Step{
		faultserver.Unscheduled("0/0 nodes are available"),
		faultserver.Scheduled("n1"),
		faultserver.Waiting("build", "ErrImagePull", "dial tcp: i/o timeout"),
		faultserver.Running(),
	}
}

// tell puts a change in words.
func tell(change pods.Change) string {
	switch {
	case change.Gone:
		return "gone"
	case change.Err != nil:
		return "error"
	}
	state := pods.StateOf(change.Pod)
	return fmt.Sprintf("%s %s", state.Phase, state.Detail)
}

// collect follows a Pod until it runs or is gone.
func collect(t *testing.T, changes <-chan pods.Change, until string) []string {
	t.Helper()
	var all []string
	for change := range changes {
		text := tell(change)
		all = append(all, text)
		if text == until {
			return all
		}
	}
	t.Fatalf("Follow ended before %q: %q", until, all)
	return nil
}

const (
	atFirst  = "waiting for a node "
	noNode   = "waiting for a node Unschedulable: 0/0 nodes are available"
	starting = "starting "
	pulling  = "starting ErrImagePull (container build): dial tcp: i/o timeout"
	running  = "running "
)

func TestFollowSeesEveryChange(t *testing.T) {
	t.Parallel()
	server := faultserver.Start(t)
	client := newClient(t, server, time.Minute)
	pod := server.AddPod(somePod("a"))
	changes := client.Follow(t.Context(), pod, newHandClock())
	server.Apply(life()...)
	want := []string{atFirst, noNode, starting, pulling, running}
	if diff := cmp.Diff(want, collect(t, changes, running)); diff != "" {
		t.Error(diff)
	}
	server.Apply(faultserver.Removed())
	if diff := cmp.Diff([]string{"gone"}, collect(t, changes, "gone")); diff != "" {
		t.Error(diff)
	}
	if change, open := <-changes; open {
		t.Errorf("the channel is open after the Pod has gone: %v", tell(change))
	}
}

// However watches go wrong, the last state is seen, and the end as well.
func TestFollowWithWatchesThatFail(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		plan  func(n int) faultserver.WatchPlan
		fault func(*faultserver.Server)
	}{
		{"closed after each event", func(int) faultserver.WatchPlan { return faultserver.WatchPlan{CloseAfter: 1} }, nil},
		{"closed after two events", func(int) faultserver.WatchPlan { return faultserver.WatchPlan{CloseAfter: 2} }, nil},
		{"an event dropped, then closed", func(int) faultserver.WatchPlan {
			return faultserver.WatchPlan{CloseAfter: 1, Drop: []int{1}}
		}, nil},
		{"version too old, each time", func(int) faultserver.WatchPlan { return faultserver.WatchPlan{Expired: true} }, nil},
		{"version too old, once", func(n int) faultserver.WatchPlan { return faultserver.WatchPlan{Expired: n == 1} }, nil},
		{"refused", nil, func(s *faultserver.Server) { s.Fail(-1, "watch", "pods", faultserver.Answer(410, "Gone")) }},
		{"connection reset", nil, func(s *faultserver.Server) { s.Fail(3, "watch", "pods", faultserver.Reset()) }},
		{"broken off", nil, func(s *faultserver.Server) { s.Fail(3, "watch", "pods", faultserver.Abort()) }},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			server := faultserver.Start(t)
			client := newClient(t, server, time.Minute)
			pod := server.AddPod(somePod("a"))
			if test.plan != nil {
				server.OnWatch(test.plan)
			}
			if test.fault != nil {
				test.fault(server)
			}
			changes := client.Follow(t.Context(), pod, newHandClock())
			server.Apply(life()...)
			collect(t, changes, running)
			server.Apply(faultserver.Removed())
			collect(t, changes, "gone")
		})
	}
}

// A watch that says nothing is given up after a while, and the Pod read.
func TestFollowWithSilentWatch(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]func(*faultserver.Server){
		"open and silent": func(s *faultserver.Server) {
			s.OnWatch(func(int) faultserver.WatchPlan { return faultserver.WatchPlan{Silent: true} })
		},
		"never answered": func(s *faultserver.Server) { s.Fail(-1, "watch", "pods", faultserver.Silence()) },
		"loses one change": func(s *faultserver.Server) {
			s.OnWatch(func(int) faultserver.WatchPlan { return faultserver.WatchPlan{Drop: []int{4}} })
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := faultserver.Start(t)
			client := newClient(t, server, time.Minute)
			pod := server.AddPod(somePod("a"))
			set(server)
			clock := newHandClock()
			changes := client.Follow(t.Context(), pod, clock)
			if got := tell(<-changes); got != atFirst {
				t.Fatalf("first came %q", got)
			}
			server.Wait(t, "the watch is asked for", func() bool { return server.Requests().Count("watch", "pods") == 1 })
			server.Apply(life()...)
			if name == "loses one change" {
				collect(t, changes, pulling)
			}
			if n := server.Requests().Count("get", "pods"); n != 0 {
				t.Errorf("the Pod was read %d times although no time has passed", n)
			}
			clock.ring(t.Context())
			collect(t, changes, running)
		})
	}
}

// A watch that works stays open, however often the Pod is read beside it.
func TestFollowKeepsAWatchThatWorks(t *testing.T) {
	t.Parallel()
	server := faultserver.Start(t)
	client := newClient(t, server, time.Minute)
	pod := server.AddPod(somePod("a"))
	clock := newHandClock()
	changes := client.Follow(t.Context(), pod, clock)
	server.Apply(life()[0])
	collect(t, changes, noNode) // the watch is open
	for n := 1; n <= 5; n++ {
		clock.ring(t.Context())
		server.Wait(t, "the Pod is read", func() bool { return server.Requests().Count("get", "pods") == n })
	}
	server.Apply(life()[1:]...)
	collect(t, changes, running)
	if n := server.Requests().Count("watch", "pods"); n != 1 {
		t.Errorf("%d watches were opened", n)
	}
}

// An apiserver that is away is reported and asked again, and its return seen.
func TestFollowThroughARestart(t *testing.T) {
	t.Parallel()
	server := faultserver.Start(t)
	client := newClient(t, server, time.Minute)
	pod := server.AddPod(somePod("a"))
	changes := client.Follow(t.Context(), pod, newHandClock())
	if got := tell(<-changes); got != atFirst {
		t.Fatalf("first came %q", got)
	}
	server.Wait(t, "the watch is open", func() bool { return server.Requests().Count("watch", "pods") == 1 })
	server.Down()
	server.Apply(life()...)
	collect(t, changes, "error")
	server.Up(t)
	collect(t, changes, running)
}

// A Pod of the same name is not the one that is followed.
func TestFollowDoesNotTakeAnotherPod(t *testing.T) {
	t.Parallel()
	server := faultserver.Start(t)
	client := newClient(t, server, time.Minute)
	pod := server.AddPod(somePod("a"))
	server.OnWatch(func(int) faultserver.WatchPlan { return faultserver.WatchPlan{Drop: []int{1}, CloseAfter: 2} })
	server.Apply(faultserver.Removed())
	server.AddPod(somePod("a"), faultserver.Scheduled("n1"), faultserver.Running())
	got := collect(t, client.Follow(t.Context(), pod, newHandClock()), "gone")
	if diff := cmp.Diff([]string{atFirst, "gone"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestFollowEndsWithTheContext(t *testing.T) {
	t.Parallel()
	server := faultserver.Start(t)
	client := newClient(t, server, time.Minute)
	pod := server.AddPod(somePod("a"))
	ctx, cancel := context.WithCancel(t.Context())
	changes := client.Follow(ctx, pod, newHandClock())
	<-changes
	server.Wait(t, "the watch is open", func() bool { return server.Requests().Count("watch", "pods") == 1 })
	cancel()
	for change := range changes {
		t.Errorf("after the end came %q", tell(change))
	}
}
