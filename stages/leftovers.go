package stages

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

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
	// nodeLost is how long a node may be not ready before it counts as lost.
	nodeLost time.Duration
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
		clock: clusterClock{d.clock, d.cluster}, host: host, state: d.state, runner: d.job.RunnerToken, reach: d.reach().withChosen(d.state, d.clock.Now()),
		closed:   d.course.CloseOther,
		nodeLost: d.settings.Run.NodeLost.Value(),
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

// list gives every Pod that has or wants a node of its own: those of all jobs,
// since a runner's owner may have gone by another token before, and placeholders.
func (l *leftovers) list(ctx context.Context) ([]corev1.Pod, error) {
	return listAcross(l.reach, func(namespace string) ([]corev1.Pod, error) {
		return l.pods.List(ctx, namespace, pod.SelectorNode())
	})
}

// jobs are the Pods of jobs among others, placeholders those that hold nodes.
func jobs(list []corev1.Pod) []corev1.Pod         { return ofComponent(list, pod.ComponentJob) }
func placeholders(list []corev1.Pod) []corev1.Pod { return ofComponent(list, pod.ComponentPlaceholder) }

func ofComponent(list []corev1.Pod, component string) []corev1.Pod {
	var some []corev1.Pod
	for i := range list {
		if list[i].Labels[pod.LabelComponent] == component {
			some = append(some, list[i])
		}
	}
	return some
}

// rules judge by the driver's labels and annotations. Nodes that decide are
// read once each.
func (l *leftovers) rules(ctx context.Context) reap.Rules {
	seen := map[string]reap.Node{}
	asked := map[types.UID]reap.Owner{}
	rules := reap.Rules{
		Now:     l.clock.Now(),
		Group:   pod.LabelJob,
		Expires: pod.AnnotationExpires,
		Held:    pod.AnnotationHeld,
		Ours:    func(o metav1.Object) bool { return o.GetLabels()[pod.LabelRunner] == pod.LabelValue(l.runner) },
		Owner: func(o metav1.Object) reap.Owner {
			if _, known := asked[o.GetUID()]; !known {
				asked[o.GetUID()] = l.owner(o)
			}
			return asked[o.GetUID()]
		},
		Node: func(name string) reap.Node {
			if _, known := seen[name]; !known {
				seen[name] = l.node(ctx, name)
			}
			return seen[name]
		},
	}
	if l.host.Owner != nil {
		rules.Self = l.host.Owner.Process()
	}
	return rules
}

func (l *leftovers) node(ctx context.Context, name string) reap.Node {
	health, err := l.nodes.Health(ctx, name)
	switch {
	case err != nil || !health.Lost(l.clock.Now(), l.nodeLost):
		return reap.NodeWell
	case health.Exists:
		return reap.NodeSilent
	}
	return reap.NodeMissing
}

func (l *leftovers) owner(o metav1.Object) reap.Owner {
	found, err := owner.Parse(o.GetAnnotations()[pod.AnnotationOwner])
	if err != nil {
		return reap.Owner{}
	}
	lives := map[owner.Life]reap.Life{owner.Alive: reap.Alive, owner.Gone: reap.Gone, owner.Over: reap.Over}
	return reap.Owner{
		Process: found.Process(),
		Life:    lives[l.host.Machine.Life(found, o.GetCreationTimestamp().Time, l.host.Owner)],
	}
}

// undoneHere are the cleanups that are still to be done: those of this cluster,
// and those of others. One of the others may be about this cluster, from before
// its CA was replaced.
func (l *leftovers) undoneHere() (here, others []state.Undone) {
	all, err := l.state.ListUndone()
	if err != nil {
		return nil, nil // they wait for a folder that can be read
	}
	for _, u := range all {
		if u.Cluster == l.cluster.Identity() {
			here = append(here, u)
		} else {
			others = append(others, u)
		}
	}
	return here, others
}

// inTurn are some of a list, beginning anywhere, so that one that cannot be done
// does not keep the others from their turn.
func (l *leftovers) inTurn(all []state.Undone, most int) []state.Undone {
	var some []state.Undone
	first := l.clock.Now().UnixMilli()
	for i := range min(most, len(all)) {
		some = append(some, all[(first+int64(i))%int64(len(all))])
	}
	return some
}

// ofUndone are the Pods of a cleanup that is to be done, and whether they are all
// there is of the job. The job's runner may meanwhile have begun another
// attempt: it takes the cleanup over before it makes a Pod (see Driver.forget),
// so Pods that were listed while the cleanup was still to be done are old ones.
func (l *leftovers) ofUndone(ctx context.Context, u state.Undone) (left []reap.Leftover, all bool, err error) {
	list, err := l.pods.List(ctx, u.Namespace, pod.KeySelector(u.Key))
	if err != nil || !l.state.HasUndone(u) {
		return nil, false, err
	}
	found := len(list)
	list = slices.DeleteFunc(list, func(p corev1.Pod) bool { return p.Annotations[pod.AnnotationOwner] != u.Owner && l.inUse(&p) })
	left, all = l.rules(ctx).All(list, reap.Undone), len(list) == found
	if !all || !l.reach.perJob {
		return left, all, nil
	}
	home, err := l.home(ctx, u)
	return append(left, home...), true, err
}

// ofAnother reports whether a Pod belongs to another runner's process than the
// one that has called this stage, and may be in use there. A person who runs a
// stage by hand means every Pod of the job.
func (l *leftovers) ofAnother(p *corev1.Pod) bool {
	self := l.host.Owner
	return self != nil && l.owner(p).Process != self.Process() && l.inUse(p)
}

// inUse reports whether somebody may still need a Pod of his own.
func (l *leftovers) inUse(p *corev1.Pod) bool {
	o := l.owner(p)
	return o.Process != "" && o.Life != reap.Gone && o.Life != reap.Over
}

// undo does cleanups that could not be done before, most of them at most, and
// while ctx lasts. It returns how many objects were removed.
func (l *leftovers) undo(ctx context.Context, most int) (removed int) {
	here, others := l.undoneHere()
	turn := l.inTurn(here, most)
	for _, u := range append(turn, l.inTurn(others, most-len(turn))...) {
		left, all, err := l.ofUndone(ctx, u)
		for i := range left {
			if err == nil {
				if err = l.remove(ctx, left[i]); err == nil {
					removed++
				}
			}
		}
		switch {
		case err == nil && len(left) == 0 && u.Cluster != l.cluster.Identity():
			// It is about another cluster.
		case err == nil && all:
			// A file that stays only costs another look.
			_ = l.state.RemoveUndone(u)
		case ctx.Err() != nil || err != nil && cluster.Transient(err):
			return removed
		}
	}
	return removed
}
