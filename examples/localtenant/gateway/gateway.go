package gateway

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// failurePause lies between a boot that failed and the next try.
const failurePause = 5 * time.Second

// Nodes are the machines for rent.
type Nodes interface {
	// Count is how many are there, dead ones included. One that Boot starts
	// counts from before Boot returns.
	Count() int
	// Boot starts one more; an empty name stands for a fresh one.
	Boot(ctx context.Context, name string) (string, error)
	// RemoveAll drops all.
	RemoveAll(ctx context.Context) error
}

// Pods are what nodes are rented for.
type Pods interface {
	UnfinishedPods() int
}

// Gateway boots and drops nodes.
type Gateway struct {
	nodes   Nodes
	pods    Pods
	log     *slog.Logger
	now     func() time.Time
	changed chan struct{}

	mu        sync.Mutex
	settings  Settings
	booting   int
	dropping  bool
	idleSince time.Time
	last      Decision
	failure   string
}

// New makes a gateway. The settings must have been checked.
func New(settings Settings, nodes Nodes, pods Pods, log *slog.Logger, now func() time.Time) *Gateway {
	return &Gateway{settings: settings, nodes: nodes, pods: pods, log: log, now: now, changed: make(chan struct{}, 1)}
}

// Wake has the gateway look again: Pods, nodes or settings have changed.
func (g *Gateway) Wake() {
	select {
	case g.changed <- struct{}{}:
	default:
		// It is about to look anyway.
	}
}

// Set changes settings. A value out of range changes nothing.
func (g *Gateway) Set(change Change) (Settings, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	next := g.settings.With(change)
	if err := next.Check(); err != nil {
		return g.settings, err
	}
	g.settings = next
	g.Wake()
	return next, nil
}

// Run works until the context is over, and waits for the boots under way.
func (g *Gateway) Run(ctx context.Context) {
	var boots sync.WaitGroup
	defer boots.Wait()
	for {
		decision := g.decide()
		for range decision.Boot {
			boots.Go(func() { g.boot(ctx) })
		}
		if decision.Drop {
			g.drop(ctx)
		} else if !g.await(ctx, decision.Again) {
			return
		}
		if ctx.Err() != nil {
			return
		}
	}
}

// decide looks and decides, and counts the boots that the caller starts.
func (g *Gateway) decide() Decision {
	unfinished, nodes := g.pods.UnfinishedPods(), g.nodes.Count()
	g.mu.Lock()
	defer g.mu.Unlock()
	decision := Decide(g.settings, View{
		Unfinished: unfinished, Nodes: nodes, Booting: g.booting, IdleSince: g.idleSince,
	}, g.now())
	g.idleSince = decision.IdleSince
	g.booting += decision.Boot
	g.last = decision
	return decision
}

// await returns at a change or when the time has come, and false at the end.
func (g *Gateway) await(ctx context.Context, again time.Time) bool {
	var due <-chan time.Time
	if !again.IsZero() {
		timer := time.NewTimer(again.Sub(g.now()))
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-ctx.Done():
		return false
	case <-g.changed:
	case <-due:
	}
	return true
}

// boot waits as long as a machine takes to boot, and starts the node.
func (g *Gateway) boot(ctx context.Context) {
	defer g.Wake()
	g.mu.Lock()
	bootTime := g.settings.BootTime.Duration
	g.mu.Unlock()
	g.log.Info("gateway: booting a node", "bootTime", bootTime)
	if !pause(ctx, bootTime) {
		g.booted(nil)
		return
	}
	_, err := g.nodes.Boot(ctx, "")
	if err != nil && ctx.Err() == nil {
		g.log.Error("gateway: a node did not boot", "error", err)
		pause(ctx, failurePause)
	}
	g.booted(err)
}

func (g *Gateway) booted(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.booting--
	g.failure = ""
	if err != nil {
		g.failure = err.Error()
	}
}

func (g *Gateway) drop(ctx context.Context) {
	g.setDropping(true)
	defer g.setDropping(false)
	g.log.Info("gateway: nothing has run for the hold, dropping all nodes")
	if err := g.nodes.RemoveAll(ctx); err != nil {
		g.log.Error("gateway: drop", "error", err)
	}
}

func (g *Gateway) setDropping(dropping bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.dropping = dropping
}

// pause waits, and gives false when the context ended first.
func pause(ctx context.Context, length time.Duration) bool {
	timer := time.NewTimer(length)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
