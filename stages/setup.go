package stages

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/socialweb-computer/tenant-executor/executor/failure"
	"github.com/socialweb-computer/tenant-executor/executor/job"
	"github.com/socialweb-computer/tenant-executor/executor/joblog"
	"github.com/socialweb-computer/tenant-executor/kube/bounded"
	"github.com/socialweb-computer/tenant-executor/kube/crash"
	"github.com/socialweb-computer/tenant-executor/kube/pods"
	"github.com/socialweb-computer/tenant-executor/kube/stream"
	"github.com/socialweb-computer/tenant-executor/kube/stream/carry"
)

// setup runs the first command in the Pod, which takes in the agent. A node
// that has just joined may not be reachable yet although its Pods run (k3s
// opens its tunnel later), so it is tried until the budget for that is used up;
// stages then find the way open.
func (d *Driver) setup(ctx context.Context, running *corev1.Pod) error {
	ref := pods.RefTo(running)
	budget := d.settings.Wait.Reach.Value()
	var code int
	var talk *handshake
	err := d.cluster.RetryIf(ctx, budget, stream.MayRepeat, func(ctx context.Context) (err error) {
		talk = newHandshake(ctx)
		defer talk.end()
		code, err = d.runner.Run(ctx, stream.Command{
			Namespace: ref.Namespace, Pod: ref.Name, Container: string(job.Helper),
			Args: setupCommand(), Stdin: talk.stdin, Stdout: talk, Stderr: &talk.stderr,
		})
		if err == nil && code == 0 && !talk.ready() {
			err = &stream.LostError{}
		}
		return err
	})
	var long *bounded.TooLongError
	switch {
	case errors.As(err, &long):
		return failure.Wrap(failure.HelperUnusable, err, "what sh of the helper image %s answers is no shell's", imageOf(running, job.Helper))
	case talk != nil && talk.failed() != nil:
		return failure.Wrap(failure.Unsupported, talk.failed(), "the node of the job's Pod %s", ref)
	case err != nil && stream.MayRepeat(err):
		return failure.Wrap(failure.ReachTimeout, err, "the Pod %s runs, but no command reached it within %s", ref, joblog.Duration(budget))
	case err != nil:
		return d.execFailure(ctx, ref, err)
	case code == setupLacksHelper:
		return failure.New(failure.HelperUnusable,
			"the helper image %s has neither gitlab-runner nor gitlab-runner-helper, so artifacts and caches would be lost", imageOf(running, job.Helper))
	case code != 0:
		return failure.New(failure.HelperUnusable, "readying the helper container ended with exit code %d: %s", code, strings.TrimSpace(talk.stderr.String()))
	}
	return nil
}

// imageOf is the image of one of the Pod's containers.
func imageOf(p *corev1.Pod, container job.Container) string {
	for _, c := range p.Spec.Containers {
		if c.Name == string(container) {
			return c.Image
		}
	}
	return ""
}

// handshake is the driver's side of setup.sh: it hears which machine the node
// is and answers with the agent for it.
type handshake struct {
	ctx    context.Context
	stdin  *io.PipeReader
	answer *io.PipeWriter
	stderr bounded.Buffer

	mu      sync.Mutex
	heard   bounded.Buffer
	replied bool
	err     error
}

func newHandshake(ctx context.Context) *handshake {
	h := &handshake{ctx: ctx}
	h.stdin, h.answer = io.Pipe()
	return h
}

// Write takes what setup.sh prints.
func (h *handshake) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if n, err := h.heard.Write(p); err != nil {
		return n, err
	}
	line, _, whole := strings.Cut(h.heard.String(), "\n")
	if !whole || h.replied {
		return len(p), nil
	}
	h.replied = true
	machine, unpack, _ := strings.Cut(line, " ")
	agent, err := carry.Agent(machine)
	if err != nil {
		h.err = err
		_ = h.answer.CloseWithError(err)
		return len(p), nil
	}
	program := agent.Unpacked
	if unpack == "gzip" {
		program = agent.Packed
	}
	crash.Go(h.ctx, func() {
		sum := sha256.Sum256(agent.Unpacked)
		_, err := io.WriteString(h.answer, hex.EncodeToString(sum[:])+"\n")
		if err == nil {
			_, err = h.answer.Write(program)
		}
		_ = h.answer.CloseWithError(err) // nil ends the input
	})
	return len(p), nil
}

func (h *handshake) failed() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.err
}

// ready says whether setup.sh has come to its end.
func (h *handshake) ready() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.err != nil || strings.HasSuffix(h.heard.String(), "\nready\n")
}

// end lets go of an answer that nobody takes.
func (h *handshake) end() { _ = h.stdin.CloseWithError(io.ErrClosedPipe) }
