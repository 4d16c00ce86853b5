package stages

import (
	"context"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/socialweb-computer/tenant-executor/executor/job"
	"github.com/socialweb-computer/tenant-executor/executor/joblog"
	"github.com/socialweb-computer/tenant-executor/kube/bounded"
	"github.com/socialweb-computer/tenant-executor/kube/pods"
	"github.com/socialweb-computer/tenant-executor/kube/stream"
	"github.com/socialweb-computer/tenant-executor/kube/stream/agent"
)

// freshFor is how long after its joining a node's Pod network may still come up.
// Network plugins report a node ready before their routes are there (rke2#10360,
// cilium#37477).
const freshFor = 5 * time.Minute

// unreachedNote begins the name of a state file for an address that no fresh node
// has reached in all the time that it has; the runner may fetch from elsewhere.
// Later jobs look once and do not wait, until the note is old.
const (
	unreachedNote = "unreached"
	unreachedFor  = 24 * time.Hour
)

// awaitSources waits until the job's repository can be reached from inside the Pod
// of a node that has just joined: get_sources fails the job where it cannot. It is
// no condition, since the job may need no network, its git server may be down, and
// git may know another way: then the stages go on with a warning.
func (d *Driver) awaitSources(ctx context.Context, running *corev1.Pod, since time.Time) {
	address := d.job.SourcesAddress(d.variables, d.cloneURL())
	if address == "" || !d.fresh(ctx, running) {
		return
	}
	from, budget := d.clock.Now(), d.settings.Wait.Reach.Value()
	if d.unreached(address) {
		budget = 0
	}
	for said := false; ; {
		missing, err := d.missing(ctx, pods.RefTo(running), address)
		now := d.clock.Now()
		switch {
		case err != nil:
			return // the stages find out whether commands still reach the Pod
		case missing == "":
			if said {
				d.log.Info("%s is reached from the job's Pod, after %s", address, joblog.Duration(now.Sub(from)))
			}
			_ = d.state.Remove(unreachedNote)
			return
		case now.Sub(since) >= budget:
			d.log.Warn("%s, from where the job's repository is fetched, is not reached from the job's Pod: %s. The job goes on; where it needs the repository, it will fail.", address, missing)
			d.noteUnreached(address)
			return
		case !said:
			said = true
			d.log.Info("Waiting for the node's network: %s is not reached from the job's Pod (%s)", address, missing)
		}
	}
}

// cloneURL is the runner's clone_url, as far as its configuration is known.
func (d *Driver) cloneURL() string {
	if d.origin == nil {
		return ""
	}
	return d.origin.Runner.Text("clone_url")
}

// fresh reports whether the Pod's node has joined a short time before the Pod was
// made, by the cluster's own clock.
func (d *Driver) fresh(ctx context.Context, running *corev1.Pod) bool {
	limited, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	health, err := d.nodes.Health(limited, running.Spec.NodeName)
	return err == nil && health.Joined.After(running.CreationTimestamp.Add(-freshFor))
}

// missing asks the agent in the helper container, where the sources are fetched,
// what is missing to reach an address; "" is for nothing. The agent waits a little.
func (d *Driver) missing(ctx context.Context, ref pods.Ref, address string) (string, error) {
	var out, stderr bounded.Buffer
	err := d.cluster.RetryIf(ctx, d.settings.Wait.Reach.Value(), stream.MayRepeat, func(ctx context.Context) error {
		out, stderr = bounded.Buffer{}, bounded.Buffer{}
		_, err := d.runner.Run(ctx, stream.Command{
			Namespace: ref.Namespace, Pod: ref.Name, Container: string(job.Helper),
			Args:   []string{podAgent, agent.VerbReach, address},
			Stdout: &out, Stderr: &stderr,
		})
		return err
	})
	return oneLine(strings.TrimSpace(out.String())), err
}

// unreached reports whether the address was waited for in vain of late.
func (d *Driver) unreached(address string) bool {
	data, err := d.state.ReadFile(unreachedNote)
	if err != nil {
		return false
	}
	at, noted, _ := strings.Cut(string(data), " ")
	then, err := time.Parse(time.RFC3339, at)
	now := d.clock.Now()
	return err == nil && noted == address && now.Sub(then) < unreachedFor && !then.After(now)
}

// noteUnreached remembers it. Where it cannot be noted the next job waits as long.
func (d *Driver) noteUnreached(address string) {
	if !d.unreached(address) {
		_ = d.state.WriteFile(unreachedNote, []byte(d.clock.Now().UTC().Format(time.RFC3339)+" "+address))
	}
}
