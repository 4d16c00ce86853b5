//go:build e2e

package e2e

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/socialweb-computer/tenant-executor/examples/localrunner/runner"
	"github.com/socialweb-computer/tenant-executor/examples/testbed"
)

// webSocketConfig is a configuration for stages over WebSocket.
func webSocketConfig(t *testing.T, more string) string {
	t.Helper()
	config, err := bed.WriteConfig(testbed.Namespace, more)
	if err != nil {
		t.Fatal(err)
	}
	replaceInFile(t, config, "[cluster]\n", "[cluster]\ntransport = \"websocket\"\n")
	return config
}

// upgrades counts the driver's execs for a Pod by verb, from the apiserver's
// audit log.
func upgrades(t *testing.T, pod string) map[string]int {
	t.Helper()
	status, err := bed.Status(limited(t, time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	log, err := os.ReadFile(status.APIServer.AuditLog)
	if err != nil {
		t.Fatal(err)
	}
	counted := map[string]int{}
	for line := range strings.Lines(string(log)) {
		var event struct {
			Stage, Verb string
			ObjectRef   struct{ Name, Subresource string }
		}
		if json.Unmarshal([]byte(line), &event) == nil && event.Stage == "ResponseComplete" && event.ObjectRef.Subresource == "exec" && event.ObjectRef.Name == pod {
			counted[event.Verb]++
		}
	}
	return counted
}

// Stages over WebSocket are what they are over SPDY: the script's output and
// exit code, with nothing of a library among them.
func TestStagesOverWebSocket(t *testing.T) {
	j := testbed.WithoutSources(bed.Job("true"))
	h := byHand(t, j)
	h.config = webSocketConfig(t, "")
	defer h.do("cleanup")
	out, code := h.do("prepare")
	if code != 0 || !strings.Contains(out, "runs on node") {
		t.Fatalf("prepare: exit code %d, output %q", code, out)
	}
	pod, err := podOf(limited(t, time.Minute), admin(t), j.ID)
	if err != nil || pod == nil {
		t.Fatal(pod, err)
	}
	const lines = 2_700_000 // 20 MB
	script := "n=0; read -r x && n=1\nseq 1 2700000; exit $((41 + n))\n#" + strings.Repeat(" a long script", 50_000)
	out, code = h.do("run", h.script(script), "build_script")
	want := upTo(lines + 1)[len("0\n"):]
	if code != 1 || out != want {
		t.Errorf("exit code %d, %d bytes of output, want a build failure and %d", code, len(out), len(want))
	}
	if out, code := h.do("attach", "build_script"); code != 41 {
		t.Errorf("attach: exit code %d, want the script's 41; output of %d bytes", code, len(out))
	}
	if got := upgrades(t, pod.Name); got["create"] != 0 || got["get"] < 3 {
		t.Errorf("execs by verb: %v, want get alone", got)
	}
	if out, code := h.do("cleanup"); code != 0 || out != "" {
		t.Errorf("cleanup: exit code %d, output %q", code, out)
	}
}

// A lost connection costs nothing over WebSocket either, also one that the
// apiserver loses behind itself, which it tells as the end of the command.
func TestConnectionLossOverWebSocketCostsNothing(t *testing.T) {
	for _, fault := range []struct {
		name string
		do   func(t *testing.T, node string)
	}{
		{"apiserver killed and restarted", func(t *testing.T, _ string) {
			localtenant(t, "apiserver", "kill")
			localtenant(t, "apiserver", "start", "--port", "same")
		}},
		{"kubelet restarted", func(t *testing.T, node string) { localtenant(t, "node", "restart-kubelet", node) }},
	} {
		t.Run(fault.name, func(t *testing.T) {
			gate := safe(t.Name())
			j := testbed.WithoutSources(bed.Job(ticking(gate)))
			wait := start(t, webSocketConfig(t, "silence = \"3s\"\nnode_lost = \"1m\"\n"), j, runner.Options{})
			node := nodeOf(t, gate, j.ID)
			fault.do(t, node)
			wantApiserver(t)
			bed.Open(gate)
			out := wait()
			if out.Status != runner.Failed || out.FailureReason != "script_failure" || out.ExitCode != 3 {
				t.Errorf("ended with %s, %s, exit code %d: %s; want the script's 3", out.Status, out.FailureReason, out.ExitCode, out.Message)
			}
			wantTicks(t, out.Log)
			wantNoPods(t, j.ID)
		})
	}
}
