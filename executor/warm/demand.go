package warm

import "time"

// Demand follows the policies through time: more nodes are wanted at once,
// fewer only when the idle time has passed.
type Demand struct {
	policies Policies
	most     int
	last     int
	keep     time.Time
}

// NewDemand wants at most so many nodes; 0 is without a limit.
func NewDemand(policies Policies, most int) *Demand {
	return &Demand{policies: policies, most: most}
}

// At is how many nodes are to be free now, while so many jobs run. It is
// called again and again, with times that go forward.
func (d *Demand) At(now time.Time, jobs int) int {
	policy := d.policies.At(now)
	wanted := policy.Wanted(jobs)
	if d.most > 0 {
		wanted = min(wanted, d.most)
	}
	if wanted < d.last && now.Before(d.keep) {
		return d.last
	}
	d.last, d.keep = wanted, now.Add(policy.IdleTime)
	return wanted
}
