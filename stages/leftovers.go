package stages

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/socialweb-computer/tenant-executor/executor/pod"
	"github.com/socialweb-computer/tenant-executor/kube/capacity"
	"github.com/socialweb-computer/tenant-executor/kube/cluster"
	"github.com/socialweb-computer/tenant-executor/kube/pods"
	"github.com/socialweb-computer/tenant-executor/kube/reap"
	"github.com/socialweb-computer/tenant-executor/stages/owner"
	"github.com/socialweb-computer/tenant-executor/stages/state"
)

// leftovers finds and removes what jobs of one runner have left on the
// cluster. It never touches what belongs to another runner, nor a job whose
// runner may still need it.
type leftovers struct {
	cluster *cluster.Client
	pods    *pods.Client
	nodes   *capacity.Nodes
	reap    *reap.Client
	clock   pods.Clock
	host    Host
	state   *state.Folder
	// runner is the runner's short token.
	runner string
	reach  *reach
	// closed hears of each attempt whose Pod was removed; nil where nobody does.
	closed func(key, attempt, pod, why string)
}

// remove removes a leftover, and tells that its attempt is over.
func (l *leftovers) remove(ctx context.Context, one reap.Leftover) error {
	err := l.reap.Remove(ctx, one)
	if err == nil && one.Kind == "Pod" && l.closed != nil {
		l.closed(one.Labels[pod.LabelJob], one.Labels[pod.LabelAttempt], one.Name, string(one.Reason))
	}
	return err
}

func (d *Driver) leftovers(host Host) *leftovers {
	return &leftovers{
		cluster: d.cluster, pods: d.pods, nodes: d.nodes, reap: reap.NewClient(d.cluster, requestBudget),
		clock: d.clock, host: host, state: d.state, runner: d.job.RunnerToken, reach: d.reach().withChosen(d.state, d.clock.Now()),
		closed: d.course.CloseOther,
	}
}

// warnOfOthers says whose job Pods are there where none is of the runner: its
// token may be mistyped. What cannot be looked at is left out.
func (l *leftovers) warnOfOthers(ctx context.Context, warn func(text string)) {
	all, err := listAcross(l.reach, func(namespace string) ([]corev1.Pod, error) {
		return l.pods.List(ctx, namespace, pod.SelectorAll())
	})
	others := map[string]bool{}
	for i := range all {
		others[all[i].Labels[pod.LabelRunner]] = true
	}
	if err != nil || len(others) == 0 || others[pod.LabelValue(l.runner)] {
		return
	}
	warn(fmt.Sprintf("no job Pod there is of runner %s; they are of %s", l.runner, strings.Join(slices.Sorted(maps.Keys(others)), ", ")))
}

// list gives the Pods of the runner.
func (l *leftovers) list(ctx context.Context) ([]corev1.Pod, error) {
	return listAcross(l.reach, func(namespace string) ([]corev1.Pod, error) {
		return l.pods.List(ctx, namespace, pod.RunnerSelector(l.runner))
	})
}

// rules judge by the driver's labels and annotations. Nodes that decide are
// read once each.
func (l *leftovers) rules(ctx context.Context) reap.Rules {
	seen := map[string]reap.Node{}
	return reap.Rules{
		Now:     l.clock.Now(),
		Group:   pod.LabelJob,
		Expires: pod.AnnotationExpires,
		Held:    pod.AnnotationHeld,
		Life:    l.life,
		Node: func(name string) reap.Node {
			if _, known := seen[name]; !known {
				seen[name] = l.node(ctx, name)
			}
			return seen[name]
		},
	}
}

func (l *leftovers) node(ctx context.Context, name string) reap.Node {
	health, err := l.nodes.Health(ctx, name)
	switch {
	case err != nil || health.Ready:
		return reap.NodeWell
	case health.Exists:
		return reap.NodeSilent
	}
	return reap.NodeMissing
}

func (l *leftovers) life(o metav1.Object) reap.Life {
	found, err := owner.Parse(o.GetAnnotations()[pod.AnnotationOwner])
	if err != nil {
		return reap.Unknown
	}
	switch l.host.Machine.Life(found, o.GetCreationTimestamp().Time, l.host.Owner) {
	case owner.Alive:
		return reap.Alive
	case owner.Gone:
		return reap.Gone
	case owner.Over:
		return reap.Over
	}
	return reap.Unknown
}

// undoneHere are the cleanups of this cluster that are still to be done.
func (l *leftovers) undoneHere() []state.Undone {
	all, err := l.state.ListUndone()
	if err != nil {
		return nil // they wait for a folder that can be read
	}
	var here []state.Undone
	for _, u := range all {
		if u.Cluster == l.cluster.Identity() {
			here = append(here, u)
		}
	}
	return here
}

// ofUndone are the Pods of a cleanup that is to be done. The job's runner may
// meanwhile have begun another attempt: it takes the cleanup over before it
// makes a Pod (see Driver.forget), so Pods that were listed while the cleanup
// was still to be done are old ones.
func (l *leftovers) ofUndone(ctx context.Context, u state.Undone) ([]reap.Leftover, error) {
	list, err := l.pods.List(ctx, u.Namespace, pod.KeySelector(u.Key))
	if err != nil || !l.state.HasUndone(u) {
		return nil, err
	}
	left := l.rules(ctx).All(list, reap.Undone)
	if !l.reach.perJob {
		return left, nil
	}
	home, err := l.home(ctx, u)
	return append(left, home...), err
}

// undo does cleanups that could not be done before, most of them at most, and
// while ctx lasts. It begins anywhere in the list, so that one that cannot be
// done does not keep the others from their turn. It says how many objects were
// removed.
func (l *leftovers) undo(ctx context.Context, most int) (removed int) {
	all := l.undoneHere()
	first := l.clock.Now().UnixMilli()
	for i := range min(most, len(all)) {
		u := all[(first+int64(i))%int64(len(all))]
		left, err := l.ofUndone(ctx, u)
		for i := range left {
			if err == nil {
				if err = l.remove(ctx, left[i]); err == nil {
					removed++
				}
			}
		}
		switch {
		case err == nil:
			// A file that stays only costs another look.
			_ = l.state.RemoveUndone(u)
		case ctx.Err() != nil || cluster.Transient(err):
			return removed
		}
	}
	return removed
}
