package stages

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/socialweb-computer/tenant-executor/kube/capacity"
	"github.com/socialweb-computer/tenant-executor/kube/crash"
)

// The cluster counts Pods, also one that is ending: a new one beside it has a
// node booted, and paid, for a second or two. So a Pod that is ending is waited
// for where no other node is free.
const (
	// roomBudget is how long a Pod that is ending is waited for. Its processes
	// end in about a second, and a busy node says so a good deal later. A boot
	// takes longer than that; a Pod that hangs must not hold a job up for long.
	roomBudget = 20 * time.Second
	// roomNotice is when the reader of the job log is told what is waited for.
	roomNotice = 2 * time.Second
	// roomLookBudget is how long prepare looks whether a node is free.
	roomLookBudget = time.Second
	// mostAwaited is how many are watched at once.
	mostAwaited = 3
)

// awaitRoom waits for a Pod that is ending, if the job's own Pod would have a node
// booted beside it. The list is of all Pods that have or want a node; deleted
// are those of them that were deleted since.
func (d *Driver) awaitRoom(ctx context.Context, list []corev1.Pod, deleted map[types.UID]bool) {
	now := d.clusterNow()
	ends := func(p *corev1.Pod) bool {
		return deleted[p.UID] || p.DeletionTimestamp != nil && now.Before(p.DeletionTimestamp.Add(roomBudget))
	}
	var ending []corev1.Pod
	for _, p := range jobs(list) {
		if p.Spec.NodeName != "" && len(p.Finalizers) == 0 && ends(&p) {
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
	ending = ending[:min(len(ending), mostAwaited)]
	if len(ending) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, roomBudget)
	defer cancel()
	notice := time.AfterFunc(roomNotice, func() {
		d.log.Info("Waiting for Pod %s to end, whose node the job can have", ending[0].Name)
	})
	defer notice.Stop()
	var all sync.WaitGroup
	for i := range ending {
		all.Go(crash.Guard(ctx, func() {
			if d.ended(ctx, &ending[i]) {
				cancel()
			}
		}))
	}
	all.Wait()
}
