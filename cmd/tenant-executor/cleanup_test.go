package main_test

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/socialweb-computer/tenant-executor/kube/faultserver"
)

// deletions are the options of each delete request.
func (h *harness) deletions() []metav1.DeleteOptions {
	h.t.Helper()
	var all []metav1.DeleteOptions
	for _, r := range h.server.Requests().Of("delete", "pods") {
		var options metav1.DeleteOptions
		if err := json.Unmarshal([]byte(r.Body), &options); err != nil {
			h.t.Fatal(err)
		}
		all = append(all, options)
	}
	return all
}

// Cleanup runs after a good job, after a failed one, twice, without anything
// from config, and where nothing was ever made.
func TestCleanupMayBeCalledAgain(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.play()
	h.expect(h.stage("cleanup"), 0, "", "")
	h.theJob()
	pod := h.server.Pods()[0]
	for range 2 {
		h.expect(h.stage("cleanup"), 0, "", "")
		if n := len(h.server.Pods()); n != 0 {
			t.Errorf("%d Pods are left", n)
		}
	}
	all := h.deletions()
	if len(all) != 1 || *all[0].GracePeriodSeconds != 1 || *all[0].Preconditions.UID != pod.UID {
		t.Errorf("got %+v; want one deletion with grace 1 of Pod %s", all, pod.UID)
	}
}

// Each attempt made a Pod of its own; another job's is none of them.
func TestCleanupDeletesEveryAttempt(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.play()
	h.job["id"] = 4712
	h.theJob()
	h.job["id"] = 4711
	h.env["CUSTOM_ENV_CI_RUNNER_SHORT_TOKEN"] = "other-run"
	h.theJob()
	h.env["CUSTOM_ENV_CI_RUNNER_SHORT_TOKEN"] = "runner-ab"
	h.theJob()
	// Two more, as no prepare had the time to remove them.
	for _, name := range []string{"second", "third"} {
		attempt := h.server.Pods()[2].DeepCopy()
		attempt.Name += "-" + name
		h.server.AddPod(attempt)
	}
	if n := len(h.server.Pods()); n != 5 {
		t.Fatalf("%d Pods were made", n)
	}
	h.expect(h.stage("cleanup"), 0, "", "")
	left := h.server.Pods()
	if len(left) != 2 || left[0].Labels["tenant-executor.socialweb.computer/job-id"] != "4712" ||
		left[1].Labels["tenant-executor.socialweb.computer/runner"] != "other-run" {
		t.Errorf("%d Pods are left: %v", len(left), left)
	}
}

// The environment of a pipeline does not decide which job is cleaned up.
func TestCleanupIsNotLedAstray(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.play()
	h.theJob()
	h.env["CUSTOM_ENV_CI_JOB_ID"] = "4712"
	h.env["TENANT_EXECUTOR_POD"] = "job-4712-ffffffff-0a1b2c"
	h.expect(h.stage("cleanup"), 0, "", "")
	if n := len(h.server.Pods()); n != 0 {
		t.Errorf("%d Pods are left", n)
	}
}

// On a node that is lost nobody ends a Pod: it is removed by force, and that
// very Pod alone.
func TestCleanupOnALostNode(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(*faultserver.Server){
		"gone":      func(s *faultserver.Server) { s.RemoveNode(node) },
		"not ready": func(s *faultserver.Server) { s.SetNodeSince(node, false, time.Now().Add(-time.Hour)) },
		"gone, and the Pod was deleted before": func(s *faultserver.Server) {
			s.RemoveNode(node)
			s.Apply(faultserver.Terminating())
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t)
			h.play()
			h.server.KeepTerminating()
			h.theJob()
			pod := h.server.Pods()[0]
			lose(h.server)
			h.expect(h.stage("cleanup"), 0, "", "")
			if n := len(h.server.Pods()); n != 0 {
				t.Errorf("%d Pods are left", n)
			}
			all := h.deletions()
			if len(all) != 1 || *all[0].GracePeriodSeconds != 0 || all[0].Preconditions == nil || *all[0].Preconditions.UID != pod.UID {
				t.Errorf("got %+v; want one deletion with grace 0 of Pod %s", all, pod.UID)
			}
		})
	}
}

// A node that is not ready for a moment, as while its kubelet restarts, still
// ends the Pods on it.
func TestCleanupOnANodeThatComesBack(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.settings["run.node_lost"] = "1h"
	h.play()
	h.theJob()
	h.server.SetNode(node, false)
	h.expect(h.stage("cleanup"), 0, "", "")
	if all := h.deletions(); len(all) != 1 || *all[0].GracePeriodSeconds != 1 {
		t.Errorf("got %+v; want one deletion with grace 1", all)
	}
}

// A Pod that a well node is ending already is left to it.
func TestCleanupOfATerminatingPod(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.play()
	h.theJob()
	h.server.Apply(faultserver.Terminating())
	h.expect(h.stage("cleanup"), 0, "", "")
	if n := len(h.deletions()); n != 0 {
		t.Errorf("it was deleted %d times more", n)
	}
}

func TestCleanupThroughTroubles(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*faultserver.Server){
		"connections refused":  func(s *faultserver.Server) { s.RefuseConnections(2) },
		"list broken off":      func(s *faultserver.Server) { s.Fail(2, "list", "pods", faultserver.Abort()) },
		"delete broken off":    func(s *faultserver.Server) { s.Fail(2, "delete", "pods", faultserver.Abort()) },
		"reply to delete lost": func(s *faultserver.Server) { s.Fail(1, "delete", "pods", faultserver.LoseReply()) },
		"node cannot be read": func(s *faultserver.Server) {
			s.Fail(-1, "get", "nodes", faultserver.Answer(http.StatusInternalServerError, "x"))
		},
		"somebody else was quicker": func(s *faultserver.Server) {
			s.Fail(1, "delete", "pods", faultserver.AnswerStatus(http.StatusNotFound, metav1.StatusReasonNotFound, "x"))
			s.Apply(faultserver.Removed())
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t)
			h.play()
			h.theJob()
			change(h.server)
			h.expect(h.stage("cleanup"), 0, "", "")
			if n := len(h.server.Pods()); n != 0 {
				t.Errorf("%d Pods are left", n)
			}
		})
	}
}

// What cannot be cleaned up is said, and in time: the runner gives little.
func TestCleanupThatFails(t *testing.T) {
	t.Parallel()
	const unreachable = "The operator has to check that the tenant cluster runs and that url names its present port."
	const access = "The operator has to check the certificate files and the role in examples/rbac.yaml."
	tests := []struct {
		name   string
		change func(*harness)
		want   []string
	}{
		{"nobody there", func(h *harness) { h.hurry(); h.server.Down() }, []string{
			`ERROR: the tenant cluster at https://SERVER: listing the Pods of SELECTOR in namespace ci: dial tcp SERVER: connect: connection refused`, unreachable}},
		{"no answer", func(h *harness) { h.hurry(); h.server.Fail(-1, "", "", faultserver.Silence()) }, []string{
			`ERROR: the tenant cluster at https://SERVER: listing the Pods of SELECTOR in namespace ci: no answer came in time`, unreachable}},
		{"certificate refused", func(h *harness) { h.trust(h.server.ForeignClient(h.t)) }, []string{
			`ERROR: the tenant cluster at https://SERVER: listing the Pods of SELECTOR in namespace ci: remote error: tls: unknown certificate authority (CERT: it is signed by "CN=another CA", and the cluster takes certificates signed by "CN=test CA" alone: have it issued by the cluster's CA)`, access}},
		{"another cluster at the port", func(h *harness) { h.trust(h.server.ForeignCA(h.t)) }, []string{
			`ERROR: the tenant cluster at https://SERVER: listing the Pods of SELECTOR in namespace ci: tls: failed to verify certificate: x509: certificate signed by unknown authority`, access}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t)
			h.play()
			h.theJob()
			test.change(h)
			got := h.stage("cleanup")
			got.stderr = selector().ReplaceAllString(got.stderr, "SELECTOR")
			got.stderr = strings.ReplaceAll(got.stderr, h.settings["cluster.cert_file"], "CERT")
			h.expect(got, systemCode, "", lines(test.want...))
			if n := len(h.server.Pods()); n != 1 {
				t.Errorf("%d Pods are left", n)
			}
		})
	}
}

// selector is the labels by which the job's Pods are found.
func selector() *regexp.Regexp { return regexp.MustCompile(`tenant-executor\.socialweb\.computer/\S+`) }

// hurry gives cleanup little time.
func (h *harness) hurry() { h.settings["cleanup.timeout"] = "1s" }

// trust gives the driver other credentials.
func (h *harness) trust(files faultserver.Credentials) {
	h.settings["cluster.ca_file"], h.settings["cluster.cert_file"], h.settings["cluster.key_file"] = files.CAFile, files.CertFile, files.KeyFile
}

// One Pod that cannot be deleted does not save the others.
func TestCleanupGoesOnAfterAFailure(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.play()
	h.theJob()
	h.theJob()
	h.server.Fail(1, "delete", "pods", faultserver.AnswerStatus(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, "finalizer in the way"))
	h.expect(h.stage("cleanup"), systemCode, "", lines(
		"ERROR: the tenant cluster at https://SERVER: left behind: deleting Pod ci/POD: finalizer in the way",
		"Report it with this message."))
	if left := h.server.Pods(); len(left) != 1 || left[0].Status.Phase != corev1.PodRunning {
		t.Errorf("%d Pods are left, want 1", len(left))
	}
}
