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

// Rules say how to judge.
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
	// Replaced is a group whose Pods are all about to be replaced by a newer
	// one, "" for none.
	Replaced string
	// Life is what is known of a thing's owner.
	Life func(metav1.Object) Life
	// Node says how a node is. It is asked only where that decides.
	Node func(name string) Node
}

// Node is how a node is.
type Node int

const (
	// NodeWell is a node that answers, or of which nothing is known.
	NodeWell Node = iota
	// NodeSilent is a node that does not answer at present. It carries out no
	// deletion.
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
	// Force is whether its object has to be removed without anybody ending
	// its processes: its node is lost.
	Force bool
}

// Pods judges Pods: all of one owner group, in whichever order. What is being
// ended by a node that lives is not left over any more.
func (r Rules) Pods(list []corev1.Pod) []Leftover {
	newest := r.newest(list)
	var all []Leftover
	for i := range list {
		p := &list[i]
		reason, force, left := r.pod(p, newest[p.Labels[r.Group]])
		if !left {
			continue
		}
		all = append(all, podLeft(p, reason, force))
	}
	return all
}

// All judges Pods of which is known that none is needed.
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
		Node: p.Spec.NodeName, Made: p.CreationTimestamp.Time, Labels: p.Labels, Force: force,
	}
}

// newest is when the newest Pod of each group was made. A Pod that is being
// ended is nobody's newer attempt.
func (r Rules) newest(list []corev1.Pod) map[string]time.Time {
	newest := map[string]time.Time{}
	for i := range list {
		p := &list[i]
		group := p.Labels[r.Group]
		if group != "" && p.DeletionTimestamp == nil && p.CreationTimestamp.After(newest[group]) {
			newest[group] = p.CreationTimestamp.Time
		}
	}
	return newest
}

// pod is the first reason that holds.
func (r Rules) pod(p *corev1.Pod, newest time.Time) (reason Reason, force, left bool) {
	if p.DeletionTimestamp != nil {
		stuck := r.Now.After(p.DeletionTimestamp.Add(overdueFor)) && r.lost(p)
		return NodeGone, true, stuck
	}
	if r.held(p) {
		// Without its node there is nothing to keep.
		return NodeGone, true, r.node(p) == NodeMissing
	}
	life := r.Life(p)
	switch {
	case life == Gone:
		reason = OwnerGone
	case life == Over:
		reason = AttemptOver
	case p.CreationTimestamp.Time.Before(newest), r.Replaced != "" && p.Labels[r.Group] == r.Replaced:
		reason = Abandoned
	case r.expired(p):
		reason = Expired
	case ended(p) && r.Now.After(endOf(p).Add(finishedFor)):
		reason = Finished
	case life == Unknown && r.node(p) == NodeMissing:
		// A node that is silent may come back, and the job with it.
		reason = NodeGone
	default:
		// An owner that lives sees for itself that its node is missing.
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

// held says whether a Pod that runs is kept at present.
func (r Rules) held(p *corev1.Pod) bool {
	until, err := time.Parse(time.RFC3339, p.Annotations[r.Held])
	return err == nil && r.Now.Before(until) && !ended(p)
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

// withoutOwner says whether nobody is about to make the thing's Pod.
func (r Rules) withoutOwner(s *metav1.PartialObjectMetadata) bool {
	if life := r.Life(s); life == Gone || life == Over {
		return true
	}
	return r.expired(s) || r.Now.After(s.CreationTimestamp.Add(withoutPodFor))
}
