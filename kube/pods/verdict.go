package pods

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Verdict is why the scheduler has not given a Pod a node yet.
type Verdict struct {
	// Gates keep the scheduler from looking at the Pod at all.
	Gates []string
	// Obstacles are what is wrong with the nodes that there are.
	Obstacles []Obstacle
	// Words are about the Pod and not about nodes; "" for none.
	Words string
}

// Obstacle is why some nodes do not take a Pod.
type Obstacle struct {
	Kind  ObstacleKind
	Nodes int
	// Words are the scheduler's.
	Words string
}

// ObstacleKind sorts obstacles by what removes them.
type ObstacleKind int

const (
	// Unsuitable nodes stay so: they are not what the Pod asks for.
	Unsuitable ObstacleKind = iota
	// Taken nodes carry a Pod that does not share them.
	Taken
	// Crowded nodes have not enough left, or never had.
	Crowded
	// Tainted nodes are not ready yet, or kept from Pods like this one.
	Tainted
)

// Count is how many nodes have obstacles of a kind, at least: one node can lack
// several resources.
func (v Verdict) Count(kind ObstacleKind) int {
	count := 0
	for _, o := range v.Obstacles {
		switch {
		case o.Kind != kind:
		case kind == Crowded:
			count = max(count, o.Nodes)
		default:
			count += o.Nodes
		}
	}
	return count
}

// Unfit is what the scheduler says of nodes that are not just taken.
func (v Verdict) Unfit() string {
	var all []string
	for _, o := range v.Obstacles {
		if o.Kind != Taken {
			all = append(all, fmt.Sprintf("%d %s", o.Nodes, o.Words))
		}
	}
	return strings.Join(all, ", ")
}

// verdict reads the condition PodScheduled. Its message is made in
// pkg/scheduler/framework (FitError) of Kubernetes.
func verdict(pod *corev1.Pod) Verdict {
	var v Verdict
	for _, gate := range pod.Spec.SchedulingGates {
		v.Gates = append(v.Gates, gate.Name)
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason != corev1.PodReasonSchedulingGated {
			v.Obstacles, v.Words = obstacles(c.Message)
		}
	}
	return v
}

// available is how a message about nodes begins.
var available = regexp.MustCompile(`^\d+/(\d+) nodes are available`)

// noNodes is the message of a cluster without nodes (pkg/scheduler/scheduler.go).
const noNodes = "no nodes available to schedule pods"

func obstacles(message string) (all []Obstacle, words string) {
	m := available.FindStringSubmatch(message)
	if m == nil {
		if message == noNodes {
			return nil, ""
		}
		return nil, message
	}
	rest := strings.TrimPrefix(strings.TrimPrefix(message, m[0]), ":")
	// What would become possible by removing others is no reason to wait.
	rest, _, _ = strings.Cut(rest, ". preemption: ")
	rest = strings.TrimSuffix(strings.TrimSpace(rest), ".")
	if total, _ := strconv.Atoi(m[1]); total == 0 || rest == "" {
		return nil, ""
	}
	for piece := range strings.SplitSeq(rest, ", ") {
		count, reason, _ := strings.Cut(piece, " ")
		n, err := strconv.Atoi(count)
		switch {
		case err == nil:
			all = append(all, Obstacle{obstacleKind(reason), n, reason})
		case len(all) == 0:
			return nil, rest // of no node in particular
		default:
			last := &all[len(all)-1]
			last.Words += ", " + piece
		}
	}
	return all, ""
}

func obstacleKind(reason string) ObstacleKind {
	has := func(words ...string) bool {
		for _, w := range words {
			if strings.Contains(reason, w) {
				return true
			}
		}
		return false
	}
	switch {
	case has("anti-affinity rules"):
		return Taken
	case has("Insufficient ", "Too many pods", "free ports", "exceed max volume count", "enough free storage"):
		return Crowded
	case has("untolerated taint", "taints that the pod didn't tolerate", "were unschedulable", "unknown conditions"):
		return Tainted
	}
	return Unsuitable
}
