//go:build e2e

package e2e

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/socialweb-computer/tenant-executor/examples/testbed"
)

// bed is what the tests share; TestMain makes it.
var bed *testbed.Bed

func TestMain(m *testing.M) {
	if testbed.IsApart() {
		os.Exit(testbed.RunApart(os.Stdin, os.Stdout))
	}
	if flag.Parse(); flag.Lookup("test.list").Value.String() != "" {
		os.Exit(m.Run()) // names alone, which take no cluster
	}
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		code = 1
	}
	os.Exit(code)
}

// run starts the cluster, runs the tests, takes the cluster down and looks for
// leftovers: they are a failure like any other.
func run(m *testing.M) (code int, err error) {
	ctx := context.Background()
	root, err := testbed.Root()
	if err != nil {
		return 1, err
	}
	bin, err := testbed.Programs(root)
	if err != nil {
		return 1, err
	}
	tenant, err := testbed.StartTenant(ctx, filepath.Join(bin, "localtenant"), testbed.TenantOptions{
		Name: cmp.Or(os.Getenv("E2E_TENANT"), "e2e"), Ceiling: 2, PodsPerNode: 1, Hold: 5 * time.Second, BootTime: time.Second, Log: os.Stderr,
	})
	if err != nil {
		return 1, err
	}
	dir, err := os.MkdirTemp("", "tenant-executor-e2e-")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a temporary folder
	source := filepath.Join(dir, "source")
	if err := os.Mkdir(source, 0o755); err != nil {
		return 1, err
	}
	if err := os.WriteFile(filepath.Join(source, "hello.txt"), []byte("hello\n"), 0o644); err != nil {
		return 1, err
	}
	if bed, err = testbed.Setup(ctx, tenant, filepath.Join(bin, "tenant-executor"), dir, source); err != nil {
		return 1, err
	}
	code = m.Run()
	if err := bed.Close(); err != nil {
		return 1, err
	}
	if err := tenant.Down(ctx); err != nil {
		return 1, err
	}
	left, err := tenant.Leftovers(ctx)
	if err == nil && left != "" {
		err = fmt.Errorf("left behind after down:\n%s", left)
	}
	return code, err
}
