package node

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/socialweb-computer/tenant-executor/examples/localtenant/network"
)

// ErrFault says that a boot has failed because it was asked to.
var ErrFault = errors.New("failed on demand (see `localtenant fault show`)")

// readyPause lies between two looks whether a node is ready.
const readyPause = 50 * time.Millisecond

// takeFaults takes the faults that wait for the next node. A boot that fails
// leaves nothing of it.
func (m *Manager) takeFaults(n *Node) error {
	if m.options.Faults.TakeFailingBoot() {
		m.mu.Lock()
		delete(m.nodes, n.name)
		m.mu.Unlock()
		m.options.Changed()
		return fmt.Errorf("boot node %s: %w", n.name, ErrFault)
	}
	n.withoutNetwork = m.options.Faults.TakeNeverReady()
	n.unreachable = m.options.Faults.Unreachable()
	return nil
}

// openLater lets the kubelet be reached some time after the node has become
// ready.
func (m *Manager) openLater(n *Node) {
	gone := n.first().Done()
	tick := time.NewTicker(readyPause)
	defer tick.Stop()
	for !m.options.Cluster.NodeReady(n.name) {
		select {
		case <-gone:
			return
		case <-tick.C:
		}
	}
	select {
	case <-gone:
		return
	case <-time.After(n.unreachable):
	}
	err := network.OpenPort(context.Background(), n.first().PID(), kubeletPort)
	switch {
	case err == nil:
		m.options.Log.Info("kubelet can be reached from now on", "name", n.name)
	case n.alive():
		m.options.Log.Error("kubelet stays out of reach", "name", n.name, "error", err)
	}
}
