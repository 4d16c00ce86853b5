package pod

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/socialweb-computer/tenant-executor/executor/settings"
)

// schedule says on which nodes the Pod may run.
func (b *builder) schedule() error {
	s := b.Settings.Scheduling
	b.Pod.Spec.NodeSelector = s.NodeSelector
	b.Pod.Spec.Tolerations = Tolerations(s.NodeTolerations)
	b.Pod.Spec.PriorityClassName = s.PriorityClassName
	b.Pod.Spec.SchedulerName = s.SchedulerName
	b.Pod.Spec.Affinity = affinity(s.Affinity)
	return nil
}

// oneJobANode keeps job Pods on nodes of their own, in whichever namespaces
// they are. A term without a namespace selector would see its own alone.
func oneJobANode() corev1.PodAffinityTerm {
	return corev1.PodAffinityTerm{
		LabelSelector:     &metav1.LabelSelector{MatchLabels: map[string]string{LabelComponent: ComponentJob}},
		NamespaceSelector: &metav1.LabelSelector{},
		TopologyKey:       corev1.LabelHostname,
	}
}

// Tolerations are those of the settings: key or key=value, and the effect. An
// empty key bears every taint.
func Tolerations(taints map[string]string) []corev1.Toleration {
	var all []corev1.Toleration
	for _, taint := range slices.Sorted(maps.Keys(taints)) {
		key, value, valued := strings.Cut(taint, "=")
		t := corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffect(taints[taint])}
		if valued {
			t.Operator, t.Value = corev1.TolerationOpEqual, value
		}
		all = append(all, t)
	}
	return all
}

// affinity adds the rules of the settings to the one of the driver. Required
// rules of a kind must all hold, so none of them can weaken it.
func affinity(s settings.Affinity) *corev1.Affinity {
	away := podAntiAffinity(s.PodAntiAffinity)
	away.RequiredDuringSchedulingIgnoredDuringExecution = append(
		[]corev1.PodAffinityTerm{oneJobANode()}, away.RequiredDuringSchedulingIgnoredDuringExecution...)
	return &corev1.Affinity{
		NodeAffinity:    nodeAffinity(s.NodeAffinity),
		PodAffinity:     podAffinity(s.PodAffinity),
		PodAntiAffinity: away,
	}
}

func nodeAffinity(s *settings.NodeAffinity) *corev1.NodeAffinity {
	if s == nil {
		return nil
	}
	all := &corev1.NodeAffinity{}
	if s.Required != nil {
		all.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{}
		for _, term := range s.Required.Terms {
			all.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms = append(
				all.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms, nodeTerm(term))
		}
	}
	for _, term := range s.Preferred {
		all.PreferredDuringSchedulingIgnoredDuringExecution = append(all.PreferredDuringSchedulingIgnoredDuringExecution,
			corev1.PreferredSchedulingTerm{Weight: term.Weight, Preference: nodeTerm(term.Preference)})
	}
	return all
}

func nodeTerm(s settings.NodeTerm) corev1.NodeSelectorTerm {
	var term corev1.NodeSelectorTerm
	for _, r := range s.MatchExpressions {
		term.MatchExpressions = append(term.MatchExpressions, corev1.NodeSelectorRequirement{
			Key: r.Key, Operator: corev1.NodeSelectorOperator(r.Operator), Values: r.Values})
	}
	for _, r := range s.MatchFields {
		term.MatchFields = append(term.MatchFields, corev1.NodeSelectorRequirement{
			Key: r.Key, Operator: corev1.NodeSelectorOperator(r.Operator), Values: r.Values})
	}
	return term
}

func podAffinity(s *settings.PodAffinity) *corev1.PodAffinity {
	if s == nil {
		return nil
	}
	return &corev1.PodAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution:  podTerms(s.Required),
		PreferredDuringSchedulingIgnoredDuringExecution: weightedTerms(s.Preferred),
	}
}

func podAntiAffinity(s *settings.PodAffinity) *corev1.PodAntiAffinity {
	if s == nil {
		return &corev1.PodAntiAffinity{}
	}
	return &corev1.PodAntiAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution:  podTerms(s.Required),
		PreferredDuringSchedulingIgnoredDuringExecution: weightedTerms(s.Preferred),
	}
}

func podTerms(terms []settings.PodTerm) []corev1.PodAffinityTerm {
	var all []corev1.PodAffinityTerm
	for _, term := range terms {
		all = append(all, podTerm(term))
	}
	return all
}

func weightedTerms(terms []settings.WeightedPodTerm) []corev1.WeightedPodAffinityTerm {
	var all []corev1.WeightedPodAffinityTerm
	for _, term := range terms {
		all = append(all, corev1.WeightedPodAffinityTerm{Weight: term.Weight, PodAffinityTerm: podTerm(term.Term)})
	}
	return all
}

func podTerm(s settings.PodTerm) corev1.PodAffinityTerm {
	return corev1.PodAffinityTerm{
		LabelSelector:     labelSelector(s.LabelSelector),
		NamespaceSelector: labelSelector(s.NamespaceSelector),
		Namespaces:        s.Namespaces,
		TopologyKey:       s.TopologyKey,
		MatchLabelKeys:    s.MatchLabelKeys,
		MismatchLabelKeys: s.MismatchLabelKeys,
	}
}

func labelSelector(s *settings.LabelSelector) *metav1.LabelSelector {
	if s == nil {
		return nil
	}
	selector := &metav1.LabelSelector{MatchLabels: s.MatchLabels}
	for _, r := range s.MatchExpressions {
		selector.MatchExpressions = append(selector.MatchExpressions, metav1.LabelSelectorRequirement{
			Key: r.Key, Operator: metav1.LabelSelectorOperator(r.Operator), Values: r.Values})
	}
	return selector
}
