package stages

import (
	"context"
	"fmt"
	"time"

	"github.com/socialweb-computer/tenant-executor/executor/failure"
	"github.com/socialweb-computer/tenant-executor/executor/joblog"
	"github.com/socialweb-computer/tenant-executor/executor/settings"
	"github.com/socialweb-computer/tenant-executor/executor/warm"
	"github.com/socialweb-computer/tenant-executor/kube/capacity"
	"github.com/socialweb-computer/tenant-executor/kube/cluster"
	"github.com/socialweb-computer/tenant-executor/kube/crash"
	"github.com/socialweb-computer/tenant-executor/kube/pods"
	"github.com/socialweb-computer/tenant-executor/stages/course"
)

// Times of a Keeper.
const (
	// resync is how often it looks although nothing has changed: policies come
	// and go with the clock, and a watch can fall silent.
	resync = 10 * time.Second
	// settle is how long it waits after a change: changes come in bursts.
	settle = 200 * time.Millisecond
	// lookAgain is how long it waits when the cluster does not answer.
	lookAgain = 2 * time.Second
	// longWait is how long a placeholder may wait for a node before it is worth
	// a warning. No node takes so long to boot.
	longWait = 10 * time.Minute
)

// Keeper keeps nodes free by the policies. Several on one cluster keep as many
// as the one that wants the most.
type Keeper struct {
	cluster *cluster.Client
	pool    *capacity.Pool
	nodes   *capacity.Nodes
	demand  *warm.Demand
	life    time.Duration
	log     joblog.Log
	clock   pods.Clock
	said    string
	// waiting is since when placeholders have waited for a node; zero while
	// none does.
	waiting time.Time
	warned  bool
	seen    func(capacity.Plan)
	book    func() (*course.Book, error)
}

// KeeperParts are what a Keeper is made of.
type KeeperParts struct {
	Settings settings.Settings
	// Find says where the cluster is; it may move.
	Find  cluster.Find
	Log   joblog.Log
	Clock pods.Clock
	// Seen hears of the state of the cluster at each look, nil for nobody.
	Seen func(capacity.Plan)
	// Book finds where it is written down which nodes are held, for the page of
	// statistics.
	Book func() (*course.Book, error)
}

// NewKeeper makes a Keeper. It finds the cluster and reads the certificates; it
// asks the cluster for nothing yet.
func NewKeeper(ctx context.Context, p KeeperParts) (*Keeper, error) {
	policies, err := p.Settings.Warm.Compile()
	if err != nil {
		return nil, failure.Wrap(failure.Settings, err, "the policies in [warm]")
	}
	c, err := cluster.Connect(ctx, p.Find)
	if err != nil {
		return nil, connectFailure(err)
	}
	return &Keeper{
		cluster: c,
		pool:    newPool(c, p.Settings, clusterClock{p.Clock, c}),
		nodes:   capacity.NewNodes(c, requestBudget),
		demand:  warm.NewDemand(policies, p.Settings.Warm.MaxPausePods),
		life:    p.Settings.Warm.Lifetime.Value(),
		log:     p.Log,
		clock:   p.Clock,
		seen:    p.Seen,
		book:    p.Book,
	}, nil
}

// Once looks once, says what is to be done, and does it unless it is only to
// be shown.
func (k *Keeper) Once(ctx context.Context, show bool) error {
	plan, _, err := k.plan(ctx)
	if err != nil {
		return err
	}
	k.log.Info("%s", plan)
	if show {
		return nil
	}
	return k.apply(ctx, plan)
}

// Run keeps nodes free until ctx ends. The placeholders stay: a Keeper that is
// started again goes on with them, and without one they end by themselves when
// their lifetime is over.
func (k *Keeper) Run(ctx context.Context) {
	for ctx.Err() == nil {
		plan, version, err := k.plan(ctx)
		if err == nil {
			k.note(plan)
			k.say(plan.String())
			k.watchWait(plan)
			err = k.apply(ctx, plan)
		}
		if ctx.Err() != nil {
			break
		}
		if err != nil {
			k.say("WARNING: " + err.Error())
			k.sleep(ctx, lookAgain)
			continue
		}
		k.await(ctx, version)
	}
	k.log.Info("Ended. Placeholders stay until they are %s old; whoever keeps nodes next goes on with them.", joblog.Duration(k.life))
}

func (k *Keeper) plan(ctx context.Context) (capacity.Plan, string, error) {
	plan, version, err := k.pool.Plan(ctx, k.nodes, func(jobs int) int { return k.demand.At(k.clock.Now(), jobs) })
	if err != nil {
		return plan, "", requestFailure(k.cluster, err)
	}
	if k.seen != nil {
		k.seen(plan)
	}
	return plan, version, nil
}

// note writes down which nodes are held. Without a folder nobody knows it later,
// and nothing else is amiss.
func (k *Keeper) note(plan capacity.Plan) {
	if book, err := k.book(); err == nil {
		_ = book.See(k.cluster.Identity(), plan.On, k.clock.Now())
	}
}

func (k *Keeper) apply(ctx context.Context, plan capacity.Plan) error {
	if err := k.pool.Apply(ctx, plan, k.life); err != nil {
		return requestFailure(k.cluster, fmt.Errorf("keeping nodes free: %w", err))
	}
	return nil
}

// await waits for a change of the pool, or for the time to look anyway.
func (k *Keeper) await(ctx context.Context, version string) {
	limited, cancel := context.WithCancel(ctx)
	defer cancel()
	look := k.clock.After(resync)
	crash.Go(limited, func() {
		select {
		case <-look:
			cancel()
		case <-limited.Done():
		}
	})
	pause := settle
	if err := k.pool.Changed(limited, version); err != nil {
		pause = lookAgain
	}
	k.sleep(ctx, pause)
}

func (k *Keeper) sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-k.clock.After(d):
	}
}

// watchWait says once what may be wrong when placeholders wait for very long.
func (k *Keeper) watchWait(plan capacity.Plan) {
	switch {
	case plan.Waiting == 0:
		k.waiting, k.warned = time.Time{}, false
	case k.waiting.IsZero():
		k.waiting = k.clock.Now()
	case !k.warned && k.clock.Now().Sub(k.waiting) >= longWait:
		k.warned = true
		k.log.Warn("Placeholders have waited for a node for %s. Either the cluster is at its ceiling, or no node fits kubernetes.node_selector, "+
			"or the gateway counts several Pods a node: each placeholder takes a whole one, so SOCIALWEB_CLUSTERPROVIDER_SCALE_PODS_PER_NODE has to be 1", joblog.Duration(longWait))
	}
}

// say writes a line unless it is what was said last.
func (k *Keeper) say(line string) {
	if line != k.said {
		k.log.Info("%s", line)
	}
	k.said = line
}
