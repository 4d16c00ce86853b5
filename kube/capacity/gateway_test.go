package capacity

import (
	"fmt"
	"testing"
	"time"

	"github.com/socialweb-computer/tenant-executor/kube/pods"
)

func TestWhy(t *testing.T) {
	boots := []time.Duration{40 * time.Second, 50 * time.Second, 70 * time.Second}
	// One waits, and so many run.
	waits := func(nodes, ready, busy int) Outlook {
		return Outlook{Nodes: nodes, Ready: ready, Busy: busy, Free: max(0, ready-busy), Unfinished: busy + 1, Place: 1, Queue: 1}
	}
	says := func(all ...pods.Obstacle) pods.Verdict { return pods.Verdict{Obstacles: all} }
	taken := func(n int) pods.Obstacle { return pods.Obstacle{Kind: pods.Taken, Nodes: n} }
	unsuitable := func(n int) pods.Obstacle { return pods.Obstacle{Kind: pods.Unsuitable, Nodes: n} }
	crowded := func(n int) pods.Obstacle { return pods.Obstacle{Kind: pods.Crowded, Nodes: n} }
	tainted := func(n int) pods.Obstacle { return pods.Obstacle{Kind: pods.Tainted, Nodes: n} }
	narrow := waits(1, 1, 0)
	narrow.Narrow = true
	kept := waits(1, 1, 0)
	kept.Kept = 1
	ninth := Outlook{Nodes: 1, Ready: 1, Busy: 1, Unfinished: 9, Place: 8, Queue: 8}
	second := Outlook{Nodes: 1, Ready: 1, Free: 1, Unfinished: 2, Place: 2, Queue: 2}
	for _, test := range []struct {
		name    string
		gateway Gateway
		outlook Outlook
		verdict pods.Verdict
		quiet   time.Duration
		want    Reason
	}{
		{"from zero", Gateway{Ceiling: 10}, waits(0, 0, 0), says(), 0, Booting},
		{"none fits, and one is busy", Gateway{Ceiling: 10}, waits(5, 5, 1), says(unsuitable(5)), 0, Unfit},
		{"the busy one may fit", Gateway{Ceiling: 10}, waits(5, 5, 1), says(unsuitable(4), taken(1)), 0, Booting},
		{"from zero, nothing known, just before doubt", Gateway{Ceiling: 10}, waits(0, 0, 0), says(), longestBoot - 1, Booting},
		{"from zero, nothing known, for long", Gateway{Ceiling: 10}, waits(0, 0, 0), says(), longestBoot, Stalled},
		{"from zero, just before doubt", Gateway{Ceiling: 10, Boots: boots}, waits(0, 0, 0), says(), 140*time.Second - 1, Booting},
		{"from zero, longer than boots take", Gateway{Ceiling: 10, Boots: boots}, waits(0, 0, 0), says(), 140 * time.Second, Stalled},
		{"boots are quick, so doubt is not", Gateway{Ceiling: 10, Boots: boots[:1]}, waits(0, 0, 0), says(), shortestDoubt - 1, Booting},
		{"joined, not ready", Gateway{Ceiling: 10}, waits(1, 0, 0), says(tainted(1)), time.Minute, Joining},
		{"just ready, and the scheduler's word is older", Gateway{Ceiling: 10}, waits(1, 1, 0), says(tainted(1)), 0, Due},
		{"just ready, and the scheduler has said nothing", Gateway{Ceiling: 10}, waits(1, 1, 0), says(), 0, Due},
		{"the one that is free is for the first in the queue", Gateway{Ceiling: 10}, second, says(taken(1)), 0, Booting},
		{"kept from Pods", Gateway{Ceiling: 10}, kept, says(tainted(1)), 0, Unfit},
		{"second job, node on its way", Gateway{Ceiling: 10, Boots: boots}, waits(1, 1, 1), says(taken(1)), time.Minute, Booting},
		{"second job, no node comes", Gateway{Ceiling: 10, Boots: boots}, waits(1, 1, 1), says(taken(1)), 141 * time.Second, Stalled},
		{"the same, and the count of Pods is told", Gateway{Ceiling: 10, PodsPerNode: 1, Boots: boots}, waits(1, 1, 1), says(taken(1)), 141 * time.Second, Stalled},
		{"second job of another namespace, which may not be looked into", Gateway{Ceiling: 10}, narrow, says(taken(1)), 0, Booting},
		{"the same at the ceiling", Gateway{Ceiling: 1}, narrow, says(taken(1)), 0, Full},
		{"the same where eight Pods are one node's", Gateway{Ceiling: 10, PodsPerNode: 8}, narrow, says(taken(1)), 0, Starved},
		{"eight Pods a node, said at once", Gateway{Ceiling: 10, PodsPerNode: 8}, waits(1, 1, 1), says(taken(1)), 0, Starved},
		{"eight Pods a node, ninth Pod", Gateway{Ceiling: 10, PodsPerNode: 8}, ninth, says(taken(1)), 0, Booting},
		{"eight Pods a node, from zero", Gateway{Ceiling: 10, PodsPerNode: 8}, waits(0, 0, 0), says(), 0, Booting},
		{"one Pod a node", Gateway{Ceiling: 10, PodsPerNode: 1}, waits(1, 1, 1), says(taken(1)), 0, Booting},
		{"at the ceiling", Gateway{Ceiling: 2, Boots: boots}, waits(2, 2, 2), says(taken(2)), time.Hour, Full},
		{"at the ceiling, one not ready", Gateway{Ceiling: 2}, waits(2, 1, 1), says(taken(1), tainted(1)), 0, Joining},
		{"three that do not match", Gateway{Ceiling: 10}, waits(3, 3, 0), says(unsuitable(3)), 0, Unfit},
		{"three that do not match, at the ceiling", Gateway{Ceiling: 3}, waits(3, 3, 0), says(unsuitable(3)), time.Hour, Unfit},
		{"one that does not match, one that is busy", Gateway{Ceiling: 2}, waits(2, 2, 1), says(unsuitable(1), taken(1)), 0, Full},
		{"an empty one has not enough", Gateway{Ceiling: 10}, waits(1, 1, 0), says(crowded(1)), 0, Unfit},
		{"a busy one has not enough left", Gateway{Ceiling: 1}, waits(1, 1, 1), says(crowded(1)), 0, Full},
		{"gated", Gateway{Ceiling: 10}, waits(0, 0, 0), pods.Verdict{Gates: []string{"g"}}, time.Hour, Gated},
		{"a claim that is missing", Gateway{Ceiling: 10}, waits(1, 1, 0), pods.Verdict{Words: "no claim"}, 0, Told},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := test.gateway.Why(test.outlook, test.verdict, test.quiet); got != test.want {
				t.Errorf("reason %d, want %d", got, test.want)
			}
		})
	}
}

// A node that carries a job may lack only what the job has.
func TestUnfitNodes(t *testing.T) {
	v := pods.Verdict{Obstacles: []pods.Obstacle{{Kind: pods.Taken, Nodes: 2}, {Kind: pods.Crowded, Nodes: 3}, {Kind: pods.Unsuitable, Nodes: 1}}}
	for busy, want := range map[int]int{0: 4, 2: 4, 3: 3, 5: 1, 6: 1} {
		if got := (Outlook{Nodes: 6, Ready: 6, Busy: busy}).Unfit(v); got != want {
			t.Errorf("%d busy: %d unfit, want %d", busy, got, want)
		}
	}
}

func TestBoots(t *testing.T) {
	if g := (Gateway{}); g.Usual() != 0 || g.Slowest() != 0 {
		t.Errorf("without boots: usual %s, slowest %s", g.Usual(), g.Slowest())
	}
	g := Gateway{Boots: []time.Duration{9 * time.Second, 40 * time.Second, 10 * time.Second}}
	if got := fmt.Sprint(g.Usual(), g.Slowest()); got != "10s 40s" {
		t.Errorf("usual and slowest %s, want 10s 40s", got)
	}
}
