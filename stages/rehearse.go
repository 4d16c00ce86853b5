package stages

import (
	"context"
	"errors"
)

// ErrOwnNamespace says that a job's Pod cannot be judged before its namespace is
// there.
var ErrOwnNamespace = errors.New("each job has a namespace of its own, which is made with it")

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
	if objects.Namespace != nil {
		return ErrOwnNamespace
	}
	return d.pods.Rehearse(ctx, objects.Pod)
}
