package main_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/socialweb-computer/tenant-executor/kube/faultserver"
)

// failing is a job that asks for its Pod to be kept, and has failed.
func failing(t *testing.T, allowed, asked string) *harness {
	t.Helper()
	h := newHarness(t)
	h.settings["debug.hold"] = allowed
	h.env["CUSTOM_ENV_TENANT_EXECUTOR_DEBUG_HOLD"] = asked
	h.secrets()
	h.play()
	h.theJob()
	return h
}

func (h *harness) cleanupAfter(status string) result {
	h.t.Helper()
	h.env["CUSTOM_ENV_CI_JOB_STATUS"] = status
	return h.stage("cleanup")
}

// The Pod of a failed job stays for the time it asks for, with a deadline of its
// own; a second cleanup lets it go.
func TestFailedJobIsKept(t *testing.T) {
	t.Parallel()
	h := failing(t, "1h", "15m")
	got := h.run("build_script", "exit 3")
	if got.code != buildCode || h.plain(got.stdout) != "The Pod of this job stays for up to 15 min after the job, for a look: tenant-executor shell 4711\n" {
		t.Errorf("%+v", got)
	}
	for _, stage := range []string{"after_script", "upload_artifacts_on_failure"} {
		if got := h.run(stage, "exit 3"); got.stdout != "" {
			t.Errorf("%s says %q", stage, got.stdout)
		}
	}
	begun := time.Now()
	if got := h.cleanupAfter("failed"); got.code != 0 || !strings.Contains(got.stderr, "of the failed job 4711 is kept until ") {
		t.Fatalf("%+v", got)
	}
	p := h.server.Pods()[0]
	until, err := time.Parse(time.RFC3339, p.Annotations[domain+"held"])
	if err != nil || until.Before(begun.Add(14*time.Minute)) || until.After(time.Now().Add(15*time.Minute)) || p.Annotations[domain+"expires"] != p.Annotations[domain+"held"] {
		t.Errorf("kept until %s (%v), expires %s", until, err, p.Annotations[domain+"expires"])
	}
	if end := p.Status.StartTime.Add(time.Duration(*p.Spec.ActiveDeadlineSeconds) * time.Second); !end.Equal(until) {
		t.Errorf("the kubelet ends it at %s, want %s", end, until)
	}
	h.expectTable(h.stage("ps", "-A"), lines(
		"NAMESPACE  JOB  PROJECT  NAME  PHASE  NODE  AGE  STAGE  WAITS FOR",
		"ci  4711  group/demo  unit  held  n1  Ns  -  its end in 14mNs",
		"",
		"NODE  STATE  AGE  CARRIES",
		"n1  ready  -  ci/POD",
	))
	// Nobody takes it away before its time, although its runner is gone.
	h.server.Apply(faultserver.Change(func(p *corev1.Pod) {
		p.Annotations[ownerKey] = strings.Replace(p.Annotations[ownerKey], "\"pid\":", "\"pid\":107374", 1)
	}))
	if got := h.stage("reap"); !strings.HasPrefix(got.stdout, "Nothing is left over of runner ") {
		t.Errorf("%+v", got)
	}
	if got := h.cleanupAfter("failed"); got.code != 0 || len(h.server.Pods()) != 0 {
		t.Errorf("%+v, %d Pods", got, len(h.server.Pods()))
	}
}

// release ends the time, and reap takes what is over.
func TestKeptPodGoes(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*harness){
		"release": func(h *harness) {
			if got := h.stage("release", "4711"); got.code != 0 {
				t.Errorf("%+v", got)
			}
		},
		"reap": func(h *harness) {
			h.server.Apply(faultserver.Change(func(p *corev1.Pod) {
				for _, name := range []string{"held", "expires"} {
					p.Annotations[domain+name] = time.Now().Add(-time.Minute).Format(time.RFC3339)
				}
			}))
			h.stage("reap")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := failing(t, "20m", "true")
			h.cleanupAfter("timedout")
			if n := len(h.server.Pods()); n != 1 {
				t.Fatalf("%d Pods", n)
			}
			end(h)
			if n := len(h.server.Pods()); n != 0 {
				t.Errorf("%d Pods are left", n)
			}
		})
	}
}

// The Pod goes with its job where nobody asked, where nobody allows it, where the
// job went well, and where there is nothing to look into.
func TestJobIsNotKept(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		allowed, asked, status, says string
		change                       func(*harness)
	}{
		"not asked":   {"1h", "", "failed", "", nil},
		"not allowed": {"0s", "15m", "failed", "TENANT_EXECUTOR_DEBUG_HOLD has no effect: the operator allows none ([debug] hold).\n", nil},
		"not a time":  {"1h", "soon", "failed", "WARNING: TENANT_EXECUTOR_DEBUG_HOLD is \"soon\": write a time such as 15m, or true. The Pod of this job does not stay.\n", nil},
		"went well":   {"1h", "15m", "success", "", nil},
		"cancelled":   {"1h", "15m", "canceled", "", nil},
		"never began": {"1h", "15m", "running", "", nil},
		"node lost":   {"1h", "15m", "failed", "", func(h *harness) { h.server.SetNode(node, false) }},
		"Pod ended":   {"1h", "15m", "failed", "", func(h *harness) { h.server.Apply(faultserver.Evicted("disk")) }},
		"no time is left": {"1h", "15m", "failed", "", func(h *harness) {
			h.server.Apply(faultserver.Change(func(p *corev1.Pod) { *p.Spec.ActiveDeadlineSeconds = 5 }))
		}},
		"cluster refuses": {"1h", "15m", "failed", "", func(h *harness) {
			h.server.Fail(-1, "patch", "pods", faultserver.AnswerStatus(422, "Invalid", "no"))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := failing(t, test.allowed, test.asked)
			if test.says != "" {
				if got := h.run("step_script", "exit 3"); h.plain(got.stdout) != test.says {
					t.Errorf("says %q, want %q", h.plain(got.stdout), test.says)
				}
			}
			if test.change != nil {
				test.change(h)
			}
			if got := h.cleanupAfter(test.status); got.code != 0 || len(h.server.Pods()) != 0 {
				t.Errorf("%+v, %d Pods are left", got, len(h.server.Pods()))
			}
		})
	}
}
