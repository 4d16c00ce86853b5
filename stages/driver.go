// Package stages is the four stages that GitLab Runner calls a driver for:
// config, prepare, run and cleanup, one file each.
package stages

import (
	"context"
	"strings"
	"time"

	"github.com/socialweb-computer/tenant-executor/executor/failure"
	"github.com/socialweb-computer/tenant-executor/executor/job"
	"github.com/socialweb-computer/tenant-executor/executor/joblog"
	"github.com/socialweb-computer/tenant-executor/executor/settings"
	"github.com/socialweb-computer/tenant-executor/kube/capacity"
	"github.com/socialweb-computer/tenant-executor/kube/cluster"
	"github.com/socialweb-computer/tenant-executor/kube/pods"
	"github.com/socialweb-computer/tenant-executor/kube/stream"
)

// requestBudget is how long a single request to the cluster is repeated while
// its apiserver restarts.
const requestBudget = time.Minute

// Driver is what the stages of one job work with. Make it with New.
type Driver struct {
	settings settings.Settings
	job      job.Job
	// hint is the Pod's name as config chose it, "" where no config ran.
	hint  string
	log   joblog.Log
	clock pods.Clock

	cluster *cluster.Client
	pods    *pods.Client
	nodes   *capacity.Nodes
	pool    *capacity.Pool
	runner  *stream.Runner
}

// Parts are what a Driver is made of.
type Parts struct {
	Settings settings.Settings
	// Cluster reads the cluster's settings anew: it may move while a stage
	// runs.
	Cluster func() (settings.Cluster, error)
	Job     job.Job
	// PodName is the name that config chose for this attempt's Pod, "" where
	// no config ran.
	PodName string
	Log     joblog.Log
	Clock   pods.Clock
	// Version of the driver, which the cluster's audit log shows.
	Version string
}

// New makes a Driver. It reads the certificates; it sends nothing yet.
func New(p Parts) (*Driver, error) {
	c, err := connect(p.Cluster, p.Version)
	if err != nil {
		return nil, err
	}
	hint := p.PodName
	if !strings.HasPrefix(hint, p.Job.PodName("")) {
		// A name of another job, left in the environment of a shell.
		hint = ""
	}
	return &Driver{
		settings: p.Settings,
		job:      p.Job,
		hint:     hint,
		log:      p.Log,
		clock:    p.Clock,
		cluster:  c,
		pods:     pods.NewClient(c, requestBudget),
		nodes:    capacity.NewNodes(c, requestBudget),
		pool:     newPool(c, p.Settings, p.Clock),
		runner:   stream.NewRunner(c),
	}, nil
}

// connect makes the connection to the cluster.
func connect(find func() (settings.Cluster, error), version string) (*cluster.Client, error) {
	c, err := cluster.Connect(func() (cluster.Config, error) {
		found, err := find()
		return cluster.Config{
			URL:       found.URL,
			CAFile:    found.CAFile,
			CertFile:  found.CertFile,
			KeyFile:   found.KeyFile,
			UserAgent: "tenant-executor/" + version,
		}, err
	})
	if err != nil {
		return nil, failure.Wrap(failure.Settings, err, "the cluster's certificates")
	}
	return c, nil
}

// requestFailure is the failure of a request to the cluster.
func (d *Driver) requestFailure(err error) error {
	return failure.Wrap(requestCause(err), err, "the tenant cluster at %s", d.cluster.URL())
}

func requestCause(err error) failure.Cause {
	switch {
	case cluster.Denied(err):
		return failure.Access
	case cluster.Transient(err):
		return failure.Unreachable
	}
	return failure.Internal
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
