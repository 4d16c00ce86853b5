package pods

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/socialweb-computer/tenant-executor/kube/crash"
)

// Times of Follow. A watch can fall silent without ending (a proxy, a restart
// of the apiserver), so the Pod is read now and then as well: soon after a change,
// since the next one is near then, and ever more seldom while nothing happens. A
// watch that such a read proves right stays open.
const (
	rereadFirst  = 15 * time.Second
	rereadLast   = time.Minute
	reopenAfter  = time.Second
	readPatience = 10 * time.Second
)

// Change is what Follow saw: the Pod as it is now, or that it is gone, or
// that the cluster cannot be asked at present.
type Change struct {
	Pod *corev1.Pod
	// Gone is true when the Pod does not exist any more.
	Gone bool
	// Err is the failure of the last look; Follow goes on.
	Err error
}

// Follow sends the Pod each time it changes, starting with pod itself, until
// ctx ends or the Pod is gone; then the channel is closed.
func (c *Client) Follow(ctx context.Context, pod *corev1.Pod, clock Clock) <-chan Change {
	changes := make(chan Change)
	f := &follower{client: c, ref: RefTo(pod), clock: clock, changes: changes}
	crash.Go(ctx, func() {
		defer close(changes)
		f.run(ctx, pod)
	})
	return changes
}

type follower struct {
	client  *Client
	ref     Ref
	clock   Clock
	changes chan<- Change
}

// run reads the Pod whenever a watch has ended: that closes the gap which a lost
// watch leaves.
func (f *follower) run(ctx context.Context, pod *corev1.Pod) {
	if !f.send(ctx, Change{Pod: pod}) {
		return
	}
	for ctx.Err() == nil {
		seen := f.watch(ctx, pod)
		if seen.gone {
			return
		}
		next := seen.read
		if next == nil {
			found := f.read(ctx)
			next = &found
		}
		if next.Pod == nil || next.Pod.ResourceVersion != seen.version {
			if !f.send(ctx, *next) || next.Gone {
				return
			}
		}
		if next.Pod != nil {
			pod = next.Pod
		}
		if next.Pod != nil && seen.useful {
			continue
		}
		// Neither a watch that ends at once nor an apiserver that does not
		// answer may be asked in a tight loop.
		select {
		case <-ctx.Done():
		case <-f.clock.After(reopenAfter):
		}
	}
}

// watched is how a watch went.
type watched struct {
	// version is the last one seen.
	version string
	// useful is false for a watch that ended early and showed nothing.
	useful bool
	// gone is whether there is nothing more to follow.
	gone bool
	// read is what a read beside the watch has found and the watch has not shown;
	// nil where none was made.
	read *Change
}

// watch reports changes until the watch ends, or a read beside it shows that it
// has missed something.
func (f *follower) watch(ctx context.Context, pod *corev1.Pod) watched {
	seen := watched{version: pod.ResourceVersion}
	limited, cancel := context.WithCancel(ctx)
	defer cancel()
	pause := rereadFirst
	reread := f.clock.After(pause)
	w, err := f.open(limited, cancel, seen.version, reread)
	if err != nil {
		return seen
	}
	defer w.Stop()
	for {
		select {
		case <-limited.Done():
			seen.useful = true
			return seen
		case <-reread:
			next := f.read(limited)
			if next.Pod == nil || next.Pod.ResourceVersion != seen.version {
				seen.read, seen.useful = &next, true
				return seen
			}
			pause = min(max(2*pause, rereadFirst), rereadLast)
			reread = f.clock.After(pause)
		case event, open := <-w.ResultChan():
			if !open || event.Type == watch.Error {
				return seen
			}
			changed, isPod := event.Object.(*corev1.Pod)
			if !isPod || changed.UID != f.ref.UID {
				continue
			}
			if event.Type == watch.Deleted {
				f.send(ctx, Change{Gone: true})
				return watched{gone: true}
			}
			seen.version, seen.useful = changed.ResourceVersion, true
			if !f.send(ctx, Change{Pod: changed}) {
				return watched{gone: true}
			}
			pause = 0 // the next one after this read comes soon
		}
	}
}

// open opens a watch. One that is not answered is given up when it is time to
// read the Pod.
func (f *follower) open(ctx context.Context, cancel func(), version string, reread <-chan time.Time) (watch.Interface, error) {
	opened := make(chan struct{})
	defer close(opened)
	crash.Go(ctx, func() {
		select {
		case <-reread:
			cancel()
		case <-opened:
		case <-ctx.Done():
		}
	})
	return f.client.watch(ctx, f.ref, version)
}

func (f *follower) read(ctx context.Context) Change {
	limited, cancel := context.WithTimeout(ctx, readPatience)
	defer cancel()
	pod, err := f.client.Get(limited, f.ref)
	switch {
	case apierrors.IsNotFound(err):
		return Change{Gone: true}
	case err != nil:
		f.client.cluster.Refind(ctx, err)
		return Change{Err: err}
	}
	return Change{Pod: pod}
}

func (f *follower) send(ctx context.Context, change Change) bool {
	if ctx.Err() != nil {
		return false // the failure of a look that was broken off is no news
	}
	select {
	case <-ctx.Done():
		return false
	case f.changes <- change:
		return true
	}
}

// sortByAge puts the oldest Pod first.
func sortByAge(list []corev1.Pod) {
	slices.SortStableFunc(list, func(a, b corev1.Pod) int {
		return a.CreationTimestamp.Compare(b.CreationTimestamp.Time)
	})
}
