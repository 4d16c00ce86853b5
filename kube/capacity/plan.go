package capacity

import (
	"fmt"
	"strings"
	"time"

	"github.com/socialweb-computer/tenant-executor/kube/pods"
)

// Keeping a placeholder of the policies is said again and again: each says
// until when it is wanted. So of several who keep placeholders on one cluster,
// the one that wants the most decides, and nobody removes what another wants.
const (
	// wantedFor is how far ahead it is said.
	wantedFor = time.Minute
	// renewBefore is how long before that time it is said again.
	renewBefore = 30 * time.Second
)

// Plan is what is to be done so that so many nodes are free.
type Plan struct {
	// Jobs run or wait; Wanted nodes are to be free for others.
	Jobs, Wanted int
	// Held nodes are free and held, Waiting placeholders wait for a node.
	Held, Waiting int
	// On are the nodes that placeholders of the policies hold.
	On []string
	// Remove what holds nothing or is wanted no more; Create placeholders of
	// these names; Renew those that are still wanted.
	Remove []Spent
	Create []string
	Renew  []pods.Ref
}

// plan compares what is there with what is wanted.
func (m Marks) plan(r review, wanted int, now time.Time) Plan {
	p := Plan{Jobs: r.jobs, Wanted: wanted, Held: len(r.holds), Remove: r.spent}
	for i, slot := range r.slots {
		switch {
		case i < wanted && passed(slot, m.Wanted, now.Add(renewBefore)):
			p.Renew = append(p.Renew, pods.RefTo(slot))
		case i >= wanted && passed(slot, m.Wanted, now):
			p.Remove = append(p.Remove, Spent{pods.RefTo(slot), "it is wanted no more"})
			continue
		}
		if slot.Spec.NodeName == "" {
			p.Waiting++
		} else {
			p.Held++
			p.On = append(p.On, slot.Spec.NodeName)
		}
	}
	// A node that lingers is free as well, and no reason to boot another.
	missing := wanted - len(r.holds) - len(r.slots)
	taken := map[string]bool{}
	for _, slot := range r.slots {
		taken[slot.Name] = true
	}
	for i := 0; missing > 0; i++ {
		if name := slotName(i); !taken[name] {
			p.Create = append(p.Create, name)
			missing--
		}
	}
	return p
}

// String is the state and the steps, without renewals: they change nothing.
func (p Plan) String() string {
	steps := []string{fmt.Sprintf("jobs: %d, free nodes wanted: %d, held: %d, waiting for a node: %d", p.Jobs, p.Wanted, p.Held, p.Waiting)}
	for _, s := range p.Remove {
		steps = append(steps, fmt.Sprintf("remove %s (%s)", s.Ref.Name, s.Reason))
	}
	for _, name := range p.Create {
		steps = append(steps, "create "+name)
	}
	return strings.Join(steps, "; ")
}
