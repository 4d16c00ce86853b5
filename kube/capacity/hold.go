package capacity

import (
	"context"
	"errors"
	"time"

	"github.com/socialweb-computer/tenant-executor/kube/pods"
)

// mostRemoved is how many spent placeholders one call removes beside its own
// work; whoever comes next goes on.
const mostRemoved = 8

// Hold holds a node for so long, if it is free and nobody waits for one. It
// says whether it does. The placeholder ends by itself; the cluster needs
// nobody for that.
func (p *Pool) Hold(ctx context.Context, node string, life time.Duration) (bool, error) {
	list, err := p.list(ctx)
	if err != nil {
		return false, err
	}
	r := p.marks.review(list.Items, nil, p.clock.Now())
	if r.busy[node] || r.waiting > 0 {
		return false, nil
	}
	for _, held := range append(r.slots, r.holds...) {
		// One that waits for a node takes this one.
		if held.Spec.NodeName == node || held.Spec.NodeName == "" {
			return false, nil
		}
	}
	// An ended one of the same name is in the way.
	if err := p.sweep(ctx, r.spent); err != nil {
		return false, err
	}
	return true, p.create(ctx, p.on(node, life))
}

// Take frees one node that lingers, for a job to come, and gives its name; ""
// is for none. It happens before the job's Pod is there: a placeholder and a
// Pod together would have the cluster boot a second node. Two jobs at once
// take two nodes, if there are two.
func (p *Pool) Take(ctx context.Context) (node string, err error) {
	list, err := p.list(ctx)
	if err != nil {
		return "", err
	}
	r := p.marks.review(list.Items, nil, p.clock.Now())
	failed := p.sweep(ctx, r.spent)
	for _, hold := range r.holds {
		removed, err := p.remove(ctx, pods.RefTo(hold))
		if removed {
			return hold.Spec.NodeName, failed
		}
		failed = errors.Join(failed, err)
	}
	return "", failed
}

// Release removes the placeholders that a job has taken the node of: the
// caller's job, or that of one who did not come to it.
func (p *Pool) Release(ctx context.Context) error {
	list, err := p.list(ctx)
	if err != nil {
		return err
	}
	return p.sweep(ctx, p.marks.review(list.Items, nil, p.clock.Now()).spent)
}

func (p *Pool) sweep(ctx context.Context, spent []Spent) error {
	var failed []error
	for _, s := range spent[:min(len(spent), mostRemoved)] {
		_, err := p.remove(ctx, s.Ref)
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}
