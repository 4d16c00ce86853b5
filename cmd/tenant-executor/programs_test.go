package main_test

import (
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/socialweb-computer/tenant-executor/kube/faultserver"
)

// programs plays the driver's programs in the Pod (stages/shell) and, in
// place of a shell, the script that the test wrote in Go. It is the one place
// of these tests that knows how the driver talks to the Pod.
type programs struct {
	t *testing.T
	// script plays the stage's script; it may end the command itself. Nil
	// scripts end with 0.
	script func(*faultserver.Exec)
	// setup is the exit code of the first command in the Pod.
	setup int
	// before is called when a stage is asked for, before its script is read;
	// false says that it has ended the command.
	before func(*faultserver.Exec) bool

	mu      sync.Mutex
	started []stageStart
	stopped []stageStop
	stop    chan struct{}
}

// stageStart is a script that was handed to a shell.
type stageStart struct{ container, script string }

// stageStop is a request to end the processes of a container.
type stageStop struct{ container, grace string }

// play has the programs of the Pod played from now on.
func (h *harness) play(script func(*faultserver.Exec)) *programs {
	p := &programs{t: h.t, script: script, stop: make(chan struct{})}
	h.server.OnExec(p.exec)
	return p
}

func (p *programs) exec(e *faultserver.Exec) {
	switch {
	case slices.Contains(e.Args, "setup"):
		_, _ = io.Copy(io.Discard, e.Stdin)
		e.Exit(p.setup)
	case len(e.Args) == 7 && e.Args[2] == "start":
		p.start(e)
	case len(e.Args) == 7 && e.Args[2] == "stop":
		p.end(e)
	default:
		p.t.Errorf("the Pod has no program for %q", e.Args)
		e.Exit(127)
	}
}

// start reads the script, says that it has begun, and runs it.
func (p *programs) start(e *faultserver.Exec) {
	if p.before != nil && !p.before(e) {
		return
	}
	script, err := io.ReadAll(e.Stdin)
	if err != nil || strconv.Itoa(len(script)) != e.Args[6] {
		_, _ = io.WriteString(e.Stderr, strconv.Itoa(len(script))+" of "+e.Args[6]+" bytes of the script arrived\n")
		e.Exit(1)
		return
	}
	p.mu.Lock()
	p.started = append(p.started, stageStart{e.Container, string(script)})
	p.mu.Unlock()
	_, _ = io.WriteString(e.Stderr, "started "+e.Args[5]+"\n")
	if p.script != nil {
		p.script(e)
	}
}

// end lets scripts that wait on stop go on.
func (p *programs) end(e *faultserver.Exec) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stopped = append(p.stopped, stageStop{e.Container, e.Args[6]})
	if len(p.stopped) == 1 {
		close(p.stop)
	}
}

func (p *programs) starts() []stageStart {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.started)
}

func (p *programs) stops() []stageStop {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.stopped)
}

// theJob prepares the job's Pod and drops what prepare has said.
func (h *harness) theJob() {
	h.t.Helper()
	if got := h.stage("prepare"); got.code != 0 {
		h.t.Fatalf("prepare ended with %d:\n%s%s", got.code, got.stdout, got.stderr)
	}
}

// lines is text of several lines, each with its end.
func lines(all ...string) string { return strings.Join(all, "\n") + "\n" }
