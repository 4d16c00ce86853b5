//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/socialweb-computer/tenant-executor/examples/testbed"
)

// A pipeline as teams write them, run by the job runner as GitLab Runner would:
// two jobs at a time, on two nodes.
func TestSuiteOfJobs(t *testing.T) {
	root, err := testbed.Root()
	if err != nil {
		t.Fatal(err)
	}
	status, err := bed.Status(limited(t, time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	config := filepath.Join(dir, "config.toml")
	call := func(stage string) string {
		return fmt.Sprintf("%s_exec = %q\n%s_args = [%q, \"--config\", %q]\n", stage, bed.Driver, stage, stage, bed.Config)
	}
	text := "[[runners]]\nname = \"suite\"\nurl = \"http://gitlab.invalid\"\ntoken = \"glrt-t3_suite-token-of-nobody\"\nexecutor = \"custom\"\nsafe_directory_checkout = true\n[runners.custom]\n" +
		call("config") + call("prepare") + call("run") + call("cleanup")
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(limited(t, 2*jobLimit), filepath.Join(filepath.Dir(bed.Driver), "localrunner"), "run",
		"--config", config, "--listen", status.BridgeAddress+":0", "--cache-store", filepath.Join(dir, "caches"),
		"--parallel", "2", "--variable", "REGISTRY="+bed.Registry, filepath.Join(root, "examples", "pipelines", "suite.yml"))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, plain(string(out)))
	}
}
