package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/socialweb-computer/tenant-executor/examples/testbed"
	"github.com/socialweb-computer/tenant-executor/kube/stream/carry"
)

// logSize is how much output the throughput is measured with, in bytes.
const logSize = 200_000_000

// stages compares single stages of the driver with plain execs of the same
// command, as kubectl runs them, in one Pod: with no output and with much.
func (b *bench) stages(ctx context.Context) (err error) {
	hand, err := b.byHand()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, hand.clean(ctx)) }()
	if err := hand.run(ctx, io.Discard, "prepare"); err != nil {
		return err
	}
	client, err := b.bed.Admin(ctx)
	if err != nil {
		return err
	}
	pods, err := client.Pods(testbed.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil || len(pods.Items) != 1 {
		return fmt.Errorf("looking for the Pod: %d there, %w", len(pods.Items), err)
	}
	pod := pods.Items[0].Name

	lines := fmt.Sprintf("yes 'a line of the log as jobs write them, some sixty bytes long' | head -c %d", logSize)
	empty, err := b.compare(ctx, hand, pod, "true", 0, 2*rounds)
	if err != nil {
		return err
	}
	full, err := b.compare(ctx, hand, pod, lines, logSize, rounds)
	if err != nil {
		return err
	}
	size := func(d time.Duration) float64 { return logSize / 1e6 / d.Seconds() }
	b.print("\nA stage against a plain exec of the same command in the same Pod, median of each\n\n")
	b.print("                            stage       exec        ratio\n")
	b.print("  no output                 %s  %s  %.2f\n", seconds(empty.stage), seconds(empty.exec), ratio(empty.stage, empty.exec))
	b.print("  200 MB of log             %.0f MB/s    %.0f MB/s    %.2f\n\n", size(full.stage), size(full.exec), ratio(full.exec, full.stage))
	agent, err := carry.Agent("x86_64")
	if err != nil {
		return err
	}
	b.print("The agent, sent once a job: %d bytes, and %d where the helper image has no gzip\n", len(agent.Packed), len(agent.Unpacked))
	return nil
}

// pair holds the medians of a stage and an exec.
type pair struct{ stage, exec time.Duration }

// compare measures in turn, so that both meet the same machine. Each is a
// process of its own, as it is in life.
func (b *bench) compare(ctx context.Context, hand *hand, pod, command string, bytes int64, times int) (pair, error) {
	script, err := hand.script(command)
	if err != nil {
		return pair{}, err
	}
	var stage, plain []time.Duration
	for range times {
		d, err := timed(bytes, func(out io.Writer) error { return hand.run(ctx, out, "run", script, "build_script") })
		if err != nil {
			return pair{}, err
		}
		stage = append(stage, d)
		if d, err = timed(bytes, func(out io.Writer) error { return b.kubectlExec(ctx, out, pod, command) }); err != nil {
			return pair{}, err
		}
		plain = append(plain, d)
	}
	return pair{median(stage), median(plain)}, nil
}

// timed measures what writes so many bytes.
func timed(want int64, do func(io.Writer) error) (time.Duration, error) {
	var n counter
	began := time.Now()
	err := do(&n)
	took := time.Since(began)
	if err == nil && int64(n) != want {
		err = fmt.Errorf("%d bytes of output, want %d", n, want)
	}
	return took, err
}

type counter int64

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}

// kubectlExec is a process that does what kubectl exec does: this program
// itself, since kubectl may not be there.
func (b *bench) kubectlExec(ctx context.Context, out io.Writer, pod, command string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	status, err := b.bed.Status(ctx)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, self, execVerb, status.Kubeconfig, pod, command)
	cmd.Stdout, cmd.Stderr = out, os.Stderr
	return cmd.Run()
}

// hand runs stages as a person does, without a runner.
type hand struct {
	bed *testbed.Bed
	job string
	dir string
}

func (b *bench) byHand() (*hand, error) {
	dir, err := os.MkdirTemp("", "tenant-executor-bench-hand-")
	if err != nil {
		return nil, err
	}
	h := &hand{bed: b.bed, job: filepath.Join(dir, "job.json"), dir: dir}
	data, err := json.Marshal(b.bed.Job("true"))
	if err != nil {
		return nil, err
	}
	return h, os.WriteFile(h.job, data, 0o600)
}

func (h *hand) run(ctx context.Context, out io.Writer, args ...string) error {
	cmd := exec.CommandContext(ctx, h.bed.Driver, append(args, "--config", h.bed.Config, "--job", h.job)...)
	cmd.Stdout, cmd.Stderr = out, os.Stderr
	return cmd.Run()
}

func (h *hand) script(text string) (string, error) {
	path := filepath.Join(h.dir, "script")
	return path, os.WriteFile(path, []byte(text), 0o600)
}

func (h *hand) clean(ctx context.Context) error {
	return errors.Join(h.run(context.WithoutCancel(ctx), io.Discard, "cleanup"), os.RemoveAll(h.dir))
}
