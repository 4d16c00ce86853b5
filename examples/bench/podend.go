package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/socialweb-computer/tenant-executor/examples/testbed"
)

// podEndVerb has only the end of a Pod measured: bench podend.
const podEndVerb = "podend"

// Goals for a job Pod that is deleted while its script runs.
const (
	processesGoal = time.Second
	objectGoal    = 3 * time.Second
)

// stubbornScript leaves processes that do not end by themselves.
const stubbornScript = `(setsid sleep 4301 &)
sh -c 'trap "" TERM; while :; do sleep 1; done' &
trap '' TERM
echo ready
while :; do sleep 1; done`

// settled is how long a Pod runs until its kubelet has nothing more to do with
// it. Before, a deletion can take longer, it seems since the kubelet waits for
// its next look at all containers, which comes once a second
// (podCache.GetNewerThan in pkg/kubelet/pod_workers.go of Kubernetes).
const settled = 4 * time.Second

// podEnd measures how long a deleted job Pod takes to end: its processes, and
// its object.
func (b *bench) podEnd(ctx context.Context) error {
	b.print("\nA job Pod that is deleted while its script ignores TERM, median of %d and the longest\n\n", rounds)
	b.print("                                         median     longest    goal\n")
	for _, moment := range []struct {
		name string
		runs time.Duration
	}{{"after some seconds", settled}, {"right after its start", 0}} {
		var processes, object []time.Duration
		for range rounds {
			p, o, err := b.onePodEnd(ctx, moment.runs)
			if err != nil {
				return err
			}
			processes, object = append(processes, p), append(object, o)
		}
		for _, row := range []struct {
			name string
			all  []time.Duration
			goal time.Duration
		}{{"processes dead", processes, processesGoal}, {"object gone", object, objectGoal}} {
			b.print("  %-37s  %s  %s  %s\n", moment.name+": "+row.name, seconds(median(row.all)), seconds(longest(row.all)), seconds(row.goal))
		}
	}
	return nil
}

// onePodEnd runs a stage for a while, deletes its Pod under it, and gives the
// times from there.
func (b *bench) onePodEnd(ctx context.Context, runs time.Duration) (processes, object time.Duration, err error) {
	hand, err := b.byHand()
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, hand.clean(ctx)) }()
	if err := hand.run(ctx, io.Discard, "prepare"); err != nil {
		return 0, 0, err
	}
	script, err := hand.script(stubbornScript)
	if err != nil {
		return 0, 0, err
	}
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- hand.run(ctx, &firstWrite{happens: ready}, "run", script, "build_script") }()
	select {
	case <-ready:
	case err := <-ended:
		return 0, 0, fmt.Errorf("the stage ended before its time: %w", err)
	}
	client, err := b.bed.Admin(ctx)
	if err != nil {
		return 0, 0, err
	}
	pods := client.Pods(testbed.Namespace)
	list, err := pods.List(ctx, metav1.ListOptions{})
	if err != nil || len(list.Items) != 1 {
		return 0, 0, fmt.Errorf("looking for the Pod: %d there, %w", len(list.Items), err)
	}
	pod := list.Items[0]
	events, err := pods.Watch(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("metadata.name", pod.Name).String(), ResourceVersion: list.ResourceVersion,
	})
	if err != nil {
		return 0, 0, err
	}
	defer events.Stop()
	select {
	case <-ctx.Done():
		return 0, 0, ctx.Err()
	case <-time.After(runs):
	}
	began := time.Now()
	if err := pods.Delete(ctx, pod.Name, metav1.DeleteOptions{}); err != nil {
		return 0, 0, err
	}
	dead := make(chan error, 1)
	go func() {
		var err error
		processes, err = b.untilDead(ctx, pod.UID, began)
		dead <- err
	}()
	for event := range events.ResultChan() {
		if event.Type == watch.Deleted {
			object = time.Since(began)
			break
		}
	}
	if object == 0 {
		err = errors.New("the watch ended before the Pod was gone")
	}
	err = errors.Join(err, <-dead)
	<-ended // with a system failure: its Pod is lost
	return processes, object, err
}

// lookEvery is how exact the time of the processes' end is.
const lookEvery = 10 * time.Millisecond

// untilDead gives the time until no process of a Pod's containers lives.
func (b *bench) untilDead(ctx context.Context, pod types.UID, began time.Time) (time.Duration, error) {
	looks := time.NewTicker(lookEvery)
	defer looks.Stop()
	for {
		live, err := testbed.Processes(pod)
		if err != nil || len(live) == 0 {
			return time.Since(began), err
		}
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-looks.C:
		}
	}
}

// firstWrite tells when the first byte is written to it.
type firstWrite struct {
	happens chan struct{}
	done    bool
}

func (w *firstWrite) Write(p []byte) (int, error) {
	if !w.done {
		w.done = true
		close(w.happens)
	}
	return len(p), nil
}
