package stages

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/socialweb-computer/tenant-executor/executor/failure"
	"github.com/socialweb-computer/tenant-executor/executor/job"
	"github.com/socialweb-computer/tenant-executor/kube/bounded"
	"github.com/socialweb-computer/tenant-executor/kube/crash"
	"github.com/socialweb-computer/tenant-executor/kube/pods"
	"github.com/socialweb-computer/tenant-executor/kube/stream"
	"github.com/socialweb-computer/tenant-executor/kube/stream/agent"
)

// Attach shows the output of a stage that a driver has started which is gone
// now, and ends as the stage ends. Stage picks the newest stage whose name
// begins so; "" means the newest of all, one that runs before one that has
// ended. It shows what the Pod still has of the output: what a driver has
// printed is freed there.
func (d *Driver) Attach(ctx context.Context, stage string, out io.Writer) error {
	ref, err := d.findPod(ctx)
	if err != nil {
		return err
	}
	container, name, err := d.findStage(ctx, ref, stage, job.Build, job.Helper)
	if err != nil {
		return err
	}
	d.log.Info("Attached to stage %s in container %s of Pod %s", name, container, ref)
	s := stream.Stage{Namespace: ref.Namespace, Pod: ref.Name, Container: string(container), Agent: podAgent, Folder: stagesFolder(container), Name: name, Output: out}

	following, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	crash.Go(following, func() { d.guard(following, cancel, ref, s.Container, nil) })
	status, err := d.follower(ref, s.Container).Run(following, s, nil)
	switch {
	case ctx.Err() != nil:
		return failure.New(failure.Detached, "detached; the stage goes on")
	case err != nil:
		return d.stageFailure(ctx, ref, err)
	}
	return d.verdict(s.Container, status)
}

// findStage looks for a stage in some containers.
func (d *Driver) findStage(ctx context.Context, ref pods.Ref, prefix string, containers ...job.Container) (job.Container, string, error) {
	var best *agent.Entry
	var where job.Container
	var seen []string
	for _, container := range containers {
		entries, err := d.listStages(ctx, ref, container)
		if err != nil {
			return "", "", err
		}
		for i, e := range entries {
			seen = append(seen, e.Stage)
			if !strings.HasPrefix(e.Stage, prefix) || best != nil && !newer(e, *best) {
				continue
			}
			best, where = &entries[i], container
		}
	}
	if best == nil {
		return "", "", failure.New(failure.NoStage, "the job's Pod %s has no stage %q; it has %s", ref, prefix, orNone(seen))
	}
	return where, best.Stage, nil
}

func newer(a, b agent.Entry) bool {
	if a.Ended != b.Ended {
		return !a.Ended
	}
	return a.Started.After(b.Started)
}

func orNone(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// longestList is the most that a list of stages may have, in bytes; a stage takes
// some hundred.
const longestList = 1 << 20

// listStages asks the agent in a container which stages there are.
func (d *Driver) listStages(ctx context.Context, ref pods.Ref, container job.Container) ([]agent.Entry, error) {
	out, stderr := bounded.Buffer{Most: longestList}, bounded.Buffer{}
	var code int
	var entries []agent.Entry
	err := d.cluster.RetryIf(ctx, requestBudget, stream.MayRepeat, func(ctx context.Context) (err error) {
		out.Reset()
		stderr.Reset()
		code, err = d.runner.Run(ctx, stream.Command{
			Namespace: ref.Namespace, Pod: ref.Name, Container: string(container),
			Args:   []string{podAgent, agent.VerbList, stagesFolder(container)},
			Stdout: &out, Stderr: &stderr,
		})
		if err != nil || code != 0 {
			return err
		}
		if entries, err = agent.ParseList(out.String()); errors.Is(err, agent.ErrCutOff) {
			return &stream.LostError{Err: err}
		}
		return err
	})
	var lost *stream.LostError
	var missing *stream.RuntimeError
	switch {
	case errors.As(err, &missing) && strings.Contains(missing.Message, "no such file"):
		return nil, nil // prepare has not brought the agent yet
	case err == nil && code != 0:
		err = fmt.Errorf("listing stages ended with exit code %d: %s", code, strings.TrimSpace(stderr.String()))
	case errors.As(err, &lost):
		return nil, failure.Wrap(failure.ConnectionLost, err, "the job's Pod %s", ref)
	case err == nil:
		return entries, nil
	}
	return nil, d.execFailure(ctx, ref, err)
}
