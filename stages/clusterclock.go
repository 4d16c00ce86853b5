package stages

import (
	"time"

	"github.com/socialweb-computer/tenant-executor/kube/cluster"
	"github.com/socialweb-computer/tenant-executor/kube/pods"
)

// clusterClock tells the cluster's time. Whatever is stamped into the cluster, to
// be judged there by drivers on other hosts as well, is stamped and judged by it:
// a host whose clock is wrong must not take another's Pod for one that is late.
type clusterClock struct {
	pods.Clock
	cluster *cluster.Client
}

// Now is the cluster's time, as far as it has told.
func (c clusterClock) Now() time.Time { return c.cluster.Now(c.Clock.Now()) }

// clusterNow is the cluster's time.
func (d *Driver) clusterNow() time.Time { return clusterClock{d.clock, d.cluster}.Now() }
