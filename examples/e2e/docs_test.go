//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/socialweb-computer/tenant-executor/examples/testbed"
)

// The commands of the quick start do what it says, in its order. What sets the
// tenant up and takes it down is left out: the tests share theirs.
func TestQuickStart(t *testing.T) {
	root, err := testbed.Root()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, "docs", "quick-start.md"))
	if err != nil {
		t.Fatal(err)
	}
	script := "set -eu\n"
	for i, block := range strings.Split(string(text), "```") {
		if commands, found := strings.CutPrefix(block, "sh\n"); found && i%2 == 1 {
			script += commands
		}
	}
	dir := t.TempDir()
	for _, step := range []struct{ documented, here string }{
		{"make deps ", "true "},
		{"export PATH=$PWD/bin:$PATH", "export PATH=" + filepath.Dir(bed.Program) + ":$PATH"},
		{"localtenant up --ceiling 2 --pods-per-node 1\n", "\n"},
		{"localtenant driver-config >", "localtenant driver-config --name " + bed.Name + " >"},
		{"localtenant down\n", "\n"},
	} {
		if !strings.Contains(script, step.documented) {
			t.Fatalf("the quick start has no step %q any more:\n%s", step.documented, script)
		}
		script = strings.ReplaceAll(script, step.documented, step.here)
	}
	cmd := exec.CommandContext(limited(t, jobLimit), "sh", "-c", script)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), fmt.Sprintf("HOME=%s", dir))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v in\n%s\n%s", err, script, out)
	}
	if !strings.Contains(string(out), "runs on node") || !strings.Contains(string(out), "hello from job-1-") {
		t.Errorf("the quick start says:\n%s", out)
	}
}
