package main_test

import (
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/socialweb-computer/tenant-executor/kube/faultserver"
	"github.com/socialweb-computer/tenant-executor/kube/stream/agent"
)

// What is too large for the cluster stays so: the job's own fault, told at once.
func TestPodThatIsTooLarge(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]faultserver.Fault{
		"for the apiserver": faultserver.AnswerStatus(http.StatusRequestEntityTooLarge, metav1.StatusReasonRequestEntityTooLarge, "Request entity too large: limit is 3145728"),
		"for etcd":          faultserver.AnswerStatus(http.StatusInternalServerError, "", "etcdserver: request is too large"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t)
			h.play()
			h.server.Fail(-1, "create", "pods", fault)
			got := h.stage("prepare")
			if got.code != buildCode || !strings.Contains(got.stdout, "ERROR: the job's Pod: creating Pod ci/") || !strings.Contains(got.stdout, " too large") {
				t.Errorf("exit code %d, %q", got.code, got.stdout)
			}
			if n := h.server.Requests().Count("create", "pods"); n != 1 {
				t.Errorf("it was tried %d times", n)
			}
		})
	}
}

// A prepare that is ended while the cluster is away says so without the driver's
// requests.
func TestPrepareIsEndedInAnOutage(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.play()
	h.server.OnCreate(faultserver.Unscheduled("0/1 nodes are available"))
	prepare := h.start("prepare")
	prepare.stdout.waitFor(t, "Waiting for a node")
	h.server.Down()
	prepare.terminate()
	got := prepare.wait()
	if got.code != systemCode || strings.Contains(got.stdout, "/api/v1/") || strings.Contains(got.stdout, "context ") ||
		!strings.Contains(got.stdout, "WARNING: The Pod of the job is not deleted yet, cleanup is to do it: the tenant cluster at https://") {
		t.Errorf("exit code %d, %q", got.code, got.stdout)
	}
}

// An agent that answers and dies is an outage: it is told, and has an end.
func TestAgentThatAnswersAndDies(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.settings["run.outage"] = "6s"
	p := h.play()
	h.theJob()
	p.onLine(func(_ int, l *line) { l.breakAt(agent.KindBegun, faultserver.CloseStreams, true) })
	got := h.run("build_script", h.counted()+"sleep 60")
	if got.code != systemCode || strings.Count(got.stdout, "WARNING: The connection to the script is lost") != 1 || !strings.Contains(got.stdout, "could not be reached for ") {
		t.Errorf("exit code %d, %q", got.code, got.stdout)
	}
	if n := p.connections(); n > 20 {
		t.Errorf("%d connections in 6 s", n)
	}
	h.expectStarts(1)
}

// Nothing is promised of a Pod that is gone, and what is told of the agent is a
// whole sentence.
func TestNothingIsPromisedOfALostPod(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.settings["run.poll"] = "1h" // the guard is slower than the outage is told
	p := h.play()
	h.theJob()
	h.env["TENANT_EXECUTOR_POD"] = h.server.Pods()[0].Name
	opened := make(chan *line, 1)
	p.onLine(func(n int, l *line) {
		if n > 1 {
			l.breaks(faultserver.RST)
			return
		}
		opened <- l
	})
	stage := h.startRun("build_script", h.counted()+"echo step; sleep 60")
	stage.stdout.waitFor(t, "step\n")
	h.server.Apply(faultserver.Terminating())
	(<-opened).breaks(faultserver.RST)
	got := stage.wait()
	if got.code != systemCode || strings.Contains(got.stdout, "WARNING") || !strings.Contains(got.stdout, "is being deleted") {
		t.Errorf("exit code %d, %q", got.code, got.stdout)
	}
}
