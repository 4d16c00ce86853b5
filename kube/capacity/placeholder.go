package capacity

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Label is a label with its value.
type Label struct{ Name, Value string }

func (l Label) on(pod *corev1.Pod) bool { return pod.Labels[l.Name] == l.Value }

// Marks are the labels and annotations by which the Pods of a pool are told
// apart. Their names belong to the caller.
type Marks struct {
	// Node is on every Pod of which a node gets one: jobs and placeholders.
	Node Label
	// Job is on the Pods of jobs, Placeholder on those that hold a node.
	Job, Placeholder Label
	// Linger is on placeholders that hold a certain node for a time, Policy on
	// those that any free node will do for.
	Linger, Policy Label
	// Expires is the annotation that says from when on a placeholder may be
	// removed by anybody, Wanted the one that says until when somebody wants
	// one of the policy's. Both are times, RFC 3339.
	Expires, Wanted string
}

// Template is what placeholders look like.
type Template struct {
	Namespace string
	// Image has to wait and do nothing.
	Image         string
	PullPolicy    corev1.PullPolicy
	PullSecrets   []string
	PriorityClass string
	// NodeSelector and Tolerations are those of the jobs.
	NodeSelector map[string]string
	Tolerations  []corev1.Toleration
}

// placeholderGrace is how long a placeholder has to end, in seconds: it has
// nothing to do.
const placeholderGrace = 1

// anywhere is a placeholder that holds a node without any other Pod of the
// pool on it, whichever the scheduler finds; where there is none it waits, and
// the cluster boots one.
func (p *Pool) anywhere(name string, life, wanted time.Duration) *corev1.Pod {
	pod := p.placeholder(name, p.marks.Policy, life)
	pod.Annotations[p.marks.Wanted] = stamp(p.clock.Now().Add(wanted))
	pod.Spec.NodeSelector = p.template.NodeSelector
	pod.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{onEmptyNodes(p.marks.Node)}
	return pod
}

// onEmptyNodes lets a Pod on a node only where no other of the pool is. With
// more domains asked for than there can be, the least number of Pods in any
// counts as 0, so a skew of 1 is one Pod on an empty node. Anti-affinity would
// do the same for the placeholder, but it works both ways: jobs could not take
// a node that a placeholder holds.
func onEmptyNodes(pool Label) corev1.TopologySpreadConstraint {
	domains := int32(math.MaxInt32)
	return corev1.TopologySpreadConstraint{
		MaxSkew:           1,
		MinDomains:        &domains,
		TopologyKey:       corev1.LabelHostname,
		WhenUnsatisfiable: corev1.DoNotSchedule,
		LabelSelector:     &metav1.LabelSelector{MatchLabels: map[string]string{pool.Name: pool.Value}},
	}
}

// on is a placeholder on a certain node. It is put there without the
// scheduler: one that waited for its node would be without the kubelet that
// ends it in time, and would have the cluster boot a node.
func (p *Pool) on(node string, life time.Duration) *corev1.Pod {
	pod := p.placeholder(holdName(node), p.marks.Linger, life)
	pod.Spec.NodeName = node
	return pod
}

// holdName names the placeholder of a node, so that there is at most one.
func holdName(node string) string {
	sum := sha256.Sum256([]byte(node))
	return "placeholder-hold-" + hex.EncodeToString(sum[:8])
}

// slotName names a placeholder of the policies. Names are the same for
// everybody, so that two who want one make one.
func slotName(i int) string { return fmt.Sprintf("placeholder-warm-%d", i) }

// placeholder is what both kinds have in common. Its deadline is kept by the
// kubelet: it ends with nobody else there.
func (p *Pool) placeholder(name string, kind Label, life time.Duration) *corev1.Pod {
	deadline, grace := int64(math.Ceil(life.Seconds())), int64(placeholderGrace)
	no, yes, user := false, true, int64(65535)
	labels := map[string]string{}
	for _, l := range []Label{p.marks.Node, p.marks.Placeholder, kind} {
		labels[l.Name] = l.Value
	}
	pod := &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: p.template.Namespace, Labels: labels,
			Annotations: map[string]string{p.marks.Expires: stamp(p.clock.Now().Add(life))},
		},
		Spec: corev1.PodSpec{
			RestartPolicy:                 corev1.RestartPolicyAlways,
			ActiveDeadlineSeconds:         &deadline,
			TerminationGracePeriodSeconds: &grace,
			AutomountServiceAccountToken:  &no,
			EnableServiceLinks:            &no,
			PriorityClassName:             p.template.PriorityClass,
			Tolerations:                   p.template.Tolerations,
			Containers: []corev1.Container{{
				Name: "pause", Image: p.template.Image, ImagePullPolicy: p.template.PullPolicy,
				// Nothing is taken from a job. Written out, so that no default of
				// the namespace is filled in.
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
					corev1.ResourceCPU: resource.Quantity{}, corev1.ResourceMemory: resource.Quantity{},
				}},
				SecurityContext: &corev1.SecurityContext{
					AllowPrivilegeEscalation: &no, ReadOnlyRootFilesystem: &yes, RunAsNonRoot: &yes, RunAsUser: &user, RunAsGroup: &user,
					Capabilities:   &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
					SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
				},
			}},
		},
	}
	for _, name := range p.template.PullSecrets {
		pod.Spec.ImagePullSecrets = append(pod.Spec.ImagePullSecrets, corev1.LocalObjectReference{Name: name})
	}
	return pod
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// passed says whether the time in an annotation has come. What is no time has
// come: nobody keeps such a Pod.
func passed(pod *corev1.Pod, annotation string, now time.Time) bool {
	t, err := time.Parse(time.RFC3339, pod.Annotations[annotation])
	return err != nil || !now.Before(t)
}
