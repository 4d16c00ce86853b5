package node

import (
	"fmt"
	"time"
)

// State is a node's state in one word.
type State string

// The states of a node.
const (
	// Starting: its processes start, or it has not become ready yet.
	Starting State = "starting"
	// Ready: the cluster sees it as ready.
	Ready State = "ready"
	// NotReady: it was ready and is no more.
	NotReady State = "not-ready"
	// Killed: its processes are gone, its Node object is there.
	Killed State = "killed"
	// Removing: it is being taken down.
	Removing State = "removing"
)

// Status is what others may know of a node.
type Status struct {
	Name  string `json:"name"`
	State State  `json:"state"`
	// Cut says that its cable is pulled.
	Cut bool `json:"cut"`
	// PID is the node's first process, as the host sees it; 0 when killed.
	PID  int    `json:"pid"`
	IP   string `json:"ip"`
	Pods string `json:"podRange"`
	// Since is when it was started.
	Since  time.Time `json:"since"`
	LogDir string    `json:"logDir"`
	Link   string    `json:"link"`
}

func (n *Node) status(ready bool) Status {
	n.mu.Lock()
	defer n.mu.Unlock()
	status := Status{
		Name: n.name, State: Starting, Cut: n.cut, IP: n.plan.Node(n.slot).String(), Pods: n.plan.Pods(n.slot).String(),
		Since: n.started, LogDir: n.tenant.NodeLogDir(n.name), Link: n.tenant.Link(n.slot),
	}
	n.wasReady = n.wasReady || ready
	switch {
	case n.leaving:
		status.State = Removing
	case n.process != nil && !n.process.Running():
		status.State = Killed
	case ready:
		status.State = Ready
	case n.wasReady:
		status.State = NotReady
	}
	if n.process != nil && n.process.Running() {
		status.PID = n.process.PID()
	}
	return status
}

// leave marks a node as on its way out. It refuses one that is on its way
// already, or that is not there yet.
func (n *Node) leave() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case n.leaving:
		return fmt.Errorf("%w: %q is being removed already", ErrBusy, n.name)
	case !n.booted:
		return fmt.Errorf("%w: %q still starts its processes; try again in a moment", ErrBusy, n.name)
	}
	n.leaving = true
	return nil
}

func (n *Node) isLeaving() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.leaving
}

// setBooted ends the boot; failed says that the node is on its way out.
func (n *Node) setBooted(failed bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.booted, n.leaving = !failed, failed
}
