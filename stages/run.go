package stages

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/socialweb-computer/tenant-executor/executor/failure"
	"github.com/socialweb-computer/tenant-executor/executor/job"
	"github.com/socialweb-computer/tenant-executor/executor/pod"
	"github.com/socialweb-computer/tenant-executor/kube/cluster"
	"github.com/socialweb-computer/tenant-executor/kube/pods"
	"github.com/socialweb-computer/tenant-executor/kube/stream"
)

// exitKilled is the exit code of a process that SIGKILL ended.
const exitKilled = 137

// Times of a stage that does not end by itself.
const (
	// connectBudget is how long starting a stage is tried while the apiserver
	// or the node cannot be reached. Nothing has run by then.
	connectBudget = time.Minute
	// stopSlack is what stopping a stage may take beyond its grace.
	stopSlack = 20 * time.Second
	// lostStop is how long a stage whose connection broke is tried to be
	// stopped, so that it does not run on beside after_script.
	lostStop = 15 * time.Second
	// lookBudget is how long it is tried to find out what became of a Pod.
	lookBudget = 10 * time.Second
)

// Run runs one stage's script in the container that the stage belongs to, and
// writes the script's output to out. A script is sent once: what may be tried
// again is only what has not started.
func (d *Driver) Run(ctx context.Context, script []byte, stage string, out io.Writer) error {
	ref, err := d.findPod(ctx)
	if err != nil {
		return err
	}
	id, err := newAttempt(nil)
	if err != nil {
		return err
	}
	s := &stageRun{driver: d, ref: ref, container: string(job.ContainerFor(stage)), id: id, script: script, out: &cutoff{to: out}}
	return s.run(ctx)
}

// findPod is the Pod of this job: by the name that config chose, or by label.
func (d *Driver) findPod(ctx context.Context) (pods.Ref, error) {
	if d.hint != "" {
		return pods.Ref{Namespace: d.settings.Kubernetes.Namespace, Name: d.hint}, nil
	}
	list, err := d.pods.List(ctx, d.settings.Kubernetes.Namespace, pod.Selector(d.job))
	if err != nil {
		return pods.Ref{}, d.requestFailure(err)
	}
	// The newest attempt counts; a Pod on its way out belongs to an older one.
	for i := len(list) - 1; i >= 0; i-- {
		if list[i].DeletionTimestamp == nil {
			return pods.RefTo(&list[i]), nil
		}
	}
	return pods.Ref{}, failure.New(failure.PodLost, "job %d has no Pod in namespace %s", d.job.ID, d.settings.Kubernetes.Namespace)
}

// stageRun is one run of one script.
type stageRun struct {
	driver    *Driver
	ref       pods.Ref
	container string
	id        string
	script    []byte
	out       *cutoff
}

func (s *stageRun) run(ctx context.Context) error {
	// Several things can end a stage: the script, the runner, a node that is
	// gone. The command gets a context of its own, so that after the runner's
	// TERM it lives until the script's processes are ended.
	command, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	type result struct {
		code int
		err  error
	}
	done := make(chan result, 1)
	go func() {
		code, err := s.start(command, ctx)
		done <- result{code, err}
	}()
	go s.guard(command, cancel)

	select {
	case r := <-done:
		if cause := context.Cause(command); cause != nil {
			return cause
		}
		if ctx.Err() != nil {
			return s.cancelled(ctx)
		}
		return s.verdict(ctx, r.code, r.err)
	case <-ctx.Done():
		return s.cancelled(ctx)
	}
}

// start sends the script and waits for its end. Until it has started, a
// connection that fails is tried again; connecting ends with the runner's
// context.
func (s *stageRun) start(ctx, connecting context.Context) (int, error) {
	begun := &marker{line: "started " + s.id + "\n", to: s.out}
	started := s.driver.clock.Now()
	for {
		begun.reset()
		code, err := s.driver.runner.Run(ctx, stream.Command{
			Namespace: s.ref.Namespace, Pod: s.ref.Name, Container: s.container,
			Args:   stageCommand("start", s.container, s.id, strconv.Itoa(len(s.script))),
			Stdin:  bytes.NewReader(s.script),
			Stdout: s.out, Stderr: begun,
		})
		switch {
		case err == nil && !begun.seen():
			return 0, &startError{code: code, text: begun.text()}
		case err == nil:
			return code, nil
		}
		tried := s.driver.clock.Now().Sub(started)
		if tried > connectBudget || !stream.MayReachLater(err) && !cluster.MaySettle(err, tried) {
			return 0, err
		}
		select {
		case <-connecting.Done():
			return 0, connecting.Err()
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-s.driver.clock.After(time.Second):
		}
	}
}

// startError says that the stage's program ended before the script began.
type startError struct {
	code int
	text string
}

func (e *startError) Error() string {
	return fmt.Sprintf("the script could not be started (exit code %d): %s", e.code, e.text)
}

// verdict is what the end of the script means for the job.
func (s *stageRun) verdict(ctx context.Context, code int, err error) error {
	var lost *stream.LostError
	switch {
	case err == nil && code == 0:
		return nil
	case errors.As(err, &lost):
		s.out.cut()
		s.stop(ctx, lostStop, 0)
		if f := s.podFailure(ctx); f != nil {
			return f
		}
		return failure.Wrap(failure.ConnectionLost, err, "the stage in container %s", s.container)
	case err != nil:
		return s.driver.execFailure(ctx, s.ref, err)
	}
	// A Pod that is being deleted has its processes killed, which looks like a
	// script that fails.
	if f := s.podFailure(ctx); f != nil {
		return f
	}
	return failure.Script(code)
}

// podFailure is the failure of the Pod itself or of its node, nil if both are
// well or nobody knows.
func (s *stageRun) podFailure(ctx context.Context) error {
	ctx, cancel := detach(ctx, lookBudget)
	defer cancel()
	var found *corev1.Pod
	err := cluster.Retry(ctx, lookBudget, func(ctx context.Context) (err error) {
		found, err = s.driver.pods.Get(ctx, s.ref)
		return err
	})
	if apierrors.IsNotFound(err) {
		return failure.New(failure.PodLost, "the job's Pod %s was deleted while the stage ran", s.ref)
	}
	if err != nil {
		return nil
	}
	if loss := lossOf(found, s.container); loss != nil {
		return loss
	}
	health, err := s.driver.nodes.Health(ctx, found.Spec.NodeName)
	switch {
	case err != nil || health.Ready:
		return nil
	case !health.Exists:
		return failure.New(failure.NodeLost, "node %s of the job's Pod %s does not exist any more", found.Spec.NodeName, s.ref)
	}
	return failure.New(failure.NodeLost, "node %s of the job's Pod %s is not ready (%s)", found.Spec.NodeName, s.ref, health.Reason)
}

// lossOf says what is the matter with a Pod in which a stage runs; nil if
// nothing is.
func lossOf(found *corev1.Pod, container string) error {
	state := pods.StateOf(found)
	name := found.Namespace + "/" + found.Name
	for _, p := range state.Problems {
		if p.Container == container && p.Kind == pods.OutOfMemory {
			return containerFailure(p)
		}
	}
	switch {
	case found.DeletionTimestamp != nil:
		return failure.New(failure.PodLost, "the job's Pod %s is being deleted%s", name, because(state.Detail))
	case state.Phase == pods.Ended:
		return failure.New(failure.PodLost, "the job's Pod %s ended%s", name, because(state.Detail))
	}
	return nil
}

func because(detail string) string {
	if detail == "" {
		return ""
	}
	return ": " + detail
}

// execFailure is the failure of a command that did not run.
func (d *Driver) execFailure(ctx context.Context, ref pods.Ref, err error) error {
	var runtime *stream.RuntimeError
	var begin *startError
	switch {
	case ctx.Err() != nil:
		return err
	case apierrors.IsNotFound(err):
		return failure.Wrap(failure.PodLost, err, "the job's Pod %s", ref)
	case errors.As(err, &runtime), errors.As(err, &begin):
		return failure.Wrap(failure.ImageUnusable, err, "the job's Pod %s", ref)
	case stream.MayReachLater(err):
		return failure.Wrap(failure.Unreachable, err, "the job's Pod %s", ref)
	}
	return d.requestFailure(err)
}

// cancelled ends the script's processes and keeps the Pod: after a cancelled
// script the runner still runs after_script and uploads. What the script
// writes while it dies is not shown: some shells print their whole text, with
// the job's secrets.
func (s *stageRun) cancelled(ctx context.Context) error {
	s.out.cut()
	grace := s.driver.settings.Run.CancelGrace.Value()
	s.stop(ctx, grace+stopSlack, grace)
	return failure.New(failure.Cancelled, "the runner ended the stage")
}

// stop ends every process of the stage's container but its keeper.
func (s *stageRun) stop(ctx context.Context, limit, grace time.Duration) {
	ctx, cancel := detach(ctx, limit)
	defer cancel()
	var said bytes.Buffer
	var code int
	err := cluster.RetryIf(ctx, limit, stream.MayReachLater, func(context.Context) (err error) {
		code, err = s.driver.runner.Run(ctx, stream.Command{
			Namespace: s.ref.Namespace, Pod: s.ref.Name, Container: s.container,
			Args:   stageCommand("stop", s.container, s.id, strconv.Itoa(int(grace/time.Second))),
			Stdout: &said, Stderr: &said,
		})
		return err
	})
	switch {
	case apierrors.IsNotFound(err):
		// No Pod, no processes.
	case err != nil:
		s.driver.log.Warn("The script's processes could not be ended: %v", err)
	case code != 0:
		s.driver.log.Warn("Some of the script's processes could not be ended %s", strings.TrimSpace(said.String()))
	}
}
