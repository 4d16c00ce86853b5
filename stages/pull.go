package stages

import (
	"context"
	"errors"
	"time"

	"github.com/socialweb-computer/tenant-executor/executor/failure"
	"github.com/socialweb-computer/tenant-executor/executor/job"
	"github.com/socialweb-computer/tenant-executor/executor/joblog"
	"github.com/socialweb-computer/tenant-executor/executor/pod"
	"github.com/socialweb-computer/tenant-executor/kube/pods"
)

// pullBudget is how long the image of a container may fail to be pulled. Where
// another pull policy is left, that is the better try.
func (d *Driver) pullBudget(plan pod.Plan, pulls pod.Pulls) func(container string) time.Duration {
	return func(container string) time.Duration {
		if _, more := pulls.Next(container, plan.PullsFailed[container]); more {
			return 0
		}
		return d.settings.Wait.Registry.Value()
	}
}

// nextPull has the plan pull an image by its next pull policy, and says so. It
// is false where err is of another kind or no policy is left.
func (d *Driver) nextPull(plan *pod.Plan, pulls pod.Pulls, err error) bool {
	var failed *pods.ContainerError
	if !errors.As(err, &failed) || !failed.Problem.MayPullOtherwise() {
		return false
	}
	p := failed.Problem
	tried := plan.PullsFailed[p.Container]
	next, more := pulls.Next(p.Container, tried)
	if !more {
		return false
	}
	failures := map[string]int{p.Container: tried + 1}
	for container, n := range plan.PullsFailed {
		if container != p.Container {
			failures[container] = n
		}
	}
	plan.PullsFailed = failures
	d.log.Warn("Container %s: image %s could not be pulled with pull policy %s (%s). Recreating the Pod with %s.",
		p.Container, p.Image, policyName(pulls[p.Container][tried]), p.Words(), policyName(next))
	return true
}

// policyName is a pull policy as people call it.
func policyName(policy string) string {
	if policy == "" {
		return "of the cluster"
	}
	return policy
}

// pullFailure is the failure of an image that cannot be pulled or does not fit
// its node, nil for other problems. The job's author can do nothing about the
// helper image; what is wrong with a registry is the same for all images.
func (d *Driver) pullFailure(ctx context.Context, e *pods.ContainerError) *failure.Failure {
	p := e.Problem
	var cause failure.Cause
	what := "container " + p.Container + withImage(p.Image)
	switch p.Kind {
	case pods.ImageMissing:
		cause, what = failure.ImagePull, what+": the registry does not have the image"
	case pods.PullDenied:
		cause, what = failure.ImageDenied, what+": the registry does not let the cluster pull it"
	case pods.ImageInvalid:
		cause, what = failure.ImageInvalid, what+": this is not the name of an image"
	case pods.ImageAbsent:
		cause, what = failure.ImageAbsent, what+": the node does not have the image, and the pull policy is never"
	case pods.ImagePlatform:
		cause, what = failure.ImagePlatform, what+": the image is for other machines than "+d.nodeWords(ctx, e.Node)
	case pods.RegistryDown:
		if p.Unresolved() {
			cause, what = failure.RegistryDown, what+": the node cannot resolve the name of the registry"+lasted(e.After)
			break
		}
		cause, what = failure.RegistryDown, what+": the registry does not answer or fails"+lasted(e.After)
	case pods.RegistryLimit:
		cause, what = failure.RegistryLimit, what+": the registry allows no more pulls"+lasted(e.After)
	case pods.PullFailing:
		cause, what = failure.ImageStalled, what+": the image cannot be pulled"+lasted(e.After)
	default:
		return nil
	}
	f := &failure.Failure{Cause: cause, Message: what, Err: e.Cause()}
	if p.Container == string(job.Helper) && f.Class() == failure.Build {
		f.Cause = failure.HelperUnusable
	}
	return f
}

// signalled is the least exit code that a process gets which a signal has ended.
const signalled = 128

// endedEarly is the failure of a container that ended by itself before any
// stage ran in it, nil where something else ended it: an entrypoint that does
// not run its arguments, or an image whose shell is none. That is no loss of
// the Pod, and another one would end alike.
func endedEarly(p pods.Problem) *failure.Failure {
	if p.Kind != pods.Exited || p.Code >= signalled {
		return nil
	}
	cause := failure.ImageUnusable
	if p.Container == string(job.Helper) {
		cause = failure.HelperUnusable
	}
	return failure.New(cause, "container %s%s ended before anything ran in it, with exit code %d%s", p.Container, withImage(p.Image), p.Code, because(p.Words()))
}

func lasted(d time.Duration) string {
	if d < time.Second {
		return ""
	}
	return ", for " + joblog.Duration(d)
}

// nodeWords name a node and its architecture, as far as that can be read.
func (d *Driver) nodeWords(ctx context.Context, node string) string {
	limited, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	health, err := d.nodes.Health(limited, node)
	if err != nil || health.Arch == "" {
		return "node " + node
	}
	return "node " + node + ", which is " + health.Arch
}
