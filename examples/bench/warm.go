package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/socialweb-computer/tenant-executor/examples/localrunner/runner"
	"github.com/socialweb-computer/tenant-executor/examples/testbed"
)

// warmVerb measures the starts of a job alone: bench warm.
const warmVerb = "warm"

// warmRounds is how often each start is measured. A cold one boots a node.
const warmRounds = 7

// placeholders selects the Pods that hold nodes.
const placeholders = "tenant-executor.socialweb.computer/component=placeholder"

// start is one way in which a job meets its node.
type start struct {
	name string
	// ready brings the cluster there and gives the driver's configuration.
	ready func(context.Context) (config string, err error)
	// done undoes what ready did.
	done func(context.Context) error

	prepare, cleanup []time.Duration
}

// warm compares the starts of a job: from no node, on an idle node, on a node
// that lingers after another job, and on one that a policy keeps free. They
// take turns, so that all meet the same machine.
func (b *bench) warm(ctx context.Context) error {
	pause := fmt.Sprintf("[warm]\npause_pod_image = %q\n", b.bed.Image("pause"))
	linger, err1 := b.bed.WriteConfig(testbed.Namespace, pause+"linger = \"5m\"\n")
	policy, err2 := b.bed.WriteConfig(testbed.Namespace, pause+"[[warm.policy]]\nidle_count = 1\n")
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	nothing := func(context.Context) error { return nil }
	starts := []*start{
		{name: "no node", done: nothing, ready: func(ctx context.Context) (string, error) { return b.bed.Config, b.dropNodes(ctx) }},
		{name: "idle node", done: nothing, ready: func(context.Context) (string, error) { return b.bed.Config, nil }},
		{name: "node that lingers", done: b.removePlaceholders, ready: func(ctx context.Context) (string, error) {
			_, err := b.jobWith(ctx, linger)
			return linger, errors.Join(err, b.heldNode(ctx))
		}},
		{name: "node kept by a policy", ready: func(ctx context.Context) (string, error) { return policy, b.keep(ctx, policy) }, done: b.removePlaceholders},
	}
	for range warmRounds {
		for _, s := range starts {
			if err := b.measure(ctx, s); err != nil {
				return fmt.Errorf("starting on %s: %w", s.name, err)
			}
		}
	}
	b.print("\nThe start of a job, median of %d\n\n  %-24s %9s %9s %9s\n", warmRounds, "", "prepare", "(fastest)", "cleanup")
	for _, s := range starts {
		b.print("  %-24s %9s %9s %9s\n", s.name, seconds(median(s.prepare)), seconds(slices.Min(s.prepare)), seconds(median(s.cleanup)))
	}
	return nil
}

func (b *bench) measure(ctx context.Context, s *start) error {
	config, err := s.ready(ctx)
	if err != nil {
		return err
	}
	out, err := b.jobWith(ctx, config)
	if err != nil {
		return err
	}
	for _, call := range out.Calls {
		switch call.Stage {
		case "prepare":
			s.prepare = append(s.prepare, call.Duration)
		case "cleanup":
			s.cleanup = append(s.cleanup, call.Duration)
		}
	}
	return errors.Join(s.done(ctx), b.noPods(ctx))
}

// jobWith runs an empty job.
func (b *bench) jobWith(ctx context.Context, config string) (testbed.Outcome, error) {
	out, err := b.bed.RunWith(ctx, config, testbed.WithoutSources(b.bed.Job("true")), runner.Options{})
	if err == nil && out.Status != runner.Success {
		err = fmt.Errorf("the job ended with %s: %s\n%s", out.Status, out.Message, out.Log)
	}
	return out, err
}

// keep has one look of tenant-executor warm, and waits for the placeholder to
// run. At the ceiling nothing else of it is seen by the job.
func (b *bench) keep(ctx context.Context, config string) error {
	cmd := exec.CommandContext(ctx, b.bed.Driver, "warm", "--once", "--config", config)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return b.heldNode(ctx)
}

// heldNode waits until a placeholder runs, and nothing else.
func (b *bench) heldNode(ctx context.Context) error {
	client, err := b.bed.Admin(ctx)
	if err != nil {
		return err
	}
	return testbed.Until(ctx, "a placeholder", time.Minute, func(ctx context.Context) (bool, error) {
		list, err := client.Pods(testbed.Namespace).List(ctx, metav1.ListOptions{})
		return err == nil && len(list.Items) == 1 && list.Items[0].Status.Phase == corev1.PodRunning, err
	})
}

func (b *bench) removePlaceholders(ctx context.Context) error {
	client, err := b.bed.Admin(ctx)
	if err != nil {
		return err
	}
	now := int64(0)
	return client.Pods(testbed.Namespace).DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: &now}, metav1.ListOptions{LabelSelector: placeholders})
}

// dropNodes has the gateway drop the idle node, and leaves it with its hold.
func (b *bench) dropNodes(ctx context.Context) error {
	client, err := b.bed.Admin(ctx)
	if err != nil {
		return err
	}
	if _, err := b.bed.Do(ctx, "gateway", "set", "--hold", "1s"); err != nil {
		return err
	}
	if err := testbed.Until(ctx, "the node to be dropped", time.Minute, func(ctx context.Context) (bool, error) {
		list, err := client.Nodes().List(ctx, metav1.ListOptions{})
		return err == nil && len(list.Items) == 0, err
	}); err != nil {
		return err
	}
	_, err = b.bed.Do(ctx, "gateway", "set", "--hold", "10m")
	return err
}
