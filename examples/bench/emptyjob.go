package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/socialweb-computer/tenant-executor/examples/localrunner/runner"
	"github.com/socialweb-computer/tenant-executor/examples/testbed"
)

// bench measures on one bed and prints.
type bench struct {
	bed *testbed.Bed
	out io.Writer
}

// phases are the calls of the driver for an empty job, in their order.
var phases = []string{"config", "prepare", "prepare_script", "get_sources", "build_script", "cleanup_file_variables", "cleanup"}

func (b *bench) run(ctx context.Context) error {
	b.print("Warming up: the first job boots the node and pulls the images.\n")
	if _, err := b.emptyJob(ctx); err != nil {
		return err
	}
	jobs, floor := map[string][]time.Duration{}, map[string][]time.Duration{}
	var requests []map[string]int
	for range rounds {
		// In turn, so that both meet the same machine.
		before, err := b.requests(ctx)
		if err != nil {
			return err
		}
		times, err := b.emptyJob(ctx)
		if err != nil {
			return err
		}
		for name, d := range times {
			jobs[name] = append(jobs[name], d)
		}
		after, err := b.requests(ctx)
		if err != nil {
			return err
		}
		requests = append(requests, difference(before, after))
		start, exec, err := b.floor(ctx)
		if err != nil {
			return err
		}
		floor["start"] = append(floor["start"], start)
		floor["exec"] = append(floor["exec"], exec)
	}
	b.report(jobs, floor, requests[len(requests)-1])
	return b.stages(ctx)
}

// emptyJob runs a job that does next to nothing, on a warm node, and gives the
// time of each call and of the whole.
func (b *bench) emptyJob(ctx context.Context) (map[string]time.Duration, error) {
	j := testbed.WithoutSources(b.bed.Job("echo hello", "id"))
	out, err := b.bed.Run(ctx, j, runner.Options{})
	if err != nil {
		return nil, err
	}
	if out.Status != runner.Success {
		return nil, fmt.Errorf("the empty job ended with %s: %s\n%s", out.Status, out.Message, out.Log)
	}
	times := map[string]time.Duration{"whole": out.Duration}
	for _, call := range out.Calls {
		times[call.Stage] = call.Duration
	}
	// The next job must not wait for this one's Pod.
	return times, b.noPods(ctx)
}

func (b *bench) report(jobs, floor map[string][]time.Duration, requests map[string]int) {
	whole, start, exec := median(jobs["whole"]), median(floor["start"]), median(floor["exec"])
	b.print("\nAn empty job on a warm node, median of %d runs\n\n", rounds)
	for _, phase := range phases {
		b.print("  %-24s %s\n", phase, seconds(median(jobs[phase])))
	}
	b.print("  %-24s %s\n\n", "whole job", seconds(whole))
	b.print("The floor: what Kubernetes takes for the same Pod, with nothing around it\n\n")
	b.print("  %-24s %s\n", "Pod create to Running", seconds(start))
	b.print("  %-24s %s\n\n", "one exec of true", seconds(exec))
	b.print("  whole job ÷ (Pod start + 4 execs)   %.2f\n", ratio(whole, start+4*exec))
	b.print("  prepare ÷ (Pod start + 1 exec)      %.2f\n", ratio(median(jobs["prepare"]), start+exec))
	b.print("\n")
	total := 0
	b.print("API requests of the driver for that job, from the audit log\n\n")
	for _, kind := range sorted(requests) {
		total += requests[kind]
		b.print("  %-24s %d\n", kind, requests[kind])
	}
	b.print("  %-24s %d\n", "all", total)
}

func (b *bench) print(format string, args ...any) { _, _ = fmt.Fprintf(b.out, format, args...) }
