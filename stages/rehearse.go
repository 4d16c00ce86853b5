package stages

import (
	"context"
)

// Rehearse has the cluster judge the job's Pod without making it: whether the
// namespace is there, whether quotas and policies let the Pod in. It asks once
// and gives the cluster's answer as it is, or the *failure.Failure of a job that
// becomes no Pod.
func (d *Driver) Rehearse(ctx context.Context) error {
	plan, err := d.plan(d.host())
	if err != nil {
		return err
	}
	objects, err := plan.Build()
	if err != nil {
		return err
	}
	return d.pods.Rehearse(ctx, objects.Pod)
}
