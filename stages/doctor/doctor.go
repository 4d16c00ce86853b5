// Package doctor looks for what would stop jobs, before a job finds out. Checks
// judge facts and do nothing else; what gathers the facts stands apart, in the
// files named "gather". No secret is ever part of a Result.
package doctor

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// State is how a check came out.
type State string

// The states, from well to worse. Scripts read them in the JSON output.
const (
	// OK is as it should be.
	OK State = "ok"
	// Skipped was not looked at; the evidence says why.
	Skipped State = "skipped"
	// Warning lets jobs run, and is or will be trouble.
	Warning State = "warning"
	// Failure stops jobs, or lets them wait or end without a word.
	Failure State = "failure"
)

// Result is what a check says: the state, what it is known by, and what to do.
type Result struct {
	State    State
	Evidence string
	Remedy   string
}

// Finding is a Result with the check that it belongs to.
type Finding struct {
	Group    string `json:"group"`
	Check    string `json:"check"`
	State    State  `json:"state"`
	Evidence string `json:"evidence"`
	Remedy   string `json:"remedy,omitempty"`
}

// Report is all that was found, in the order of the checks.
type Report struct{ Findings []Finding }

// Count is how many findings are in a state.
func (r Report) Count(s State) int {
	n := 0
	for _, f := range r.Findings {
		if f.State == s {
			n++
		}
	}
	return n
}

func ok(format string, args ...any) Result {
	return Result{State: OK, Evidence: fmt.Sprintf(format, args...)}
}

func skip(format string, args ...any) Result {
	return Result{State: Skipped, Evidence: fmt.Sprintf(format, args...)}
}

func warning(evidence, remedy string) Result { return Result{Warning, evidence, remedy} }

func failed(evidence, remedy string) Result { return Result{Failure, evidence, remedy} }

// Limits of an examination without its probe. Each check is short; where nobody
// answers, the sum of all would not be.
const (
	checkLimit = 3 * time.Second
	totalLimit = 10 * time.Second
)

// Examine makes all checks in their order. Told hears of each finding at once.
func Examine(ctx context.Context, p Parts, told func(Finding)) Report {
	var report Report
	patient := &patient{Parts: p}
	outcome := map[string]Result{}
	limited, cancel := context.WithTimeout(ctx, totalLimit)
	defer cancel()
	for _, check := range checks() {
		within := limited
		switch {
		case check.Name == probeEnd:
			within = context.WithoutCancel(ctx) // it matters the more
		case check.Group == groupProbe:
			within = ctx // it waits for a node
		}
		var results []Result
		switch reason := blocked(within, check, outcome); {
		case check.Group == groupProbe && !p.Probe:
			results = []Result{notProbed()}
		case reason != nil:
			results = []Result{*reason}
		default:
			results = check.examine(within, patient)
		}
		for _, r := range results {
			f := Finding{Group: check.Group, Check: check.Name, State: r.State, Evidence: r.Evidence, Remedy: r.Remedy}
			report.Findings = append(report.Findings, f)
			told(f)
		}
		outcome[check.Name] = worst(results)
	}
	return report
}

// examine makes one check, in its time.
func (c Check) examine(ctx context.Context, p *patient) []Result {
	if c.Group == groupProbe {
		return c.look(ctx, p)
	}
	ctx, cancel := context.WithTimeout(ctx, checkLimit)
	defer cancel()
	return c.look(ctx, p)
}

// blocked says why a check cannot be made, nil if it can.
func blocked(ctx context.Context, check Check, outcome map[string]Result) *Result {
	for _, need := range check.Needs {
		switch before := outcome[need]; before.State {
		case Failure:
			r := skip("%s has failed", need)
			return &r
		case Skipped:
			return &before // for the same reason
		}
	}
	if err := ctx.Err(); err != nil {
		r := skip("the time for all checks is over (%s)", totalLimit)
		if err == context.Canceled {
			r = skip("interrupted")
		}
		return &r
	}
	return nil
}

func worst(results []Result) Result {
	order := []State{OK, Skipped, Warning, Failure}
	return slices.MaxFunc(append(results, Result{State: OK}), func(a, b Result) int {
		return slices.Index(order, a.State) - slices.Index(order, b.State)
	})
}
