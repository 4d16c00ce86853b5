package main_test

import (
	"fmt"
	"io"
	"testing"

	"github.com/socialweb-computer/tenant-executor/kube/faultserver"
)

// moments are when a connection may break, as what the script's side does
// before it.
func moments() map[string]func(*programs, func(*faultserver.Exec)) {
	return map[string]func(*programs, func(*faultserver.Exec)){
		"before the script is read": func(p *programs, breaks func(*faultserver.Exec)) {
			p.before = func(e *faultserver.Exec) bool { breaks(e); return false }
		},
		"in the middle of the script": func(p *programs, breaks func(*faultserver.Exec)) {
			p.before = func(e *faultserver.Exec) bool {
				_, _ = io.ReadFull(e.Stdin, make([]byte, len(script)/2))
				breaks(e)
				return false
			}
		},
		"at the start": func(p *programs, breaks func(*faultserver.Exec)) { p.script = breaks },
		"in the output": func(p *programs, breaks func(*faultserver.Exec)) {
			p.script = func(e *faultserver.Exec) {
				for i := range 100 {
					_, _ = fmt.Fprintf(e.Stdout, "line %d\n", i)
				}
				breaks(e)
			}
		},
	}
}

// However and whenever the connection breaks, the stage is no success, no
// failure of the script, and the script is not sent again.
func TestRunThatLosesItsConnection(t *testing.T) {
	t.Parallel()
	for _, way := range []faultserver.Break{
		faultserver.CloseStreams, faultserver.GoAway, faultserver.ResetStreams, faultserver.FIN, faultserver.RST,
	} {
		t.Run(string(way), func(t *testing.T) {
			t.Parallel()
			h := newHarness(t)
			p := h.play(nil)
			h.theJob()
			for name, at := range moments() {
				p.before, p.script = nil, nil
				before := h.startsAsked()
				at(p, func(e *faultserver.Exec) { e.Break(way) })
				got := h.run("build_script", script)
				if got.code != systemCode || h.exitCodeFile() != "" {
					t.Errorf("%s: exit code %d, and the runner was handed %q\n%s", name, got.code, h.exitCodeFile(), got.stdout)
				}
				if n := h.startsAsked() - before; n != 1 {
					t.Errorf("%s: the script was sent %d times", name, n)
				}
			}
			if got, want := len(p.stops()), len(moments()); got != want {
				t.Errorf("the script's processes were ended %d times, want %d", got, want)
			}
		})
	}
}

// startsAsked is how often a script was sent.
func (h *harness) startsAsked() int {
	count := 0
	for _, e := range h.server.Execs() {
		if len(e.Args) > 2 && e.Args[2] == "start" {
			count++
		}
	}
	return count
}

func TestRunSaysThatTheConnectionIsLost(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.play(func(e *faultserver.Exec) {
		_, _ = io.WriteString(e.Stdout, "step 1\n")
		e.Break(faultserver.CloseStreams)
	})
	h.theJob()
	h.expect(h.run("build_script", script), systemCode, lines("step 1",
		"ERROR: the stage in container build: the connection broke before the command's end was known",
		"Retry the job. The script may have gone on or may have ended; its result is not known."), "")
}

// Between the upgrade and the command's start nobody knows whether it started.
func TestRunThatLosesItsConnectionWhileItConnects(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	p := h.play(nil)
	h.theJob()
	h.env["TENANT_EXECUTOR_POD"] = h.server.Pods()[0].Name
	h.server.BreakAtStream(3)
	if got := h.run("build_script", script); got.code != systemCode || h.exitCodeFile() != "" {
		t.Errorf("exit code %d, and the runner was handed %q\n%s", got.code, h.exitCodeFile(), got.stdout)
	}
	if n := len(p.starts()); n != 0 {
		t.Errorf("the script ran %d times", n)
	}
}

const retry = "Retry the job. If it happens again, the operator has to find who removes the Pods."

// The Pod or its node goes while the script runs: never the script's fault.
func TestRunThatLosesItsPod(t *testing.T) {
	t.Parallel()
	killed := func(e *faultserver.Exec) { e.Exit(137) }
	broken := func(e *faultserver.Exec) { e.Break(faultserver.CloseStreams) }
	silent := func(e *faultserver.Exec) { e.WaitGone() }
	tests := []struct {
		name string
		// happens to the cluster while the script runs, and then to the
		// script.
		happens func(*faultserver.Server)
		then    func(*faultserver.Exec)
		want    []string
	}{
		{"deleted, connection broken", func(s *faultserver.Server) { s.Apply(faultserver.Removed()) }, broken,
			[]string{"ERROR: the job's Pod ci/POD was deleted while the stage ran", retry}},
		{"deleted, processes killed", func(s *faultserver.Server) { s.Apply(faultserver.Removed()) }, killed,
			[]string{"ERROR: the job's Pod ci/POD was deleted while the stage ran", retry}},
		{"deleted, connection silent", func(s *faultserver.Server) { s.Apply(faultserver.Removed()) }, silent,
			[]string{"ERROR: the job's Pod ci/POD was deleted while the stage ran", retry}},
		{"on its way out, processes killed", func(s *faultserver.Server) { s.Apply(faultserver.Terminating()) }, killed,
			[]string{"ERROR: the job's Pod ci/POD is being deleted", retry}},
		{"evicted, processes killed", func(s *faultserver.Server) { s.Apply(faultserver.Evicted("The node was low on resource: memory.")) }, killed,
			[]string{"ERROR: the job's Pod ci/POD ended: Evicted: The node was low on resource: memory.", retry}},
		{"evicted, connection silent", func(s *faultserver.Server) { s.Apply(faultserver.Evicted("The node was low on resource: memory.")) }, silent,
			[]string{"ERROR: the job's Pod ci/POD ended: Evicted: The node was low on resource: memory.", retry}},
		{"keeper ended, processes killed", func(s *faultserver.Server) { s.Apply(faultserver.Terminated("build", "Error", 137)) }, killed,
			[]string{"ERROR: the job's Pod ci/POD ended: Error (container build): exit code 137", retry}},
		{"node gone, connection broken", func(s *faultserver.Server) { s.RemoveNode(node) }, broken,
			[]string{"ERROR: node n1 of the job's Pod ci/POD does not exist any more", "Retry the job."}},
		{"node gone, connection silent", func(s *faultserver.Server) { s.RemoveNode(node) }, silent,
			[]string{"ERROR: node n1 of the job's Pod does not exist any more", "Retry the job."}},
		{"node not ready, connection broken", func(s *faultserver.Server) { s.SetNode(node, false) }, broken,
			[]string{"ERROR: node n1 of the job's Pod ci/POD is not ready (NodeStatusUnknown: Kubelet stopped posting node status.)", "Retry the job."}},
		{"node not ready, connection silent", func(s *faultserver.Server) { s.SetNode(node, false) }, silent,
			[]string{"ERROR: node n1 of the job's Pod has not been ready for N s (NodeStatusUnknown: Kubelet stopped posting node status.)", "Retry the job."}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t)
			p := h.play(func(e *faultserver.Exec) {
				_, _ = io.WriteString(e.Stdout, "step 1\n")
				test.happens(h.server)
				test.then(e)
			})
			h.theJob()
			h.env["TENANT_EXECUTOR_POD"] = h.server.Pods()[0].Name
			h.expect(h.run("build_script", script), systemCode, lines(append([]string{"step 1"}, test.want...)...), "")
			if code := h.exitCodeFile(); code != "" {
				t.Errorf("the runner was handed %q", code)
			}
			if n := len(p.starts()); n != 1 {
				t.Errorf("the script ran %d times", n)
			}
		})
	}
}

// A container that used up its memory is the job's own failure.
func TestRunOutOfMemory(t *testing.T) {
	t.Parallel()
	for name, then := range map[string]func(*faultserver.Exec){
		"processes killed":  exits(137),
		"connection broken": func(e *faultserver.Exec) { e.Break(faultserver.CloseStreams) },
		"connection silent": func(e *faultserver.Exec) { e.WaitGone() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t)
			h.play(func(e *faultserver.Exec) {
				h.server.Apply(faultserver.Terminated("build", "OOMKilled", 137))
				then(e)
			})
			h.theJob()
			h.expect(h.run("build_script", script), buildCode, lines(
				"ERROR: container build with image debian:12: OOMKilled: exit code 137",
				"Use less memory, or have the operator raise memory_limit in the [kubernetes] section of the driver's configuration."), "")
			if code := h.exitCodeFile(); code != "137\n" {
				t.Errorf("the runner was handed %q", code)
			}
		})
	}
}

// The apiserver restarts while a script runs and nobody else is hurt: the
// stage's result is not known.
func TestRunThroughARestartOfTheApiserver(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	p := h.play(func(e *faultserver.Exec) {
		_, _ = io.WriteString(e.Stdout, "step 1\n")
		e.WaitGone()
	})
	h.theJob()
	h.env["TENANT_EXECUTOR_POD"] = h.server.Pods()[0].Name
	stage := h.startRun("build_script", script)
	stage.stdout.waitFor(t, "step 1\n")
	h.server.Down()
	h.server.Up(t)
	h.expect(stage.wait(), systemCode, lines("step 1",
		"ERROR: the stage in container build: the connection broke before the command's end was known",
		"Retry the job. The script may have gone on or may have ended; its result is not known."), "")
	if starts, stops := len(p.starts()), len(p.stops()); starts != 1 || stops != 1 {
		t.Errorf("the script ran %d times and was ended %d times", starts, stops)
	}
}
