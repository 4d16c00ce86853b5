package stages

import (
	"context"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/socialweb-computer/tenant-executor/executor/pod"
	"github.com/socialweb-computer/tenant-executor/kube/capacity"
	"github.com/socialweb-computer/tenant-executor/kube/pods"
)

// Overview is what there is on the cluster, as a person looks at it.
type Overview struct {
	Jobs         []JobView         `json:"jobs"`
	Placeholders []PlaceholderView `json:"placeholders"`
	Nodes        []NodeView        `json:"nodes"`
	// Narrow is whether only the namespaces of the jobs shown were looked at: the
	// driver may not list the Pods of all. Nodes may carry more, then.
	Narrow bool `json:"narrow"`
}

// JobPhase is how far a job's Pod is. The texts are stable: scripts read them.
type JobPhase string

// The phases of a job's Pod.
const (
	JobWaiting  JobPhase = "waiting"
	JobStarting JobPhase = "starting"
	JobRunning  JobPhase = "running"
	JobHeld     JobPhase = "held"
	JobEnding   JobPhase = "ending"
	JobEnded    JobPhase = "ended"
)

// JobView is one job's Pod.
type JobView struct {
	ID        int64     `json:"id"`
	Name      string    `json:"name"`
	Project   string    `json:"project"`
	URL       string    `json:"url"`
	Namespace string    `json:"namespace"`
	Pod       string    `json:"pod"`
	Runner    string    `json:"runner"`
	Node      string    `json:"node"`
	Phase     JobPhase  `json:"phase"`
	Made      time.Time `json:"made"`
	// Stage is the stage that runs now, nil if none does.
	Stage *StageView `json:"stage"`
	// Waits is what the job waits for, or why it ended; "" where there is
	// nothing to say.
	Waits string `json:"waits"`
	// Held is until when the Pod of a failed job is kept, nil for others.
	Held *time.Time `json:"held,omitempty"`
	// Expires is when the Pod has no business any more.
	Expires *time.Time `json:"expires,omitempty"`
}

// PlaceholderView is a Pod that holds a node for jobs to come.
type PlaceholderView struct {
	Namespace string     `json:"namespace"`
	Name      string     `json:"name"`
	Hold      string     `json:"hold"`
	Node      string     `json:"node"`
	Ready     bool       `json:"ready"`
	Made      time.Time  `json:"made"`
	Expires   *time.Time `json:"expires,omitempty"`
}

// NodeView is one node.
type NodeView struct {
	Name  string `json:"name"`
	Ready bool   `json:"ready"`
	// Reason is why it is not ready.
	Reason string    `json:"reason,omitempty"`
	Joined time.Time `json:"joined"`
	// Carries is the job's Pod or the placeholder on the node, "" if it is free
	// as far as the Pods that were looked at tell. Of a Pod in a namespace that was
	// not asked for it is what the Pod is and the namespace.
	Carries string `json:"carries"`
	CPU     string `json:"cpu"`
	Memory  string `json:"memory"`
}

// Overview looks at the cluster. The stages that run are asked of the Pods
// themselves; a Pod that does not answer soon is shown without.
func (d *Driver) Overview(ctx context.Context) (Overview, error) {
	chosen, err := d.jobPods(ctx)
	if err != nil {
		return Overview{}, err
	}
	placeholders, err := d.placeholderPods(ctx)
	if err != nil {
		return Overview{}, err
	}
	nodes, err := d.nodes.List(ctx)
	if err != nil {
		return Overview{}, d.requestFailure(err)
	}
	sight, err := d.sight(ctx, chosen, placeholders)
	if err != nil {
		return Overview{}, err
	}
	sight.nodes = nodes
	o := Overview{Jobs: []JobView{}, Placeholders: []PlaceholderView{}, Nodes: []NodeView{}, Narrow: sight.narrow}
	for i := range chosen {
		if d.shows(&chosen[i]) {
			o.Jobs = append(o.Jobs, d.jobView(&chosen[i], sight))
		}
	}
	for i := range placeholders {
		o.Placeholders = append(o.Placeholders, placeholderView(&placeholders[i]))
	}
	for i := range nodes {
		o.Nodes = append(o.Nodes, sight.nodeView(&nodes[i]))
	}
	d.addStages(ctx, o.Jobs)
	return o, nil
}

// jobPods are the Pods where the Target says, of every runner; a job that it names
// is the only one.
func (d *Driver) jobPods(ctx context.Context) ([]corev1.Pod, error) {
	if d.target.Name != "" {
		found, err := d.targetPod(ctx)
		if err != nil {
			return nil, err
		}
		return []corev1.Pod{*found}, nil
	}
	return d.listIn(ctx, pod.SelectorAll())
}

// shows says whether a job is one of the runner that the Target names.
func (d *Driver) shows(p *corev1.Pod) bool {
	return d.target.Name != "" || d.target.Runner == "" || p.Labels[pod.LabelRunner] == pod.LabelValue(d.target.Runner)
}

// placeholderPods are all placeholders. They belong to no runner.
func (d *Driver) placeholderPods(ctx context.Context) ([]corev1.Pod, error) {
	if d.target.Name != "" {
		return nil, nil
	}
	return d.listIn(ctx, pod.PlaceholderSelector())
}

func (d *Driver) jobView(p *corev1.Pod, s *sight) JobView {
	told := pod.Tell(p.Annotations)
	id, _ := strconv.ParseInt(p.Labels[pod.LabelJobID], 10, 64) // 0 where the label is not ours
	v := JobView{
		ID: id, Name: told.Name, Project: told.Project, URL: told.URL,
		Namespace: p.Namespace, Pod: p.Name, Runner: p.Labels[pod.LabelRunner], Node: p.Spec.NodeName,
		Made: p.CreationTimestamp.Time, Expires: stampOf(p, pod.AnnotationExpires),
	}
	state := stateOf(p)
	v.Phase = map[pods.Phase]JobPhase{
		pods.Unscheduled: JobWaiting, pods.Starting: JobStarting, pods.Running: JobRunning, pods.Ended: JobEnded,
	}[state.Phase]
	v.Waits = state.Detail
	switch v.Phase {
	case JobWaiting:
		v.Waits = d.whyNoNode(p, state, s)
	case JobStarting:
		if v.Waits == "" {
			v.Waits = "images and containers"
		}
	}
	if v.Held = stampOf(p, pod.AnnotationHeld); v.Held != nil && v.Phase == JobRunning {
		v.Phase = JobHeld
	}
	if p.DeletionTimestamp != nil {
		v.Phase = JobEnding
		if len(p.Finalizers) > 0 {
			v.Waits = "its finalizers: " + strings.Join(p.Finalizers, ", ")
		}
	}
	return v
}

// whyNoNode is why no node has taken a job's Pod, in a few words; "" where nobody
// has looked.
func (d *Driver) whyNoNode(p *corev1.Pod, state pods.State, s *sight) string {
	if s == nil {
		return ""
	}
	w := d.nodeWait(p, state.Verdict, s.outlook(p), d.clusterNow().Sub(p.CreationTimestamp.Time))
	if w.reason == capacity.Booting {
		return "a node to boot: " + w.words() + w.place()
	}
	return "a node: " + w.words() + w.place()
}

func placeholderView(p *corev1.Pod) PlaceholderView {
	return PlaceholderView{
		Namespace: p.Namespace, Name: p.Name, Hold: p.Labels[pod.LabelHold], Node: p.Spec.NodeName,
		Ready: pods.StateOf(p).Phase == pods.Running, Made: p.CreationTimestamp.Time, Expires: stampOf(p, pod.AnnotationExpires),
	}
}

// stampOf is the time in an annotation, nil where there is none.
func stampOf(p *corev1.Pod, annotation string) *time.Time {
	at, err := time.Parse(time.RFC3339, p.Annotations[annotation])
	if err != nil {
		return nil
	}
	return &at
}

// JobNames are the jobs that there are, without their stages and without what
// they wait for.
func (d *Driver) JobNames(ctx context.Context) ([]JobView, error) {
	list, err := d.listFor(ctx, pod.SelectorAll())
	if err != nil {
		return nil, err
	}
	var all []JobView
	for i := range list {
		all = append(all, d.jobView(&list[i], nil))
	}
	return all, nil
}
