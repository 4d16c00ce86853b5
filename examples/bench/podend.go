package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	corev1 "k8s.io/api/core/v1"
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
// it. Before, a deletion can take longer for any Pod: the kubelet waits for its
// next look at all containers, which comes once a second
// (podCache.GetNewerThan in pkg/kubelet/pod_workers.go of Kubernetes).
const settled = 4 * time.Second

// podEnd measures how long a deleted job Pod takes to end: its processes, and
// its object; and beside it a Pod without anything of ours.
func (b *bench) podEnd(ctx context.Context) error {
	b.print("\nA job Pod that is deleted while its script ignores TERM, and a plain Pod\nthat ends on TERM: median of %d and the longest\n\n", rounds)
	b.print("                                                     median     longest    goal\n")
	for _, moment := range []struct {
		name string
		runs func(round int) time.Duration
	}{
		{"after some seconds", func(int) time.Duration { return settled }},
		{"in its first second", func(round int) time.Duration { return time.Duration(round) * time.Second / rounds }},
	} {
		for _, kind := range []struct {
			name    string
			measure func(context.Context, time.Duration) (podEnding, error)
		}{{"job", b.jobPodEnd}, {"plain", b.plainPodEnd}} {
			var processes, object []time.Duration
			for round := range rounds {
				end, err := kind.measure(ctx, moment.runs(round))
				if err != nil {
					return err
				}
				processes, object = append(processes, end.processes), append(object, end.object)
			}
			for _, row := range []struct {
				name string
				all  []time.Duration
				goal time.Duration
			}{{"processes dead", processes, processesGoal}, {"object gone", object, objectGoal}} {
				name := moment.name + ", " + kind.name + ": " + row.name
				b.print("  %-49s  %s  %s  %s\n", name, seconds(median(row.all)), seconds(longest(row.all)), seconds(row.goal))
			}
		}
	}
	return nil
}

// podEnding is how long a Pod took to end from its deletion on.
type podEnding struct{ processes, object time.Duration }

// jobPodEnd runs a stage for a while and deletes its Pod under it.
func (b *bench) jobPodEnd(ctx context.Context, runs time.Duration) (end podEnding, err error) {
	hand, err := b.byHand()
	if err != nil {
		return end, err
	}
	defer func() { err = errors.Join(err, hand.clean(ctx)) }()
	if err := hand.run(ctx, io.Discard, "prepare"); err != nil {
		return end, err
	}
	script, err := hand.script(stubbornScript)
	if err != nil {
		return end, err
	}
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- hand.run(ctx, &firstWrite{happens: ready}, "run", script, "build_script") }()
	select {
	case <-ready:
	case err := <-ended:
		return end, fmt.Errorf("the stage ended before its time: %w", err)
	}
	client, err := b.bed.Admin(ctx)
	if err != nil {
		return end, err
	}
	list, err := client.Pods(testbed.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil || len(list.Items) != 1 {
		return end, fmt.Errorf("looking for the Pod: %d there, %w", len(list.Items), err)
	}
	end, err = b.deletePod(ctx, &list.Items[0], runs)
	<-ended // with a system failure: its Pod is lost
	return end, err
}

// plainPodEnd is the same for a Pod in which nothing of ours runs.
func (b *bench) plainPodEnd(ctx context.Context, runs time.Duration) (podEnding, error) {
	pod, err := b.plainPod(ctx)
	if err != nil {
		return podEnding{}, err
	}
	return b.deletePod(ctx, pod, runs)
}

// deletePod deletes a Pod after a while and gives the times from there.
func (b *bench) deletePod(ctx context.Context, pod *corev1.Pod, after time.Duration) (podEnding, error) {
	client, err := b.bed.Admin(ctx)
	if err != nil {
		return podEnding{}, err
	}
	pods := client.Pods(testbed.Namespace)
	events, err := pods.Watch(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("metadata.name", pod.Name).String(), ResourceVersion: pod.ResourceVersion,
	})
	if err != nil {
		return podEnding{}, err
	}
	defer events.Stop()
	select {
	case <-ctx.Done():
		return podEnding{}, ctx.Err()
	case <-time.After(after):
	}
	began := time.Now()
	if err := pods.Delete(ctx, pod.Name, metav1.DeleteOptions{}); err != nil {
		return podEnding{}, err
	}
	var end podEnding
	dead := make(chan error, 1)
	go func() {
		var err error
		end.processes, err = b.untilDead(ctx, pod.UID, began)
		dead <- err
	}()
	for event := range events.ResultChan() {
		if event.Type == watch.Deleted {
			end.object = time.Since(began)
			break
		}
	}
	if end.object == 0 {
		err = errors.New("the watch ended before the Pod was gone")
	}
	return end, errors.Join(err, <-dead)
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
