package settings

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Scheduling is where a Pod may run, and what may move it.
type Scheduling struct {
	NodeSelector        map[string]string `toml:"node_selector" example:"kubernetes.io/arch=amd64" doc:"Labels that a node must have."`
	NodeTolerations     map[string]string `toml:"node_tolerations" example:"dedicated=NoSchedule" doc:"Taints of nodes that the Pods bear: key, or key=value in one, and the effect: NoSchedule, PreferNoSchedule, NoExecute, or nothing for all of them."`
	PriorityClassName   string            `toml:"priority_class_name" example:"ci-jobs" doc:"Priority class of the Pods. Its value must not be below that of warm.pause_pod_priority_class_name."`
	SchedulerName       string            `toml:"scheduler_name" example:"default-scheduler" doc:"Scheduler of the Pods. It has to keep anti-affinity, or jobs could share a node."`
	PodDisruptionBudget *bool             `toml:"pod_disruption_budget" example:"true" doc:"Whether each Pod gets a PodDisruptionBudget, so that a drain of its node waits for the job's end."`
	Affinity            Affinity          `toml:"affinity" doc:"Further rules of where Pods run. They are added to the one of this driver, that each job has a node of its own, and cannot weaken it."`
}

// Affinity are rules of where Pods run.
type Affinity struct {
	NodeAffinity    *NodeAffinity `toml:"node_affinity" doc:"Which nodes."`
	PodAffinity     *PodAffinity  `toml:"pod_affinity" doc:"Beside which Pods. A rule that wants another job's Pod on the node is never met."`
	PodAntiAffinity *PodAffinity  `toml:"pod_anti_affinity" doc:"Away from which Pods."`
}

// NodeAffinity are rules about nodes.
type NodeAffinity struct {
	Required  *NodeSelector       `toml:"required_during_scheduling_ignored_during_execution" doc:"What a node must fulfil."`
	Preferred []PreferredNodeTerm `toml:"preferred_during_scheduling_ignored_during_execution" doc:"What nodes are better for."`
}

// NodeSelector is fulfilled by nodes of which one term holds.
type NodeSelector struct {
	Terms []NodeTerm `toml:"node_selector_terms" doc:"One of these has to hold."`
}

// PreferredNodeTerm is what makes a node better.
type PreferredNodeTerm struct {
	Weight     int32    `toml:"weight" example:"10" doc:"How much better, from 1 to 100."`
	Preference NodeTerm `toml:"preference" doc:"What has to hold."`
}

// NodeTerm holds where all of it does.
type NodeTerm struct {
	MatchExpressions []Requirement `toml:"match_expressions" doc:"Rules about a node's labels."`
	MatchFields      []FieldRule   `toml:"match_fields" doc:"Rules about a node's fields. Kubernetes knows the one field metadata.name."`
}

// Requirement is a rule about a label.
type Requirement struct {
	Key      string   `toml:"key" example:"example.com/disk" doc:"Name of the label."`
	Operator string   `toml:"operator" example:"In" doc:"In, NotIn, Exists or DoesNotExist; for nodes Gt and Lt as well."`
	Values   []string `toml:"values" example:"ssd" doc:"Values for the operator; none for Exists and DoesNotExist."`
}

// FieldRule is a rule about a field of a node.
type FieldRule struct {
	Key      string   `toml:"key" example:"metadata.name" doc:"Name of the field."`
	Operator string   `toml:"operator" example:"NotIn" doc:"In or NotIn."`
	Values   []string `toml:"values" example:"node-1" doc:"One value."`
}

// PodAffinity are rules about other Pods.
type PodAffinity struct {
	Required  []PodTerm         `toml:"required_during_scheduling_ignored_during_execution" doc:"What must hold."`
	Preferred []WeightedPodTerm `toml:"preferred_during_scheduling_ignored_during_execution" doc:"What nodes are better for."`
}

// WeightedPodTerm is what makes a node better.
type WeightedPodTerm struct {
	Weight int32   `toml:"weight" example:"10" doc:"How much better, from 1 to 100."`
	Term   PodTerm `toml:"pod_affinity_term" doc:"What has to hold."`
}

// PodTerm names Pods, and what counts as one place.
type PodTerm struct {
	LabelSelector     *LabelSelector `toml:"label_selector" doc:"Labels of the Pods."`
	NamespaceSelector *LabelSelector `toml:"namespace_selector" doc:"Labels of the namespaces that the Pods are in."`
	Namespaces        []string       `toml:"namespaces" example:"databases" doc:"Names of the namespaces that the Pods are in. Without these and a namespace_selector it is the job's own."`
	TopologyKey       string         `toml:"topology_key" example:"topology.kubernetes.io/zone" doc:"Label of nodes whose value is the place."`
	MatchLabelKeys    []string       `toml:"match_label_keys" example:"team" doc:"Labels that those Pods have as the job's Pod has them."`
	MismatchLabelKeys []string       `toml:"mismatch_label_keys" example:"track" doc:"Labels that those Pods have otherwise than the job's Pod."`
}

// LabelSelector chooses by labels.
type LabelSelector struct {
	MatchLabels      map[string]string `toml:"match_labels" example:"app=cache" doc:"Labels with their values."`
	MatchExpressions []Requirement     `toml:"match_expressions" doc:"Rules about labels."`
}

func (s Scheduling) check() []error {
	all := checkLabels("kubernetes.node_selector", s.NodeSelector)
	for taint, effect := range s.NodeTolerations {
		key, value, _ := strings.Cut(taint, "=")
		if key != "" {
			all = append(all, checkLabels("kubernetes.node_tolerations", map[string]string{key: value})...)
		} else if value != "" {
			all = append(all, fmt.Errorf("kubernetes.node_tolerations has %q: a value needs a key before it", taint))
		}
		if !slices.Contains([]string{"", "NoSchedule", "PreferNoSchedule", "NoExecute"}, effect) {
			all = append(all, fmt.Errorf("kubernetes.node_tolerations has the effect %q: use NoSchedule, PreferNoSchedule, NoExecute or \"\" for all", effect))
		}
	}
	for _, name := range []struct{ key, value string }{{"priority_class_name", s.PriorityClassName}, {"scheduler_name", s.SchedulerName}} {
		if name.value == "" {
			continue
		}
		if problems := validation.IsDNS1123Subdomain(name.value); len(problems) > 0 {
			all = append(all, fmt.Errorf("kubernetes.%s is %q: %s", name.key, name.value, strings.Join(problems, "; ")))
		}
	}
	return append(all, s.Affinity.check()...)
}

func (a Affinity) check() []error {
	var all []error
	const key = "kubernetes.affinity."
	if n := a.NodeAffinity; n != nil {
		for _, term := range n.Preferred {
			all = append(all, checkWeight(key+"node_affinity", term.Weight))
			all = append(all, term.Preference.check(key+"node_affinity")...)
		}
		if n.Required != nil {
			if len(n.Required.Terms) == 0 {
				all = append(all, fmt.Errorf("%snode_affinity requires something without a node_selector_terms entry: no node would do", key))
			}
			for _, term := range n.Required.Terms {
				all = append(all, term.check(key+"node_affinity")...)
			}
		}
	}
	for _, side := range []struct {
		key string
		p   *PodAffinity
	}{{key + "pod_affinity", a.PodAffinity}, {key + "pod_anti_affinity", a.PodAntiAffinity}} {
		if side.p == nil {
			continue
		}
		for _, term := range side.p.Required {
			all = append(all, term.check(side.key)...)
		}
		for _, weighted := range side.p.Preferred {
			all = append(all, checkWeight(side.key, weighted.Weight))
			all = append(all, weighted.Term.check(side.key)...)
		}
	}
	return all
}

func checkWeight(key string, weight int32) error {
	if weight < 1 || weight > 100 {
		return fmt.Errorf("%s has the weight %d: it has to be from 1 to 100", key, weight)
	}
	return nil
}

func (t NodeTerm) check(key string) []error {
	all := checkRules(key, t.MatchExpressions, "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
	for _, field := range t.MatchFields {
		if field.Key != "metadata.name" || field.Operator != "In" && field.Operator != "NotIn" || len(field.Values) != 1 {
			all = append(all, fmt.Errorf("%s has a rule in match_fields about %q: Kubernetes knows metadata.name with In or NotIn and one value", key, field.Key))
		}
	}
	return all
}

func (t PodTerm) check(key string) []error {
	var all []error
	if len(validation.IsQualifiedName(t.TopologyKey)) > 0 {
		all = append(all, fmt.Errorf("%s has the topology_key %q: write a label of nodes, such as kubernetes.io/hostname", key, t.TopologyKey))
	}
	for _, namespace := range t.Namespaces {
		if len(validation.IsDNS1123Label(namespace)) > 0 {
			all = append(all, fmt.Errorf("%s has the namespace %q, which is no name of one", key, namespace))
		}
	}
	for _, selector := range []*LabelSelector{t.LabelSelector, t.NamespaceSelector} {
		if selector != nil {
			all = append(all, checkLabels(key, selector.MatchLabels)...)
			all = append(all, checkRules(key, selector.MatchExpressions, "In", "NotIn", "Exists", "DoesNotExist")...)
		}
	}
	return all
}

func checkRules(key string, rules []Requirement, operators ...string) []error {
	var all []error
	for _, rule := range rules {
		if len(validation.IsQualifiedName(rule.Key)) > 0 {
			all = append(all, fmt.Errorf("%s has a rule about %q, which is no name of a label", key, rule.Key))
		}
		none := rule.Operator == "Exists" || rule.Operator == "DoesNotExist"
		switch {
		case !slices.Contains(operators, rule.Operator):
			all = append(all, fmt.Errorf("%s has the operator %q: use one of %s", key, rule.Operator, strings.Join(operators, ", ")))
		case none != (len(rule.Values) == 0):
			all = append(all, fmt.Errorf("%s has a rule about %q with %d values: In, NotIn, Gt and Lt need some, Exists and DoesNotExist none", key, rule.Key, len(rule.Values)))
		}
	}
	return all
}
