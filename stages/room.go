package stages

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/socialweb-computer/tenant-executor/kube/capacity"
)

// The cluster counts Pods, also one that is ending: a new one beside it has a
// node booted, and paid, for a second or two. So a Pod that is ending is waited
// for where no other node is free.
const (
	// roomBudget is how long a Pod that is ending is waited for. Its processes
	// end in about a second, and on a busy machine the cluster is told some
	// seconds later. A boot takes longer than that; a Pod that hangs must not
	// hold a job up for long.
	roomBudget = 10 * time.Second
	// roomLookBudget is how long prepare looks whether a node is free.
	roomLookBudget = time.Second
	// mostAwaited is how many are watched at once.
	mostAwaited = 3
)

// awaitRoom waits for a Pod that is ending, if the job's own Pod would have a node
// booted beside it. The list is of all Pods that have or want a node; deleted
// are those of them that were deleted since.
func (d *Driver) awaitRoom(ctx context.Context, list []corev1.Pod, deleted map[types.UID]bool) {
	now := d.clock.Now()
	ends := func(p *corev1.Pod) bool {
		return deleted[p.UID] || p.DeletionTimestamp != nil && now.Before(p.DeletionTimestamp.Add(roomBudget))
	}
	var ending []corev1.Pod
	for _, p := range jobs(list) {
		if p.Spec.NodeName != "" && ends(&p) {
			ending = append(ending, p)
		}
	}
	if len(ending) == 0 {
		return
	}
	limited, cancel := context.WithTimeout(ctx, roomLookBudget)
	defer cancel()
	nodes, err := d.nodes.List(limited)
	if err != nil {
		return // what follows meets the same error, and tells it
	}
	d.awaitAny(ctx, capacity.Freeing(nodes, jobs(list), ending))
}

// awaitAny waits until one of the Pods has ended, for a bounded time.
func (d *Driver) awaitAny(ctx context.Context, ending []corev1.Pod) {
	ctx, cancel := context.WithTimeout(ctx, roomBudget)
	defer cancel()
	var all sync.WaitGroup
	for i := range ending[:min(len(ending), mostAwaited)] {
		all.Go(func() {
			if d.ended(ctx, &ending[i]) {
				cancel()
			}
		})
	}
	all.Wait()
}
