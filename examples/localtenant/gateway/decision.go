package gateway

import "time"

// View is what the gateway sees at one moment.
type View struct {
	// Unfinished are the Pods that need a node.
	Unfinished int
	// Nodes are there, ready or not; Booting are on their way.
	Nodes   int
	Booting int
	// IdleSince is when the last Pod finished; zero while one is unfinished.
	IdleSince time.Time
}

// Decision is what to do about a view.
type Decision struct {
	// Wanted nodes, by the count of Pods alone.
	Wanted int
	// Boot that many more nodes.
	Boot int
	// Drop all nodes.
	Drop bool
	// IdleSince is the view's, or now when idleness has just begun.
	IdleSince time.Time
	// Again is when to decide again if nothing changes before; zero for never.
	Again time.Time
}

// Decide is the gateway's rule. Nodes are never removed one by one: either
// something runs, and all stay, or nothing has run for the hold, and all go.
func Decide(settings Settings, view View, now time.Time) Decision {
	decision := Decision{Wanted: wanted(settings, view.Unfinished)}
	if view.Unfinished == 0 {
		decision.IdleSince = view.IdleSince
		if decision.IdleSince.IsZero() {
			decision.IdleSince = now
		}
	}
	if settings.Paused {
		return decision
	}
	if view.Unfinished > 0 {
		decision.Boot = max(0, decision.Wanted-view.Nodes-view.Booting)
		return decision
	}
	// A machine that boots cannot be given back before it is there.
	if view.Nodes == 0 || view.Booting > 0 {
		return decision
	}
	due := decision.IdleSince.Add(settings.Hold.Duration)
	if now.Before(due) {
		decision.Again = due
		return decision
	}
	decision.Drop = true
	return decision
}

// wanted is Pods by Pods-per-node, rounded up, and at most the ceiling.
func wanted(settings Settings, unfinished int) int {
	nodes := (unfinished + settings.PodsPerNode - 1) / settings.PodsPerNode
	return min(nodes, settings.Ceiling)
}
