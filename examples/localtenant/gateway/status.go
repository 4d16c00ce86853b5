package gateway

import "time"

// State is the gateway's state in one word.
type State string

// The states of a gateway.
const (
	// Empty: no node, and none wanted.
	Empty State = "empty"
	// Booting: nodes are on their way.
	Booting State = "booting"
	// Serving: nodes are there and something runs.
	Serving State = "serving"
	// Idle: nodes are there and nothing runs; the hold is passing.
	Idle State = "idle"
	// Dropping: all nodes are being dropped.
	Dropping State = "dropping"
	// Paused: nothing is booted or dropped.
	Paused State = "paused"
)

// Status is what others may know of the gateway.
type Status struct {
	Settings
	State State `json:"state"`
	// UnfinishedPods need a node; Wanted nodes follow from them.
	UnfinishedPods int `json:"unfinishedPods"`
	Wanted         int `json:"wanted"`
	// Booting are on their way, Nodes are there.
	Booting int `json:"booting"`
	Nodes   int `json:"nodes"`
	// IdleSince is when the last Pod finished; absent while one is unfinished.
	IdleSince *time.Time `json:"idleSince,omitempty"`
	// LastError is that of the last boot, if it failed.
	LastError string `json:"lastError,omitempty"`
}

// Status gives the gateway's state.
func (g *Gateway) Status() Status {
	unfinished, nodes := g.pods.UnfinishedPods(), g.nodes.Count()
	g.mu.Lock()
	defer g.mu.Unlock()
	status := Status{
		Settings: g.settings, State: Empty, UnfinishedPods: unfinished, Wanted: wanted(g.settings, unfinished),
		Booting: g.booting, Nodes: nodes, LastError: g.failure,
	}
	if !g.idleSince.IsZero() {
		since := g.idleSince
		status.IdleSince = &since
	}
	switch {
	case g.dropping:
		status.State = Dropping
	case g.settings.Paused:
		status.State = Paused
	case g.booting > 0:
		status.State = Booting
	case unfinished > 0:
		status.State = Serving
	case nodes > 0:
		status.State = Idle
	}
	return status
}
