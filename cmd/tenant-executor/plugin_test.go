package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/socialweb-computer/tenant-executor/kube/faultserver"
)

// logsIn has the user of the kcp side log in by a script.
func (h *harness) logsIn(script string) {
	h.t.Helper()
	h.discovers()
	kubeconfig := h.settings["cluster.discover_kubeconfig"]
	text, err := os.ReadFile(kubeconfig)
	if err != nil {
		h.t.Fatal(err)
	}
	plugin := filepath.Join(filepath.Dir(kubeconfig), "plugin")
	changed := strings.Replace(string(text), "user: {token: "+faultserver.WorkspaceToken+"}",
		"user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: "+plugin+", interactiveMode: Never}}", 1)
	for path, text := range map[string]string{kubeconfig: changed, plugin: "#!/bin/sh\nenv > '" + h.folder + "/seen'\n" + script} {
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
			h.t.Fatal(err)
		}
	}
}

// Neither the runner's TERM nor a budget waits for a plugin that logs in,
// whatever it does about signals; and it sees nothing of the job.
func TestPluginThatLogsIn(t *testing.T) {
	t.Parallel()
	for _, stage := range []string{"prepare", "cleanup"} {
		t.Run(stage, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t)
			h.logsIn("trap '' TERM INT HUP; echo $$ > '" + h.folder + "/pid'; while :; do sleep 1; done")
			r := h.start(stage)
			out := r.stdout
			if stage == "cleanup" {
				out = r.stderr
			}
			until(t, "the job log says what is waited for", func() bool {
				return strings.Contains(out.String(), "/plugin, by which the driver logs in to the kcp side (for 10s at most)")
			})
			r.terminate()
			sent := time.Now()
			got := r.wait()
			// The plugin goes on for ever, and the budget is 10 s.
			if took := time.Since(sent); took > 5*time.Second && !raceDetector {
				t.Errorf("%s took %s to end", stage, took)
			}
			if got.code != systemCode || !strings.Contains(got.stdout+got.stderr, "the runner ended the stage before the cluster was found") {
				t.Errorf("%s ended with %d: %s%s", stage, got.code, got.stdout, got.stderr)
			}
			seen, err := os.ReadFile(h.folder + "/seen")
			if err != nil || strings.Contains(string(seen), "CUSTOM_ENV_") || !strings.Contains(string(seen), "HOME="+h.folder) {
				t.Errorf("the plugin has seen %s, %v", seen, err)
			}
			for _, canary := range []string{canaryToken, canaryVariable} {
				if strings.Contains(string(seen), canary) {
					t.Error("the plugin has seen a secret of the job")
				}
			}
			pid, err := os.ReadFile(h.folder + "/pid")
			if err != nil {
				t.Fatal(err)
			}
			until(t, "the plugin has ended", func() bool {
				_, err := os.Stat("/proc/" + strings.TrimSpace(string(pid)) + "/exe")
				return err != nil
			})
		})
	}
}

// A plugin that does not answer ends prepare once, at its budget, with what is
// to be done about it.
func TestPluginThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.logsIn("exec sleep 1000")
	got := h.stage("prepare")
	if got.code != systemCode || !strings.Contains(got.stdout, "does not log the driver in: it has not answered within 10s; run the plugin by hand") {
		t.Errorf("prepare ended with %d: %s%s", got.code, got.stdout, got.stderr)
	}
}
