// Package reap finds Pods, Secrets and namespaces that nobody needs any more,
// and removes them. It decides with care: what may still be needed is left alone.
package reap

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Reason is why something is left over. The texts are stable: scripts read
// them in the JSON output.
type Reason string

const (
	// OwnerGone is a Pod of a process that is proven dead.
	OwnerGone Reason = "runner gone"
	// AttemptOver is a Pod of an attempt that its owner has finished with.
	AttemptOver Reason = "attempt over"
	// Abandoned is a Pod whose place a newer one has taken.
	Abandoned Reason = "newer attempt"
	// Expired is a Pod whose time has passed.
	Expired Reason = "expired"
	// Finished is a Pod whose containers ended a while ago.
	Finished Reason = "finished"
	// NodeGone is a Pod on a node that is lost, which nobody is left to end.
	NodeGone Reason = "node gone"
	// Undone is a Pod whose cleanup could not reach the cluster.
	Undone Reason = "cleanup undone"
	// Finalizer is a Pod that was deleted and has ended, and stays for the sake
	// of somebody who has put a finalizer on it. Nobody else can remove it.
	Finalizer Reason = "finalizer"
	// NoPod is a Secret or a namespace whose Pod does not exist.
	NoPod Reason = "no Pod"
)

// Life is what is known of the process that something belongs to.
type Life int

const (
	// Unknown is an owner of whom nothing is known, or no owner.
	Unknown Life = iota
	// Alive is an owner who may still need what it has.
	Alive
	// Gone is an owner that is proven dead.
	Gone
	// Over is an owner that lives and has no use for it any more.
	Over
)

// Owner is the process that something belongs to.
type Owner struct {
	// Process means one process for ever, "" where nobody is named.
	Process string
	Life    Life
}

// Rules say how to judge. Who owns a thing is asked first, then what has come
// after it, and what a clock says last:
//
//   - a thing whose owner is proven dead, or done with it, goes, whosever it is;
//   - otherwise it is judged by those alone to whom it is ours;
//   - a Pod whose place a newer one of the same owner has taken goes;
//   - a thing whose owner lives stays, whatever a clock says;
//   - where nothing is known of the owner, time tells.
type Rules struct {
	// Now is the present time.
	Now time.Time
	// Group is the label whose value the attempts at one thing share.
	Group string
	// Expires is the annotation with the time, in RFC 3339, at which a thing
	// has no business any more.
	Expires string
	// Held is the annotation with the time, in RFC 3339, until which a Pod is
	// kept on purpose, whatever becomes of its owner.
	Held string
	// Ours reports whether a thing is of those on whose behalf it is judged.
	Ours func(metav1.Object) bool
	// Replaced is a group of which the process Self is about to make a newer
	// Pod, "" for none.
	Replaced string
	// Self is the Owner.Process on whose behalf it is judged, "" for a person.
	Self string
	// Owner is a thing's owner.
	Owner func(metav1.Object) Owner
	// Node says how a node is. It is asked only where that decides.
	Node func(name string) Node
}

// Node is how a node is.
type Node int

const (
	// NodeWell is a node that will carry a deletion out: it answers, or has
	// fallen silent just now, or nothing is known of it.
	NodeWell Node = iota
	// NodeSilent is a node that has not answered for so long that it counts as
	// lost. It carries out no deletion, but may come back.
	NodeSilent
	// NodeMissing is a node that does not exist any more.
	NodeMissing
)

// Grace periods of a judgement.
const (
	// finishedFor is how long a Pod stays after its end: a stage that ran in
	// it wants to read why.
	finishedFor = 10 * time.Minute
	// overdueFor is how long a node may take to end a Pod beyond its grace.
	overdueFor = 10 * time.Second
	// withoutPodFor is how long a Secret or a namespace may be there before its
	// Pod.
	withoutPodFor = 10 * time.Minute
)

// Leftover is something that nobody needs any more.
type Leftover struct {
	// Kind is Pod, Secret or Namespace.
	Kind, Namespace, Name string
	UID                   types.UID
	Reason                Reason
	// Node is the Pod's node, "" where it has none.
	Node string
	// Made is when it was made.
	Made time.Time
	// Labels are those of the thing.
	Labels map[string]string
	// Finalizers are those of a Pod.
	Finalizers []string
	// Force is whether its object has to be removed without anybody ending
	// its processes: its node is lost.
	Force bool
}

// Pods judges Pods: all of a group, or none, in whichever order. What is being
// ended by a node that lives is not left over any more.
func (r Rules) Pods(list []corev1.Pod) []Leftover {
	newest := r.newest(list)
	var all []Leftover
	for i := range list {
		p := &list[i]
		reason, force, left := r.pod(p, newest)
		if !left {
			continue
		}
		all = append(all, podLeft(p, reason, force))
	}
	return all
}

// All judges Pods of which is known that none is needed. Those that are being
// ended by a node that lives are not left over any more.
func (r Rules) All(list []corev1.Pod, reason Reason) []Leftover {
	var all []Leftover
	for i := range list {
		p := &list[i]
		if lost := r.lost(p); lost || p.DeletionTimestamp == nil {
			all = append(all, podLeft(p, reason, lost))
		}
	}
	return all
}

func podLeft(p *corev1.Pod, reason Reason, force bool) Leftover {
	return Leftover{
		Kind: "Pod", Namespace: p.Namespace, Name: p.Name, UID: p.UID, Reason: reason,
		Node: p.Spec.NodeName, Made: p.CreationTimestamp.Time, Labels: p.Labels, Finalizers: p.Finalizers, Force: force,
	}
}

// line is the Pods of one group and owner, of which the newest counts.
type line struct{ group, process string }

// newest is when the newest Pod of each line was made, and that of each group in
// the line without a process. A Pod that is being ended is nobody's newer
// attempt.
func (r Rules) newest(list []corev1.Pod) map[line]time.Time {
	newest := map[line]time.Time{}
	for i := range list {
		p := &list[i]
		group := p.Labels[r.Group]
		if group == "" || p.DeletionTimestamp != nil {
			continue
		}
		for _, process := range []string{"", r.Owner(p).Process} {
			if l := (line{group, process}); p.CreationTimestamp.After(newest[l]) {
				newest[l] = p.CreationTimestamp.Time
			}
		}
	}
	return newest
}

// abandoned reports whether a newer Pod has taken the place of this one, or is
// about to: one of the same owner. Two owners may have the same job in hand,
// and neither is the other's earlier attempt. A Pod that names no owner gives
// way to any.
func (r Rules) abandoned(p *corev1.Pod, process string, newest map[line]time.Time) bool {
	group := p.Labels[r.Group]
	if group != "" && group == r.Replaced && (process == "" || process == r.Self) {
		return true
	}
	return p.CreationTimestamp.Time.Before(newest[line{group, process}])
}

// pod is the first reason that holds.
func (r Rules) pod(p *corev1.Pod, newest map[line]time.Time) (reason Reason, force, left bool) {
	owner := r.Owner(p)
	proven := owner.Life == Gone || owner.Life == Over
	if p.DeletionTimestamp != nil {
		overdue := r.Now.After(p.DeletionTimestamp.Add(overdueFor)) && (proven || r.Ours(p))
		if overdue && finalized(p) {
			return Finalizer, false, true
		}
		return NodeGone, true, overdue && r.lost(p)
	}
	if r.held(p) {
		// Without its node there is nothing to keep.
		return NodeGone, true, (proven || r.Ours(p)) && r.node(p) == NodeMissing
	}
	switch {
	case owner.Life == Gone:
		reason = OwnerGone
	case owner.Life == Over:
		reason = AttemptOver
	case !r.Ours(p):
		return "", false, false
	case r.abandoned(p, owner.Process, newest):
		reason = Abandoned
	case r.over(p):
		reason = Expired
	case owner.Life == Alive:
		// It sees for itself that its node is missing, and that its time is up.
		return "", false, false
	case r.expired(p):
		reason = Expired
	case ended(p) && r.Now.After(endOf(p).Add(finishedFor)):
		reason = Finished
	case r.node(p) == NodeMissing:
		// A node that is silent may come back, and the job with it.
		reason = NodeGone
	default:
		return "", false, false
	}
	return reason, r.lost(p), true
}

// lost says whether nobody would carry a deletion of the Pod out.
func (r Rules) lost(p *corev1.Pod) bool { return r.node(p) != NodeWell }

func (r Rules) node(p *corev1.Pod) Node {
	if p.Spec.NodeName == "" {
		return NodeWell
	}
	return r.Node(p.Spec.NodeName)
}

// expired goes by the annotation. One that cannot be read says nothing.
func (r Rules) expired(o metav1.Object) bool {
	at, err := time.Parse(time.RFC3339, o.GetAnnotations()[r.Expires])
	return err == nil && r.Now.After(at)
}

// over reports whether a Pod was kept, and is no more. Its owner was done with it
// when it had it kept.
func (r Rules) over(p *corev1.Pod) bool {
	until, err := time.Parse(time.RFC3339, p.Annotations[r.Held])
	return err == nil && !r.Now.Before(until)
}

// held says whether a Pod that runs is kept at present.
func (r Rules) held(p *corev1.Pod) bool {
	until, err := time.Parse(time.RFC3339, p.Annotations[r.Held])
	return err == nil && r.Now.Before(until) && !ended(p)
}

// finalized reports whether nothing but finalizers keeps a Pod that was deleted:
// its node has confirmed the end by taking the grace away.
func finalized(p *corev1.Pod) bool {
	return len(p.Finalizers) > 0 && p.DeletionGracePeriodSeconds != nil && *p.DeletionGracePeriodSeconds == 0
}

// Ended gives Pods that are done once they have ended, and hold nothing any
// more, whosever they are.
func Ended(list []corev1.Pod) []Leftover {
	var all []Leftover
	for i := range list {
		if p := &list[i]; ended(p) && p.DeletionTimestamp == nil {
			all = append(all, podLeft(p, Finished, false))
		}
	}
	return all
}

func ended(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

// endOf is when the last container ended. A Pod that was evicted may not tell;
// then its conditions do.
func endOf(p *corev1.Pod) time.Time {
	last := p.CreationTimestamp.Time
	for _, c := range p.Status.ContainerStatuses {
		if t := c.State.Terminated; t != nil && t.FinishedAt.After(last) {
			last = t.FinishedAt.Time
		}
	}
	for _, c := range p.Status.Conditions {
		if c.LastTransitionTime.After(last) {
			last = c.LastTransitionTime.Time
		}
	}
	return last
}

// Secrets judges Secrets by the Pods of their group, which were listed after
// them.
func (r Rules) Secrets(list []metav1.PartialObjectMetadata, pods []corev1.Pod) []Leftover {
	return r.withoutPods("Secret", list, pods)
}

// Namespaces judges namespaces that were made for one group each, by the Pods
// of their group, which were listed after them.
func (r Rules) Namespaces(list []metav1.PartialObjectMetadata, pods []corev1.Pod) []Leftover {
	return r.withoutPods("Namespace", list, pods)
}

func (r Rules) withoutPods(kind string, list []metav1.PartialObjectMetadata, pods []corev1.Pod) []Leftover {
	used := map[string]bool{}
	for i := range pods {
		used[pods[i].Labels[r.Group]] = true
	}
	var all []Leftover
	for i := range list {
		s := &list[i]
		group := s.Labels[r.Group]
		if group == "" || used[group] || s.DeletionTimestamp != nil || !r.withoutOwner(s) {
			continue
		}
		all = append(all, Leftover{
			Kind: kind, Namespace: s.Namespace, Name: s.Name, UID: s.UID, Reason: NoPod,
			Made: s.CreationTimestamp.Time, Labels: s.Labels,
		})
	}
	return all
}

// withoutOwner reports whether nobody is about to make the thing's Pod.
func (r Rules) withoutOwner(s *metav1.PartialObjectMetadata) bool {
	switch life := r.Owner(s).Life; {
	case life == Gone, life == Over:
		return true
	case !r.Ours(s):
		return false
	case life == Alive:
		// An attempt that goes on may still need it, however long it takes.
		return false
	}
	return r.expired(s) || r.Now.After(s.CreationTimestamp.Add(withoutPodFor))
}
