package stages

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/socialweb-computer/tenant-executor/executor/failure"
	"github.com/socialweb-computer/tenant-executor/kube/pods"
	"github.com/socialweb-computer/tenant-executor/kube/stream"
)

// lossName is a file in the folder that the runner makes for each attempt at a
// job; see bookmark. It names the Pod of which a stage has said that it is lost:
// the runner calls further stages all the same, and each would say so again. That
// of a node that does not answer would also wait as long as the first.
const lossName = "tenant-executor-lost"

// lossPath is the file's path, "" by hand.
func (d *Driver) lossPath() string {
	if beside := d.variables.ExitCodeFile(); beside != "" {
		return filepath.Join(filepath.Dir(beside), lossName)
	}
	return ""
}

// noteLoss tells later stages that the job log says of a loss.
func (d *Driver) noteLoss(ref pods.Ref, err error) {
	path := d.lossPath()
	if path == "" {
		return
	}
	var cause failure.Cause
	if err != nil {
		cause = failure.Of(err).Cause
	}
	switch cause {
	case failure.PodLost, failure.NodeLost:
		// Where it cannot be written a later stage finds out by itself.
		_ = os.WriteFile(path, []byte(ref.Name), 0o600)
	case failure.AgentRemoved:
		d.tellRemovedOnce(path, ref, failure.Of(err))
	case failure.ConnectionLost:
		_ = os.WriteFile(path, []byte(unreached+ref.Name), 0o600)
	case "", failure.ScriptFailed:
		if d.wasUnreached(ref.Name) {
			_ = os.Remove(path) // it was reached again
		}
	}
}

// tellRemovedOnce has later stages say in a line that the driver's folder is gone.
func (d *Driver) tellRemovedOnce(path string, ref pods.Ref, f *failure.Failure) {
	if noted, err := os.ReadFile(path); err == nil && string(noted) == emptied+ref.Name {
		d.log.Info("Not run: the driver's folder in the job's Pod is gone, see above.")
		f.Said = true
		return
	}
	_ = os.WriteFile(path, []byte(emptied+ref.Name), 0o600) // see above
}

// emptied is before the name of a Pod in the file where a script has removed the
// driver's folder.
const emptied = "emptied "

// unreached is before the name of a Pod in the file that was not lost, but not
// reached for as long as run.outage says.
const unreached = "unreached "

// shortOutage is for how long the stages after that one try: it has waited long
// enough for all of them, and the runner calls up to five more.
const shortOutage = 30 * time.Second

// outage is for how long a stage tries to reach its Pod.
func (d *Driver) outage(pod string) time.Duration {
	outage := d.settings.Run.Outage.Value()
	if d.wasUnreached(pod) {
		return min(outage, shortOutage)
	}
	return outage
}

// wasUnreached reports whether an earlier stage has not reached the Pod.
func (d *Driver) wasUnreached(pod string) bool {
	path := d.lossPath()
	if path == "" {
		return false
	}
	noted, err := os.ReadFile(path)
	return err == nil && string(noted) == unreached+pod
}

// stillLost is the failure of a stage whose Pod was lost to an earlier one, nil
// where it was not, or where its node is back.
func (d *Driver) stillLost(ctx context.Context, ref pods.Ref) error {
	path := d.lossPath()
	if path == "" {
		return nil
	}
	if noted, err := os.ReadFile(path); err != nil || string(noted) != ref.Name {
		return nil
	}
	lost := d.podFailure(ctx, ref, "")
	if lost == nil {
		return nil
	}
	d.log.Info("Not run: the job's Pod is lost, see above.")
	f := failure.Of(lost)
	f.Said = true
	return f
}

// asTheRunnerSays is a failure that the runner tells of in its own words. By hand
// there is no runner.
func (d *Driver) asTheRunnerSays(f *failure.Failure) *failure.Failure {
	f.Said = d.variables.ExitCodeFile() != ""
	return f
}

// podGone is the failure of a Pod that reading it has not found.
func podGone(ref pods.Ref, err error) error {
	if pods.Replaced(err) {
		return failure.New(failure.PodLost, "the job's Pod %s was deleted, and another Pod has its name now", ref)
	}
	return failure.New(failure.PodLost, "the job's Pod %s was deleted while the stage ran", ref)
}

// withoutAgent is the failure of a stage that found no agent in its container,
// nil where err is something else, or where the Pod is the very one that prepare
// has readied and is well: then something in the Pod has taken the agent away.
func (d *Driver) withoutAgent(ctx context.Context, ref pods.Ref, err error) error {
	var runtime *stream.RuntimeError
	if !errors.As(err, &runtime) {
		return nil
	}
	if lost := d.podFailure(ctx, ref, ""); lost != nil {
		return lost
	}
	if noted := d.podNote().read(); noted != nil && noted.UID == ref.UID && !noted.Ready {
		return failure.New(failure.Contract, "prepare has not readied the job's Pod %s", ref)
	}
	return nil
}
