package main_test

import (
	"net/http"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/socialweb-computer/tenant-executor/kube/faultserver"
)

// What a cluster answers while it comes back, after the connection to a stage
// was lost, is not taken for its word on the stage.
func TestReconnectThroughTroubles(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]faultserver.Fault{
		"error dialing backend": faultserver.AnswerStatus(http.StatusInternalServerError, metav1.StatusReasonInternalError, "error dialing backend: EOF"),
		"bad gateway":           faultserver.Answer(http.StatusBadGateway, "Bad Gateway"),
		"apiserver starts":      faultserver.Answer(http.StatusServiceUnavailable, "starting"),
		"roles not read yet":    faultserver.AnswerStatus(http.StatusForbidden, metav1.StatusReasonForbidden, noRight),
		"kubelet starts":        faultserver.Answer(http.StatusNotFound, "pod does not exist"),
		"container unknown yet": faultserver.Answer(http.StatusNotFound, `unable to upgrade connection: container not found ("build")`),
		"reset":                 faultserver.Reset(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			overEach(t, func(t *testing.T, h *harness) {
				p := h.play()
				h.theJob()
				opened := make(chan *line, 100)
				p.onLine(func(_ int, l *line) { opened <- l })
				// A plain exec has no second try: what it is answered is its end, and
				// another one would run the script again.
				h.server.Fail(1, h.execVerb(), "pods/exec", fault)
				h.plainExec(p, "echo step 1; exit 42", nil).expectRefused()
				stage := h.startRun("build_script", h.waiting(h.folder+"/gate")+"exit 42")
				stage.stdout.waitFor(t, "step 1\n")
				h.server.Fail(4, h.execVerb(), "pods/exec", fault)
				(<-opened).breaks(faultserver.RST)
				<-opened
				h.write("gate", "")
				h.expect(stage.wait(), buildCode, "step 1\n", "")
				if code := h.exitCodeFile(); code != "42\n" {
					t.Errorf("the runner was handed %q", code)
				}
				h.expectStarts(1)
			})
		})
	}
}

// Over WebSocket the apiserver opens the connection before it reaches the node;
// what it says of that way afterwards, or that it has lost it, is neither the
// end of the stage nor that of the setup.
func TestNodeThatIsNotReachedOverWebSocket(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.settings["cluster.transport"] = webSocket
	p := h.play()
	troubles := []func(*faultserver.Exec){
		func(e *faultserver.Exec) { e.Break(faultserver.LostBehind) },
		func(e *faultserver.Exec) {
			e.Status([]byte(`{"status":"Failure","reason":"InternalError","code":500,"message":"Internal error occurred: error dialing backend: EOF"}`))
		},
		func(e *faultserver.Exec) {
			e.Status([]byte(`{"status":"Failure","reason":"InternalError","code":500,"message":"Internal error occurred: unable to upgrade connection: pod does not exist"}`))
		},
	}
	count := 0
	h.server.OnExec(func(e *faultserver.Exec) {
		if count++; count <= len(troubles) {
			troubles[count-1](e)
			return
		}
		p.exec(e)
	})
	h.expect(h.stage("prepare"), 0, lines(using, ready), "")
	count = 0
	h.expect(h.run("build_script", h.counted()+"echo step 1; exit 42"), buildCode, "step 1\n", "")
	h.expectStarts(1)
	count = 0
	if got := h.stage("attach", "build_script"); got.code != 42 {
		t.Errorf("attach ended with %d: %s%s", got.code, got.stdout, got.stderr)
	}
	// A plain exec takes the first of these for success.
	h.plainExec(p, "seq 1 30000; exit 42", func(l *line) { l.cutOut(40000, faultserver.LostBehind) }).expectDeceived(numbers(long), 0)
}

// A setup that starts and then stays silent, as over a node's connection that
// is half there, is tried again.
func TestPrepareThatHearsNothing(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	p := h.play()
	first := true
	h.server.OnExec(func(e *faultserver.Exec) {
		if first {
			first = false
			e.WaitGone()
			return
		}
		p.exec(e)
	})
	h.expect(h.stage("prepare"), 0, lines(using, ready), "")
	if n := len(h.server.Execs()); n != 2 {
		t.Errorf("%d commands were started, want 2", n)
	}
}
