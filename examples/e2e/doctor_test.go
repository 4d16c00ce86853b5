//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/socialweb-computer/tenant-executor/examples/testbed"
)

// diagnosis is a line of doctor's JSON output.
type diagnosis struct{ Check, State, Evidence, Remedy string }

// doctor examines with a configuration, and with a runner's config.toml that
// names the bed's GitLab.
func doctor(t *testing.T, config string, args ...string) (found map[string]diagnosis, code int) {
	t.Helper()
	gitlab := ""
	for _, v := range bed.Job("true").Variables {
		if v.Key == "CI_SERVER_URL" {
			gitlab = v.Value
		}
	}
	var stages strings.Builder
	for _, stage := range []string{"config", "prepare", "run", "cleanup"} {
		fmt.Fprintf(&stages, "%s_exec = %q\n%s_args = [%q, \"--config\", %q]\n", stage, bed.Driver, stage, stage, config)
	}
	runner := filepath.Join(t.TempDir(), "config.toml")
	text := fmt.Sprintf("concurrent = %d\n[[runners]]\nname = \"e2e\"\nurl = %q\ntoken = \"glrt-t3_doctorsown\"\nexecutor = \"custom\"\nsafe_directory_checkout = true\n"+
		"[runners.custom_build_dir]\nenabled = true\n[runners.custom]\n%s", bed.Ceiling, gitlab, stages.String())
	if err := os.WriteFile(runner, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(limited(t, jobLimit), bed.Driver, append([]string{"doctor", "--output", "json", "--config", config, "--runner-config", runner}, args...)...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	var report struct{ Checks []diagnosis }
	if err := json.Unmarshal(out, &report); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	found = map[string]diagnosis{}
	for _, d := range report.Checks {
		if _, known := found[d.Check]; !known {
			found[d.Check] = d
		}
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("doctor said\n%s", out)
		}
	})
	return found, cmd.ProcessState.ExitCode()
}

// A real cluster is well, and its probe boots a node, pulls images, runs a
// command and reaches GitLab. Nothing stays.
func TestDoctorOfARealCluster(t *testing.T) {
	config := probeConfig(t, "")
	found, code := doctor(t, config, "--probe")
	if code != 0 {
		t.Errorf("exit code %d", code)
	}
	for name, d := range found {
		// The configuration is read from a folder that the system made, and the
		// helper image of the tests has no LFS.
		if d.State != "ok" && name != "probe-helper" && name != "probe-dns" {
			t.Errorf("found %q", d)
		}
	}
	for name, says := range map[string]string{
		"apiserver": "Kubernetes v1.", "identity": "tenant-executor", "rights": "in namespace " + testbed.Namespace,
		"probe-pod": "images", "probe-exec": "upgraded", "probe-gitlab": "answers", "probe-second": "second Pod", "probe-end": "gone",
	} {
		if !strings.Contains(found[name].Evidence, says) {
			t.Errorf("%q lacks %q", found[name], says)
		}
	}
	list, err := admin(t).Pods(testbed.Namespace).List(context.Background(), metav1.ListOptions{LabelSelector: "tenant-executor.socialweb.computer/runner=doctorsow"})
	if err != nil || len(list.Items) != 0 {
		t.Errorf("%d Pods are left (%v)", len(list.Items), err)
	}
}

// probeConfig tells how the gateway counts, with more TOML at its end.
func probeConfig(t *testing.T, more string) string {
	t.Helper()
	config, err := bed.WriteConfig(testbed.Namespace, more)
	if err != nil {
		t.Fatal(err)
	}
	replaceInFile(t, config, "[tenant]\n", "[tenant]\npods_per_node = 1\n")
	return config
}

// Only a second Pod shows how the gateway counts, whatever it was told: the same
// question twice, with another gateway.
func TestDoctorProbesPodsPerNode(t *testing.T) {
	for _, counts := range []struct{ perNode, state, says string }{
		{"8", "failure", "no node came for a second Pod within"}, {"1", "ok", "was booted for a second Pod"},
	} {
		t.Run(counts.perNode+" Pods a node", func(t *testing.T) {
			fromZero(t, "--hold", "10s", "--pods-per-node", counts.perNode)
			defer localtenant(t, "gateway", "set", "--pods-per-node", "1")
			found, code := doctor(t, probeConfig(t, "[wait]\nnode = \"20s\"\n"), "--probe")
			if d := found["probe-second"]; d.State != counts.state || !strings.Contains(d.Evidence, counts.says) || (code != 0) != (counts.state == "failure") {
				t.Errorf("exit code %d, found %q", code, d)
			}
			if d := found["probe-end"]; d.State != "ok" {
				t.Errorf("found %q", d)
			}
		})
	}
}

// What a real apiserver says of a namespace where the driver has no rights, of
// one that is not there, and of a port where nobody listens.
func TestDoctorFindsRealTroubles(t *testing.T) {
	const nowhere = "doctor-nowhere"
	elsewhere, err := bed.WriteConfig(nowhere, "")
	if err != nil {
		t.Fatal(err)
	}
	found, code := doctor(t, elsewhere)
	if d := found["rights"]; code != 1 || d.State != "failure" || !strings.HasPrefix(d.Evidence, "may not ") || !strings.HasSuffix(d.Evidence, " in namespace "+nowhere) {
		t.Errorf("exit code %d, found %q", code, found)
	}
	if d := found["namespace"]; d.State != "skipped" {
		t.Errorf("found %q", d)
	}
	status, err := bed.Status(limited(t, time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	closed, err := bed.WriteConfig(testbed.Namespace, "")
	if err != nil {
		t.Fatal(err)
	}
	replaceInFile(t, closed, status.URL, "https://127.0.0.1:1")
	found, code = doctor(t, closed)
	if d := found["apiserver"]; code != 1 || d.State != "failure" || !strings.Contains(d.Evidence, "nobody listens at https://127.0.0.1:1") {
		t.Errorf("exit code %d, found %q", code, found)
	}
}
