// Package stages is the four stages that GitLab Runner calls a driver for:
// config, prepare, run and cleanup, one file each.
package stages

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/socialweb-computer/tenant-executor/executor/failure"
	"github.com/socialweb-computer/tenant-executor/executor/job"
	"github.com/socialweb-computer/tenant-executor/executor/joblog"
	"github.com/socialweb-computer/tenant-executor/executor/overwrite"
	"github.com/socialweb-computer/tenant-executor/executor/pod"
	"github.com/socialweb-computer/tenant-executor/executor/settings"
	"github.com/socialweb-computer/tenant-executor/kube/capacity"
	"github.com/socialweb-computer/tenant-executor/kube/cluster"
	"github.com/socialweb-computer/tenant-executor/kube/pods"
	"github.com/socialweb-computer/tenant-executor/kube/stream"
	"github.com/socialweb-computer/tenant-executor/stages/course"
	"github.com/socialweb-computer/tenant-executor/stages/state"
)

// requestBudget is how long a single request to the cluster is repeated while
// its apiserver restarts.
const requestBudget = time.Minute

// Driver is what the stages of one job work with. Make it with New.
type Driver struct {
	settings settings.Settings
	job      job.Job
	// hint is the Pod's name as config chose it, "" where no config ran.
	hint string
	// variables are the job's, by their names in the stage's environment.
	variables job.Environment
	log       joblog.Log
	clock     pods.Clock
	host      func() Host
	// state outlives the job; stateErr is why there is none.
	state    *state.Folder
	stateErr error
	// history is what was seen of the cluster before.
	history history
	// asked is what the job has overwritten of the operator's settings; the
	// settings above have it in them.
	asked overwrites
	// origin is the runner's configuration, nil where nothing is inherited.
	origin *Origin
	// course takes what the stage meets; nil for a stage that nobody counts.
	course *course.Entry

	cluster *cluster.Client
	pods    *pods.Client
	nodes   *capacity.Nodes
	pool    *capacity.Pool
	runner  *stream.Runner

	// target is the Pod that a person means, where there is no job.
	target Target
}

// Parts are what a Driver is made of.
type Parts struct {
	Settings settings.Settings
	// Origin is where some of the settings come from, nil for the driver's own
	// file alone.
	Origin *Origin
	// Find says where the cluster is; it may move while a stage runs.
	Find cluster.Find
	// State is the folder on this host, nil where there is none, for the reason
	// in StateErr.
	State    *state.Folder
	StateErr error
	Job      job.Job
	// Decided is what config has decided for the job, nil where no config ran.
	Decided *Decided
	// PodName is the name that config chose for this attempt's Pod, "" where
	// no config ran.
	PodName string
	// Variables are the stage's environment, with the job's variables in it.
	Variables job.Environment
	Log       joblog.Log
	Clock     pods.Clock
	// Course takes what the stage meets, nil where nobody keeps it.
	Course *course.Entry
	// Host looks at the host of the driver. Prepare and Cleanup alone ask.
	Host func() Host
}

// New makes a Driver. It finds the cluster and reads the certificates; it asks
// the cluster for nothing yet.
func New(ctx context.Context, p Parts) (*Driver, error) {
	c, err := cluster.Connect(ctx, p.Find)
	if err != nil {
		return nil, connectFailure(err)
	}
	c.BearOutages(p.Settings.Run.Outage.Value(), outageTeller{p.Log})
	hint := p.PodName
	if !strings.HasPrefix(hint, p.Job.PodName("")) {
		// A name of another job, left in the environment of a shell.
		hint = ""
	}
	asked := overwrites{operators: p.Settings.Kubernetes}
	asked.result, asked.refused = overwrite.Apply(p.Settings.Kubernetes, p.Job, p.Variables)
	p.Settings.Kubernetes = asked.result.Settings
	// From here on the namespace is the job's.
	p.Settings.Kubernetes.Namespace = pod.Namespace(p.Settings.Kubernetes, p.Job)
	if p.Decided != nil {
		p.Settings.Kubernetes.Namespace = p.Decided.Namespace
	}
	return &Driver{
		settings:  p.Settings,
		job:       p.Job,
		hint:      hint,
		variables: p.Variables,
		log:       p.Log,
		clock:     p.Clock,
		host:      p.Host,
		state:     p.State,
		stateErr:  p.StateErr,
		history:   history{p.State, c.Identity()},
		cluster:   c,
		pods:      pods.NewClient(c, requestBudget),
		nodes:     capacity.NewNodes(c, requestBudget),
		pool:      newPool(c, p.Settings, clusterClock{p.Clock, c}),
		runner:    stream.NewRunner(c, stream.Transport(p.Settings.Cluster.Transport)),
		asked:     asked,
		origin:    p.Origin,
		course:    p.Course,
	}, nil
}

// requestFailure is the failure of a request to the cluster.
func (d *Driver) requestFailure(err error) error {
	f := requestFailure(d.cluster, err)
	if d.settings.Cluster.DiscoverCluster != "" {
		f.Seen(failure.Discovered, "")
	}
	return f
}

func requestFailure(c *cluster.Client, err error) *failure.Failure {
	cause := failure.Internal
	switch {
	case cluster.Denied(err):
		cause = failure.Access
	case cluster.Transient(err):
		cause = failure.Unreachable
	}
	if trouble := c.Trouble(err); trouble != nil {
		err = fmt.Errorf("%w (%w)", err, trouble)
	}
	return failure.Wrap(cause, err, "the tenant cluster at %s", c.URL())
}

// clusterName is the tenant cluster as people call it. One that is found by its
// name may have another address with each job.
func (d *Driver) clusterName() string {
	if name := d.settings.Cluster.DiscoverCluster; name != "" {
		return name
	}
	return strings.TrimPrefix(d.cluster.URL(), "https://")
}

// Clock is the system's clock.
type Clock struct{}

// Now is the present time.
func (Clock) Now() time.Time { return time.Now() }

// After sends once d has passed.
func (Clock) After(d time.Duration) <-chan time.Time { return time.After(d) }

// detach is a context for what has to be done although ctx has ended: ending a
// script, deleting a Pod.
func detach(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), limit)
}
