// Package warm decides how many nodes are kept free for jobs to come. It is
// pure: the clock and the number of jobs are handed in.
package warm

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

// Policy says how many nodes are kept free, and when. Its fields have the
// meaning of the keys of [[runners.kubernetes.autoscaler.policy]] in the
// runner's config.toml (executors/kubernetes/autoscaler/policy.go).
type Policy struct {
	// Periods are cron expressions of five fields: minute, hour, day of month,
	// month, day of week. The policy applies in each minute that one of them
	// names; without any it always applies.
	Periods []string
	// Timezone is that of Periods, by its IANA name; "" is the host's own.
	Timezone string
	// IdleCount is how many nodes are kept free.
	IdleCount int
	// IdleTime is how long nodes are kept when fewer are wanted.
	IdleTime time.Duration
	// ScaleFactor times the number of jobs, rounded up and at most
	// ScaleFactorLimit (0: without a limit), is wanted where that is more than
	// IdleCount.
	ScaleFactor      float64
	ScaleFactorLimit int
}

// restIdleTime is the IdleTime while no policy applies, as the runner has it.
const restIdleTime = 5 * time.Minute

// Wanted is how many nodes the policy keeps free while so many jobs run.
func (p Policy) Wanted(jobs int) int {
	// A factor beyond all reason must not overflow.
	scaled := int(min(math.Ceil(p.ScaleFactor*float64(jobs)), math.MaxInt32))
	if p.ScaleFactorLimit > 0 {
		scaled = min(scaled, p.ScaleFactorLimit)
	}
	return max(p.IdleCount, scaled)
}

// check says everything that is wrong with the numbers.
func (p Policy) check() error {
	var all []error
	for _, n := range []struct {
		key   string
		value float64
	}{
		{"idle_count", float64(p.IdleCount)}, {"idle_time", p.IdleTime.Seconds()},
		{"scale_factor", p.ScaleFactor}, {"scale_factor_limit", float64(p.ScaleFactorLimit)},
	} {
		if !(n.value >= 0) || math.IsInf(n.value, 0) {
			all = append(all, fmt.Errorf("%s is %v: it has to be 0 or more", n.key, n.value))
		}
	}
	return errors.Join(all...)
}

// Policies is a list of policies that Compile has read.
type Policies struct{ list []compiled }

type compiled struct {
	Policy
	zone    *time.Location
	periods []cron.Schedule
}

// Compile reads the periods and checks the values. Its error lists all that
// is wrong, each with the number of the policy, counted from 1.
func Compile(list []Policy) (Policies, error) {
	var p Policies
	var all []error
	for i, policy := range list {
		c, err := compile(policy)
		if err != nil {
			all = append(all, fmt.Errorf("policy %d: %w", i+1, err))
		}
		p.list = append(p.list, c)
	}
	if len(all) > 0 {
		return Policies{}, errors.Join(all...)
	}
	return p, nil
}

func compile(policy Policy) (compiled, error) {
	c := compiled{Policy: policy, zone: time.Local}
	all := []error{policy.check()}
	if policy.Timezone != "" {
		zone, err := time.LoadLocation(policy.Timezone)
		if err != nil {
			all = append(all, fmt.Errorf("timezone is %q: write an IANA name such as Europe/Berlin (%w)", policy.Timezone, err))
		} else {
			c.zone = zone
		}
	}
	// Without names such as @daily, and without a time zone in the expression:
	// the runner takes neither.
	parser := cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow)
	for _, text := range policy.Periods {
		period, err := parser.Parse(text)
		if err == nil && strings.Contains(text, "TZ=") {
			err = errors.New("the time zone belongs in timezone")
		}
		if err != nil {
			all = append(all, fmt.Errorf(`period %q: write five fields, such as "* 8-17 * * mon-fri" (%w)`, text, err))
			continue
		}
		c.periods = append(c.periods, period)
	}
	return c, errors.Join(all...)
}

// At is the policy that applies at a time: of several the last in the list,
// without any one that keeps no node.
func (p Policies) At(now time.Time) Policy {
	for _, c := range slices.Backward(p.list) {
		if c.applies(now) {
			return c.Policy
		}
	}
	return Policy{IdleTime: restIdleTime}
}

func (c compiled) applies(now time.Time) bool {
	if len(c.periods) == 0 {
		return true
	}
	local := now.In(c.zone)
	// Some zones were off by seconds once; a minute begins where the clock on
	// the wall says so.
	minute := local.Add(-time.Duration(local.Second())*time.Second - time.Duration(local.Nanosecond()))
	return slices.ContainsFunc(c.periods, func(period cron.Schedule) bool {
		return period.Next(minute.Add(-time.Second)).Equal(minute)
	})
}

// Any says whether any policy ever keeps a node free.
func (p Policies) Any() bool {
	return slices.ContainsFunc(p.list, func(c compiled) bool { return c.IdleCount > 0 || c.ScaleFactor > 0 })
}
