package main_test

import (
	"fmt"
	"regexp"
	"testing"

	"github.com/socialweb-computer/tenant-executor/kube/faultserver"
)

const (
	retry         = "Retry the job. If it happens again, the operator has to find who removes the Pods."
	nodeShort     = "The node ran short of what the message names, and ended the Pod. Retry the job, with requests as large as what it uses; the operator may have to give the nodes more."
	retryByItself = `Retry the job. With "retry: when: runner_system_failure" in .gitlab-ci.yml GitLab does so by itself.`
)

// waiting is a script that says "step 1" and waits for a file.
func (h *harness) waiting(gate string) string {
	return h.counted() + "echo step 1\nuntil [ -e '" + gate + "' ]; do sleep 0.02; done\n"
}

// The Pod or its node goes while the script runs: never the script's fault.
func TestRunThatLosesItsPod(t *testing.T) {
	t.Parallel()
	broken := func(l *line) { l.breaks(faultserver.CloseStreams) }
	silent := func(*line) {}
	tests := []struct {
		name string
		// happens to the cluster while the script runs, and then to the
		// connection.
		happens func(*faultserver.Server)
		then    func(*line)
		want    []string
	}{
		{"deleted, connection broken", func(s *faultserver.Server) { s.Apply(faultserver.Removed()) }, broken,
			[]string{"ERROR: the job's Pod ci/POD does not exist any more", retry}},
		{"deleted, connection silent", func(s *faultserver.Server) { s.Apply(faultserver.Removed()) }, silent,
			[]string{"ERROR: the job's Pod ci/POD was deleted while the stage ran", retry}},
		{"on its way out, connection broken", func(s *faultserver.Server) { s.Apply(faultserver.Terminating()) }, broken,
			[]string{"ERROR: the job's Pod ci/POD is being deleted", retry}},
		{"evicted, connection broken", func(s *faultserver.Server) { s.Apply(faultserver.Evicted("The node was low on resource: memory.")) }, broken,
			[]string{"ERROR: the job's Pod ci/POD ended: Evicted: The node was low on resource: memory.", nodeShort}},
		{"evicted, connection silent", func(s *faultserver.Server) { s.Apply(faultserver.Evicted("The node was low on resource: memory.")) }, silent,
			[]string{"ERROR: the job's Pod ci/POD ended: Evicted: The node was low on resource: memory.", nodeShort}},
		{"keeper ended, connection silent", func(s *faultserver.Server) { s.Apply(faultserver.Terminated("build", "Error", 137)) }, silent,
			[]string{"ERROR: the job's Pod ci/POD ended: Error (container build): exit code 137", retry}},
		{"node gone, connection broken", func(s *faultserver.Server) { s.RemoveNode(node) }, broken,
			[]string{"ERROR: node n1 of the job's Pod ci/POD does not exist any more", retryByItself}},
		{"node gone, connection silent", func(s *faultserver.Server) { s.RemoveNode(node) }, silent,
			[]string{"ERROR: node n1 of the job's Pod ci/POD does not exist any more", retryByItself}},
		{"node not ready, connection silent", func(s *faultserver.Server) { s.SetNode(node, false) }, silent,
			[]string{"ERROR: node n1 of the job's Pod ci/POD has not been ready for N s (NodeStatusUnknown: Kubelet stopped posting node status.)", retryByItself}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t)
			p := h.play()
			h.theJob()
			h.env["TENANT_EXECUTOR_POD"] = h.server.Pods()[0].Name
			opened := make(chan *line, 100)
			p.onLine(func(_ int, l *line) { opened <- l })
			stage := h.startRun("build_script", h.waiting("/nowhere/gate"))
			stage.stdout.waitFor(t, "step 1\n")
			test.happens(h.server)
			test.then(<-opened)
			h.expect(stage.wait(), systemCode, lines(append([]string{"step 1"}, test.want...)...), "")
			if code := h.exitCodeFile(); code != "" {
				t.Errorf("the runner was handed %q", code)
			}
			h.expectStarts(1)
		})
	}
}

// The runner calls further stages although the Pod is lost. Why it is was said
// once, and they do not wait to find it out again; once the node is back they run.
func TestLossIsToldOnce(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		happens func(*faultserver.Server)
		want    []string
		mends   bool
	}{
		"Pod deleted": {func(s *faultserver.Server) { s.Apply(faultserver.Removed()) },
			[]string{"ERROR: the job's Pod ci/POD was deleted while the stage ran", retry}, false},
		"node not ready": {func(s *faultserver.Server) { s.SetNode(node, false) },
			[]string{"ERROR: node n1 of the job's Pod ci/POD has not been ready for N s (NodeStatusUnknown: Kubelet stopped posting node status.)", retryByItself}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t)
			h.play()
			h.theJob()
			h.env["TENANT_EXECUTOR_POD"] = h.server.Pods()[0].Name
			stage := h.startRun("build_script", h.waiting("/nowhere/gate"))
			stage.stdout.waitFor(t, "step 1\n")
			test.happens(h.server)
			h.expect(stage.wait(), systemCode, lines(append([]string{"step 1"}, test.want...)...), "")
			asked := h.server.Requests().Count("create", "pods/exec")
			for _, later := range []string{"after_script", "cleanup_file_variables"} {
				h.expect(h.run(later, h.counted()), systemCode, lines("Not run: the job's Pod is lost, see above."), "")
			}
			if n := h.server.Requests().Count("create", "pods/exec"); n != asked {
				t.Errorf("%d commands were tried in a Pod that is lost", n-asked)
			}
			h.expectStarts(1)
			if test.mends {
				h.server.SetNode(node, true)
				h.expect(h.run("after_script", h.counted()), 0, "", "")
				h.expectStarts(2)
			}
		})
	}
}

// A container that used up its memory is the job's own failure.
func TestRunOutOfMemory(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.play()
	h.theJob()
	stage := h.startRun("build_script", h.waiting("/nowhere/gate"))
	stage.stdout.waitFor(t, "step 1\n")
	h.server.Apply(faultserver.Terminated("build", "OOMKilled", 137))
	h.expect(stage.wait(), buildCode, lines("step 1",
		"ERROR: container build with image debian:12: its memory was used up: OOMKilled: exit code 137",
		"Use less memory, or have the operator raise the container's limit in the [kubernetes] section of the driver's configuration."), "")
	if code := h.exitCodeFile(); code != "137\n" {
		t.Errorf("the runner was handed %q", code)
	}
}

// A stage that cannot be reached for too long ends with what is known of it.
func TestRunThatIsNotReachedAgain(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.settings["run.outage"] = "1s"
	h.play()
	h.theJob()
	h.env["TENANT_EXECUTOR_POD"] = h.server.Pods()[0].Name
	stage := h.startRun("build_script", h.waiting("/nowhere/gate"))
	stage.stdout.waitFor(t, "step 1\n")
	h.server.Down()
	got := stage.wait()
	got.stdout = regexp.MustCompile(`for \d+s;`).ReplaceAllString(got.stdout, "for N s;")
	h.expect(got, systemCode, lines("step 1",
		"ERROR: the stage in the job's Pod ci/POD could not be reached for N s; when last heard of, the script was running and had written 7 bytes: "+
			"dial tcp SERVER: connect: connection refused",
		"Retry the job. The script may have gone on or may have ended."), "")
	h.expectStarts(1)
}

// The apiserver restarts while a script runs: on the same port, or on another
// with another CA and another client certificate, of which the driver hears
// from its files.
func TestRunThroughARestartOfTheApiserver(t *testing.T) {
	t.Parallel()
	for name, move := range map[string]bool{"same port": false, "another port and CA": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			overEach(t, func(t *testing.T, h *harness) {
				p := h.play()
				h.theJob()
				h.env["TENANT_EXECUTOR_POD"] = h.server.Pods()[0].Name
				gate := h.folder + "/gate"
				plain := h.startPlainExec(p, "echo step 1; until [ -e '"+gate+"' ]; do sleep 0.02; done; seq 1 50000; exit 42", nil)
				plain.stdout.waitFor(t, "step 1\n")
				stage := h.startRun("build_script", h.waiting(gate)+"seq 1 50000; exit 42")
				stage.stdout.waitFor(t, "step 1\n")
				before := h.server.URL()
				h.server.Down()
				if move {
					h.server.Move(t)
				}
				h.server.Up(t)
				if move {
					if h.server.URL() == before {
						t.Fatal("the server has not moved")
					}
					h.settings["cluster.url"] = h.server.URL()
					h.trust(h.server.Credentials(t))
					h.handOver()
				}
				h.server.Wait(t, "the agent is reached again", func() bool { return p.connections() == 2 })
				h.write("gate", "")
				h.expect(stage.wait(), buildCode, "step 1\n"+numbers(50000), "")
				if code := h.exitCodeFile(); code != "42\n" {
					t.Errorf("the runner was handed %q", code)
				}
				h.expectStarts(1)
				plain.expectLost("step 1\n"+numbers(50000), 42)
			})
		})
	}
}

// numbers is what "seq 1 n" prints.
func numbers(n int) string {
	var b []byte
	for i := 1; i <= n; i++ {
		b = fmt.Appendln(b, i)
	}
	return string(b)
}
