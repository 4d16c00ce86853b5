// Command bench measures the driver on a local tenant cluster, side by side
// with what Kubernetes itself takes, in one run. `make bench` runs it.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"github.com/socialweb-computer/tenant-executor/examples/testbed"
)

// rounds is how often each figure is measured; the median counts.
const rounds = 7

// execVerb makes this program do what kubectl exec does, and nothing else:
// bench exec KUBECONFIG POD COMMAND.
const execVerb = "exec"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	only := ""
	if len(os.Args) == 2 {
		only = os.Args[1]
	}
	do := func() error { return run(ctx, only, os.Stdout) }
	if len(os.Args) == 5 && os.Args[1] == execVerb {
		do = func() error {
			return plainExec(ctx, os.Args[2], os.Args[3], []string{"sh", "-c", os.Args[4]}, os.Stdout)
		}
	}
	if err := do(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, only string, out io.Writer) (err error) {
	root, err := testbed.Root()
	if err != nil {
		return err
	}
	bin, err := testbed.Programs(root)
	if err != nil {
		return err
	}
	tenant, err := testbed.StartTenant(ctx, filepath.Join(bin, "localtenant"), testbed.TenantOptions{
		Name: cmp.Or(os.Getenv("BENCH_TENANT"), "bench"), Ceiling: 1, PodsPerNode: 1, Hold: 10 * time.Minute, BootTime: 0, Log: io.Discard,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, tenant.Down(context.WithoutCancel(ctx))) }()
	dir, err := os.MkdirTemp("", "tenant-executor-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	bed, err := testbed.Setup(ctx, tenant, filepath.Join(bin, "tenant-executor"), dir, filepath.Join(root, "examples", "pipelines"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bed.Close()) }()

	b := &bench{bed: bed, out: out}
	switch only {
	case warmVerb:
		return b.warm(ctx)
	case coldVerb:
		return b.cold(ctx)
	case podEndVerb:
		return b.podEnd(ctx)
	}
	return errors.Join(b.run(ctx), b.podEnd(ctx), b.warm(ctx), b.cold(ctx))
}
