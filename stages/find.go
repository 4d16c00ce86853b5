package stages

import (
	"context"
	"errors"
	"fmt"

	"github.com/socialweb-computer/tenant-executor/executor/failure"
	"github.com/socialweb-computer/tenant-executor/executor/job"
	"github.com/socialweb-computer/tenant-executor/executor/settings"
	"github.com/socialweb-computer/tenant-executor/kube/cluster"
)

// Finder says where the tenant cluster is, by the [cluster] section.
type Finder struct {
	// Settings is the section as it is by now: the cluster may move while a
	// stage runs.
	Settings func() settings.Cluster
	// Memory keeps what was found for the next stage.
	Memory cluster.Memory
	// Env is the process's environment. Programs that log in get it without the
	// job's variables.
	Env job.Environment
	// Say is told what is waited for; nil for nobody.
	Say func(text string)
	// UserAgent names the driver in audit logs.
	UserAgent string
	// Afresh has the first look-up ask the kcp side. Without it the first one
	// takes what is remembered: one stage of a job asks, the others need not.
	Afresh bool

	asked  bool
	logins cluster.Logins
}

// Find implements cluster.Find.
func (f *Finder) Find(ctx context.Context) (cluster.Config, error) {
	s := f.Settings()
	var err error
	config := cluster.Config{URL: s.URL, CAFile: s.CAFile, CertFile: s.CertFile, KeyFile: s.KeyFile}
	switch {
	case s.InCluster:
		config, err = cluster.InCluster(f.Env)
	case s.DiscoverCluster != "":
		config.URL, err = f.discover(ctx, s)
	}
	config.UserAgent = f.UserAgent
	return config, err
}

// Discovery is how the cluster is found on the kcp side.
func (f *Finder) Discovery(s settings.Cluster) cluster.Discovery {
	return cluster.Discovery{
		Kubeconfig: s.DiscoverKubeconfig,
		Context:    s.DiscoverContext,
		Name:       s.DiscoverCluster,
		Resource:   s.DiscoverResource,
		UserAgent:  f.UserAgent,
		Memory:     f.Memory,
		Environ:    withoutJob(f.Env),
		Logins:     &f.logins,
		Waiting:    f.Say,
		Acceptable: func(url string) error { return settings.CheckURL(".status.url", url) },
	}
}

// discover finds the address by the Cluster object.
func (f *Finder) discover(ctx context.Context, s settings.Cluster) (string, error) {
	d := f.Discovery(s)
	first := !f.asked
	f.asked = true
	if first && !f.Afresh {
		if url := d.Remembered(); url != "" {
			return url, nil
		}
	}
	url, fallen, err := d.Find(ctx)
	if err == nil && fallen != nil && !first {
		// Where the cluster was last is where it has just not been found.
		return "", fallen
	}
	return url, err
}

// FindRemedy is what the operator can do, by what went wrong.
func FindRemedy(kind cluster.FindKind) string {
	return map[cluster.FindKind]string{
		cluster.Unusable:   "correct the file, or cluster.discover_kubeconfig and cluster.discover_context",
		cluster.Silent:     "start kcp, or correct the server in the kubeconfig. Once the cluster was found, jobs run without kcp",
		cluster.Refused:    "give the kubeconfig's user the right to get the object",
		cluster.NoResource: "point the kubeconfig at the workspace that the Cluster object is in",
		cluster.Ambiguous:  "choose one with cluster.discover_resource",
		cluster.NoObject:   "correct cluster.discover_cluster, or point the kubeconfig at the workspace that the object is in",
		cluster.NoURL:      "wait until the cluster is ready, or look into its conditions",
		cluster.NoLogin:    "run the plugin by hand, as the runner's user and without a terminal, and correct it or users[].user.exec of the kubeconfig. Once the cluster was found, jobs run without kcp",
		cluster.BadURL:     "run the runner where the address leads to the cluster",
	}[kind]
}

// connectFailure is the failure of the connection's making: nothing was asked
// of the cluster yet.
func connectFailure(err error) error {
	var find *cluster.FindError
	var file *cluster.FileError
	switch {
	case errors.As(err, &find):
		return failure.Wrap(failure.ClusterUnknown, fmt.Errorf("%w; %s", err, FindRemedy(find.Kind)), "finding the tenant cluster")
	case errors.As(err, &file):
		return failure.Wrap(failure.Credentials, err, "the driver's certificate")
	case errors.Is(err, cluster.ErrNotInCluster):
		return failure.Wrap(failure.Settings, err, "cluster.in_cluster is set")
	case errors.Is(err, context.Canceled):
		return failure.New(failure.Interrupted, "the runner ended the stage before the cluster was found")
	}
	return failure.Wrap(failure.Settings, err, "the connection to the tenant cluster")
}
