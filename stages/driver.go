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
	c, err := cluster.Connect(func() (cluster.Config, error) {
		found, err := p.Cluster()
		return cluster.Config{
			URL:       found.URL,
			CAFile:    found.CAFile,
			CertFile:  found.CertFile,
			KeyFile:   found.KeyFile,
			UserAgent: "tenant-executor/" + p.Version,
		}, err
	})
	if err != nil {
		return nil, failure.Wrap(failure.Settings, err, "the cluster's certificates")
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
		runner:   stream.NewRunner(c, stream.Transport(p.Settings.Cluster.Transport)),
	}, nil
}

// requestFailure is the failure of a request to the cluster.
func (d *Driver) requestFailure(err error) error {
	cause := failure.Internal
	switch {
	case cluster.Denied(err):
		cause = failure.Access
	case cluster.Transient(err):
		cause = failure.Unreachable
	}
	return failure.Wrap(cause, err, "the tenant cluster at %s", d.cluster.URL())
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
