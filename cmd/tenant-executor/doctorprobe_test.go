package main_test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"

	"github.com/socialweb-computer/tenant-executor/kube/faultserver"
)

// probeStates are the findings of a probe, by check.
func probeStates(all []finding) map[string]finding {
	found := map[string]finding{}
	for _, f := range all {
		if strings.HasPrefix(f.Check, "probe-") {
			found[f.Check] = f
		}
	}
	return found
}

// wantNoPods looks whether the probe's Pod is gone.
func (h *harness) wantNoPods() {
	h.t.Helper()
	if n := len(h.server.Pods()); n != 0 {
		h.t.Errorf("%d Pods are left", n)
	}
}

// The probe makes a Pod as jobs have it, runs a command in it over the real
// stream, tries GitLab with the git of the helper, and removes the Pod.
func TestDoctorProbes(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git stands for that of the helper image, and is not there")
	}
	gitlab := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(gitlab.Close)
	closed := closedPort(t)
	for name, c := range map[string]struct {
		gitlab string
		// check is the one that is not ok, "" for none; evidence is a part of it.
		check, state, evidence string
		code                   int
	}{
		"all is well":        {gitlab.URL, "", "", "", 0},
		"nobody there":       {"http://" + closed, "probe-gitlab", "failure", "does not let the Pod connect", 1},
		"no such host":       {"http://no-such-host.invalid", "probe-dns", "failure", "does not find the host no-such-host.invalid", 1},
		"that of the runner": {"", "probe-dns", "failure", "does not find the host gitlab.example.invalid", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := examined(t)
			h.runnerFile(replace("gitlab.example.com", "gitlab.example.invalid"))
			h.play()
			args := []string{"--probe"}
			if c.gitlab != "" {
				args = append(args, "--gitlab", c.gitlab)
			}
			all, code := h.doctor(args...)
			if code != c.code {
				t.Errorf("exit code %d, want %d", code, c.code)
			}
			for name, f := range probeStates(all) {
				switch {
				case name == c.check:
					if f.State != c.state || !strings.Contains(f.Evidence, c.evidence) {
						t.Errorf("found %q", f)
					}
				case name == "probe-helper" && f.State == "warning": // this host's git has no LFS
				case name == "probe-gitlab" && c.check == "probe-dns":
				case f.State != "ok":
					t.Errorf("found %q", f)
				}
			}
			made := h.server.Requests().Of("create", "pods")
			if len(made) != 3 || made[0].Query != "dryRun=All" || !strings.Contains(made[1].Body, `"tenant-executor.socialweb.computer/runner":"`+shortRunner+`"`) {
				t.Errorf("made %s", made)
			}
			h.wantNoPods()
		})
	}
}

// closedPort is an address at which nobody listens.
func closedPort(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close() //nolint:errcheck // it has to be closed
	return listener.Addr().String()
}

// What keeps a job's Pod from its work is told by the check that it belongs to,
// and the Pod is removed all the same.
func TestDoctorProbeMeets(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		meet                   func(*harness)
		check, evidence, after string
	}{
		"an image that is not there": {func(h *harness) {
			h.server.OnCreate(faultserver.Scheduled(node), faultserver.Waiting("helper", "ErrImagePull", "manifest unknown: not found"))
		}, "probe-pod", "manifest unknown", "skipped"},
		"no node": {func(h *harness) {
			h.settings["wait.node"] = "1s"
			h.server.RemoveNode(node)
			h.server.OnCreate(faultserver.Unscheduled("no nodes available to schedule pods"))
		}, "probe-pod", "no node for the job after 1 s: the cluster has none", "skipped"},
		"a node that commands do not reach": {func(h *harness) {
			h.settings["wait.reach"] = "1s"
			h.server.Fail(-1, "create", "pods/exec", faultserver.Answer(http.StatusBadGateway, "error dialing backend"))
		}, "probe-exec", "no command reached it", "skipped"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := examined(t)
			h.play()
			c.meet(h)
			all, code := h.doctor("--probe", "--gitlab", "http://127.0.0.1:1")
			found := probeStates(all)
			if f := found[c.check]; code != 1 || f.State != "failure" || !strings.Contains(f.Evidence, c.evidence) || f.Remedy == "" {
				t.Errorf("exit code %d, found %q", code, f)
			}
			if found["probe-helper"].State != c.after || found["probe-gitlab"].State != c.after || found["probe-end"].State != "ok" {
				t.Errorf("found %q", found)
			}
			h.wantNoPods()
		})
	}
}

// Ctrl-C removes the Pod, and doctor says that it is gone.
func TestDoctorProbeIsInterrupted(t *testing.T) {
	t.Parallel()
	h := examined(t)
	h.server.OnCreate(faultserver.Unscheduled("0/0 nodes are available"))
	r := h.start("doctor", "--probe", "--runner", "somebody")
	h.server.Wait(t, "the Pod is there", func() bool { return len(h.server.Pods()) == 1 })
	r.terminate()
	got := r.wait()
	if got.code != 1 || !strings.Contains(got.stdout, "doctor was interrupted") || !strings.Contains(got.stdout, "the Pod is gone") {
		t.Errorf("exit code %d:\n%s%s", got.code, got.stdout, got.stderr)
	}
	h.wantNoPods()
}
