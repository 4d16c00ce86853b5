package stages

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/socialweb-computer/tenant-executor/executor/pod"
	"github.com/socialweb-computer/tenant-executor/kube/capacity"
	"github.com/socialweb-computer/tenant-executor/kube/pods"
)

// sight is what a look at the cluster has seen of the Pods that take nodes.
type sight struct {
	nodes []corev1.Node
	// all are the Pods of every namespace, or those that were asked for where
	// narrow says so.
	all    []corev1.Pod
	narrow bool
	// asked are the namespaces that a person looks at.
	asked map[string]bool
	// everywhere is whether a person asked for all namespaces, so that names need
	// theirs.
	everywhere bool
}

// sight looks into all namespaces, beside the Pods that were asked for: a job
// waits for the nodes that others have, wherever they are.
func (d *Driver) sight(ctx context.Context, jobs, placeholders []corev1.Pod) (*sight, error) {
	s := &sight{asked: map[string]bool{d.place(): true}, everywhere: d.target.All}
	for _, list := range [][]corev1.Pod{jobs, placeholders} {
		for i := range list {
			s.asked[list[i].Namespace] = true
		}
		s.all = append(s.all, list...)
	}
	if d.target.All && d.target.Name == "" {
		return s, nil // that is all there is
	}
	all, err := d.pods.List(ctx, metav1.NamespaceAll, pod.SelectorTakers())
	switch {
	case apierrors.IsForbidden(err):
		s.narrow = true
		if all, err = d.listIn(ctx, pod.SelectorTakers()); err != nil {
			return nil, err
		}
	case err != nil:
		return nil, d.requestFailure(err)
	}
	s.all = all
	return s, nil
}

// outlook is how the cluster stands for a job's Pod.
func (s *sight) outlook(p *corev1.Pod) capacity.Outlook {
	var jobs []corev1.Pod
	for i := range s.all {
		if s.all[i].Labels[pod.LabelComponent] == pod.ComponentJob {
			jobs = append(jobs, s.all[i])
		}
	}
	o := capacity.OutlookOf(s.nodes, jobs, p.UID)
	o.Narrow = s.narrow
	return o
}

// nodeView is a node with what it carries of the Pods that take nodes: a job before
// the placeholder that it displaces.
func (s *sight) nodeView(n *corev1.Node) NodeView {
	h := capacity.HealthOf(n)
	v := NodeView{
		Name: n.Name, Ready: h.Ready, Joined: h.Joined,
		CPU: n.Status.Allocatable.Cpu().String(), Memory: n.Status.Allocatable.Memory().String(),
	}
	if !h.Ready {
		v.Reason = h.Reason
	}
	job := false
	for i := range s.all {
		p := &s.all[i]
		if p.Spec.NodeName != n.Name || stateOf(p).Phase == pods.Ended || job {
			continue
		}
		v.Carries, job = s.nameOf(p), p.Labels[pod.LabelComponent] == pod.ComponentJob
	}
	return v
}

// nameOf is a Pod as a person who looks may know it.
func (s *sight) nameOf(p *corev1.Pod) string {
	switch {
	case s.everywhere:
		return p.Namespace + "/" + p.Name
	case s.asked[p.Namespace]:
		return p.Name
	case p.Labels[pod.LabelComponent] == pod.ComponentJob:
		return "a job of namespace " + p.Namespace
	}
	return "a placeholder of namespace " + p.Namespace
}
