package stages

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/socialweb-computer/tenant-executor/executor/failure"
	"github.com/socialweb-computer/tenant-executor/executor/pod"
	"github.com/socialweb-computer/tenant-executor/executor/settings"
	"github.com/socialweb-computer/tenant-executor/kube/capacity"
	"github.com/socialweb-computer/tenant-executor/kube/cluster"
	"github.com/socialweb-computer/tenant-executor/kube/pods"
	"github.com/socialweb-computer/tenant-executor/kube/reap"
	"github.com/socialweb-computer/tenant-executor/stages/owner"
	"github.com/socialweb-computer/tenant-executor/stages/state"
)

// ReapParts are what Reap works with.
type ReapParts struct {
	Settings settings.Settings
	// Find says where the cluster is.
	Find cluster.Find
	// State is the state folder, nil where there is none, for the reason in
	// StateErr.
	State    *state.Folder
	StateErr error
	// Runner is the short token of the runner whose leftovers are meant.
	Runner string
	Host   Host
	Clock  pods.Clock
	// Warn says what the result lacks.
	Warn func(text string)
	// Closed hears of each attempt whose Pod was removed; nil where nobody does.
	Closed func(key, attempt, pod, why string)
	// DryRun only looks.
	DryRun bool
}

// Leftover is something that Reap has found.
type Leftover struct {
	// Kind is Pod, Secret or Namespace.
	Kind      string      `json:"kind"`
	Namespace string      `json:"namespace"`
	Name      string      `json:"name"`
	Job       string      `json:"job"`
	Reason    reap.Reason `json:"reason"`
	Node      string      `json:"node"`
	Made      time.Time   `json:"made"`
	// Removed says whether it was deleted; Error why not, where that was
	// tried.
	Removed bool   `json:"removed"`
	Error   string `json:"error,omitempty"`
	// Finalizers keep a Pod that was deleted and has ended; whoever has put them
	// there has to take them away.
	Finalizers []string `json:"finalizers,omitempty"`
}

// Reap finds what jobs of a runner have left on the cluster, and removes it.
// It gives what it found also when some of it could not be removed, or looked
// for: then there is an error as well.
func Reap(ctx context.Context, p ReapParts) ([]Leftover, error) {
	c, err := cluster.Connect(ctx, p.Find)
	if err != nil {
		return nil, connectFailure(err)
	}
	l := p.leftovers(c)
	found, err := l.all(ctx)
	if l.reach.narrowed {
		p.Warn("the driver may not list Pods and Secrets in all namespaces, so those that jobs have chosen are known by this host's memory alone: " + strings.Join(l.reach.known, ", "))
	}
	if len(found) == 0 && err == nil {
		l.warnOfOthers(ctx, p.Warn)
	}
	failed := []error{err}
	var told []Leftover
	for _, one := range found {
		t := tell(one)
		if !p.DryRun && one.Reason != reap.Finalizer {
			err := l.remove(ctx, one)
			if t.Removed = err == nil; err != nil {
				t.Error = err.Error()
				failed = append(failed, err)
			}
		}
		told = append(told, t)
	}
	if !p.DryRun {
		here, others := l.undoneHere()
		l.undo(ctx, len(here)+len(others)) // forgets those that are done by now
	}
	if err := errors.Join(failed...); err != nil {
		return told, requestFailure(c, err)
	}
	if p.State == nil {
		return told, failure.Wrap(failure.Settings, p.StateErr, "without the state folder neither undone cleanups nor dead runners are known")
	}
	return told, nil
}

func tell(l reap.Leftover) Leftover {
	return Leftover{
		Kind: l.Kind, Namespace: l.Namespace, Name: l.Name, Job: l.Labels[pod.LabelJobID],
		Reason: l.Reason, Node: l.Node, Made: l.Made, Finalizers: l.Finalizers,
	}
}

// all finds everything: undone cleanups, Pods, Secrets and namespaces, in this
// order. The latter two are listed before the Pods by which they are judged.
func (l *leftovers) all(ctx context.Context) ([]reap.Leftover, error) {
	var found []reap.Leftover
	var failed []error
	seen := map[string]bool{}
	add := func(more []reap.Leftover) {
		for _, one := range more {
			if key := one.Kind + string(one.UID); !seen[key] {
				seen[key] = true
				found = append(found, one)
			}
		}
	}
	here, others := l.undoneHere()
	for _, u := range here {
		more, _, err := l.ofUndone(ctx, u)
		add(more)
		failed = append(failed, err)
	}
	for _, u := range others {
		// It need not be possible to look into a namespace of another cluster.
		more, _, _ := l.ofUndone(ctx, u)
		add(more)
	}
	secrets, err := listAcross(l.reach, func(namespace string) ([]metav1.PartialObjectMetadata, error) {
		return l.reap.Secrets(ctx, namespace, pod.RunnerObjects(l.runner))
	})
	failed = append(failed, err)
	namespaces, err := l.ofJobs(ctx, pod.RunnerObjects(l.runner))
	failed = append(failed, err)
	list, err := l.list(ctx)
	if err != nil {
		return found, errors.Join(append(failed, err)...)
	}
	rules := l.rules(ctx)
	// A person names whose leftovers are meant. Prepare looks further.
	add(rules.Pods(slices.DeleteFunc(jobs(list), func(p corev1.Pod) bool { return !rules.Ours(&p) })))
	add(reap.Ended(placeholders(list)))
	add(rules.Secrets(secrets, list))
	add(rules.Namespaces(namespaces, list))
	return found, errors.Join(failed...)
}

func (p ReapParts) leftovers(c *cluster.Client) *leftovers {
	return &leftovers{
		cluster: c, pods: pods.NewClient(c, requestBudget), nodes: capacity.NewNodes(c, requestBudget),
		reap: reap.NewClient(c, requestBudget), clock: clusterClock{p.Clock, c}, host: p.Host, state: p.State,
		runner: p.Runner, reach: reachOf(p.Settings.Kubernetes, p.Settings.Kubernetes).withChosen(p.State, p.Clock.Now()),
		closed:   p.Closed,
		nodeLost: p.Settings.Run.NodeLost.Value(),
	}
}

// Elsewhere counts the Pods of a runner that belong to processes on other
// hosts, by the host's name. Only there can it be told whether those processes
// live.
func Elsewhere(ctx context.Context, p ReapParts) (map[string]int, error) {
	c, err := cluster.Connect(ctx, p.Find)
	if err != nil {
		return nil, connectFailure(err)
	}
	l := p.leftovers(c)
	list, err := l.list(ctx)
	if err != nil {
		return nil, requestFailure(c, err)
	}
	hosts, rules := map[string]int{}, l.rules(ctx)
	for i := range list {
		if !rules.Ours(&list[i]) {
			continue
		}
		whose, err := owner.Parse(list[i].Annotations[pod.AnnotationOwner])
		if err == nil && whose.Host != p.Host.Machine.Identity {
			hosts[whose.Hostname]++
		}
	}
	return hosts, nil
}
