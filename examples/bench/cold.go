package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	typed "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/socialweb-computer/tenant-executor/examples/localrunner/runner"
	"github.com/socialweb-computer/tenant-executor/examples/testbed"
)

// coldVerb measures cold starts alone: bench cold.
const coldVerb = "cold"

// coldRounds is how often a cold start is measured. Each boots a node.
const coldRounds = 5

// coldParts are the parts of a cold start in their order. The boot is the
// cluster's, the others are what comes on top of it.
var coldParts = []string{"until the Pod is made", "boot of the node", "scheduling", "pull of the images", "start of the containers", "until it is reached"}

// cold measures prepare from an empty cluster, and breaks it down by what a
// watcher of the cluster sees.
func (b *bench) cold(ctx context.Context) error {
	parts := map[string][]time.Duration{}
	var whole, over []time.Duration
	for range coldRounds {
		if err := b.dropNodes(ctx); err != nil {
			return err
		}
		round, prepare, err := b.coldStart(ctx)
		if err != nil {
			return err
		}
		for i, part := range coldParts {
			parts[part] = append(parts[part], round[i])
		}
		whole = append(whole, prepare)
		over = append(over, prepare-round[1])
	}
	b.print("\nA cold start: prepare from no node, median of %d\n\n", coldRounds)
	for _, part := range coldParts {
		b.print("  %-24s %9s\n", part, seconds(median(parts[part])))
	}
	b.print("  %-24s %9s\n\n", "prepare", seconds(median(whole)))
	b.print("  prepare = boot + X, and X is %s\n", seconds(median(over)))
	return nil
}

// coldStart runs an empty job and gives the parts of its prepare.
func (b *bench) coldStart(ctx context.Context) ([]time.Duration, time.Duration, error) {
	seen := &timeline{at: map[string]time.Time{}}
	stop, err := seen.follow(ctx, b.bed)
	if err != nil {
		return nil, 0, err
	}
	defer stop()
	out, err := b.bed.Run(ctx, testbed.WithoutSources(b.bed.Job("true")), runner.Options{})
	if err == nil && out.Status != runner.Success {
		err = fmt.Errorf("the job ended with %s: %s\n%s", out.Status, out.Message, out.Log)
	}
	if err != nil {
		return nil, 0, err
	}
	for _, call := range out.Calls {
		if call.Stage == "prepare" {
			parts, err := seen.parts(call.Started, call.Started.Add(call.Duration))
			return parts, call.Duration, errors.Join(err, b.noPods(ctx))
		}
	}
	return nil, 0, errors.New("the job had no prepare")
}

// Marks of a timeline, in their order.
const (
	podMade      = "Pod made"
	nodeReady    = "node ready"
	podScheduled = "Pod scheduled"
	imagesPulled = "images pulled"
	podRuns      = "Pod runs"
)

// timeline notes when something was first seen on the cluster; of the pull of
// images, when it was last.
type timeline struct {
	mu sync.Mutex
	at map[string]time.Time
}

func (l *timeline) note(mark string, last bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, known := l.at[mark]; !known || last {
		l.at[mark] = time.Now()
	}
}

// parts are the spans between the marks, from and to included. Images that were
// there already take no time.
func (l *timeline) parts(from, to time.Time) ([]time.Duration, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, pulled := l.at[imagesPulled]; !pulled {
		l.at[imagesPulled] = l.at[podScheduled]
	}
	var parts []time.Duration
	for _, mark := range []string{podMade, nodeReady, podScheduled, imagesPulled, podRuns} {
		at, seen := l.at[mark]
		if !seen {
			return nil, fmt.Errorf("the watch has not seen: %s", mark)
		}
		parts = append(parts, max(0, at.Sub(from)))
		from = at
	}
	return append(parts, max(0, to.Sub(from))), nil
}

// follow watches the cluster until stop is called.
func (l *timeline) follow(ctx context.Context, bed *testbed.Bed) (stop func(), err error) {
	client, err := bed.Admin(ctx)
	if err != nil {
		return nil, err
	}
	watches, err := watches(ctx, client)
	if err != nil {
		return nil, err
	}
	for _, w := range watches {
		go func() {
			for event := range w.ResultChan() {
				l.see(event.Object)
			}
		}()
	}
	return func() {
		for _, w := range watches {
			w.Stop()
		}
	}, nil
}

// watches begin now: what was there before is not seen.
func watches(ctx context.Context, client *typed.CoreV1Client) ([]watch.Interface, error) {
	pods, err := client.Pods(testbed.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	from := metav1.ListOptions{ResourceVersion: pods.ResourceVersion}
	var all []watch.Interface
	for _, begin := range []func(context.Context, metav1.ListOptions) (watch.Interface, error){
		client.Pods(testbed.Namespace).Watch, client.Nodes().Watch, client.Events(testbed.Namespace).Watch,
	} {
		w, err := begin(ctx, from)
		if err != nil {
			return nil, err
		}
		all = append(all, w)
	}
	return all, nil
}

func (l *timeline) see(object runtime.Object) {
	switch o := object.(type) {
	case *corev1.Pod:
		l.note(podMade, false)
		if o.Spec.NodeName != "" {
			l.note(podScheduled, false)
		}
		if o.Status.Phase == corev1.PodRunning {
			l.note(podRuns, false)
		}
	case *corev1.Node:
		for _, c := range o.Status.Conditions {
			if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
				l.note(nodeReady, false)
			}
		}
	case *corev1.Event:
		if o.Reason == "Pulled" && strings.HasPrefix(o.InvolvedObject.Name, "job-") {
			l.note(imagesPulled, true)
		}
	}
}
