package main_test

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/socialweb-computer/tenant-executor/kube/faultserver"
)

// programs runs the driver's programs for the Pods' containers on this host:
// setup.sh, the agent, and by it the scripts. A folder stands for the volume
// that the containers of a Pod share. It is the one place of these tests that
// knows how the driver talks to the Pod.
type programs struct {
	t *testing.T
	// line says what becomes of the nth connection to an agent, counted from
	// 1; nil leaves all as they are.
	line func(n int, l *line)
	// path is the PATH of the containers.
	path string

	base   string
	mu     sync.Mutex
	fronts int
}

// podFolder is where the driver has its files in a Pod.
const podFolder = "/tenant-executor"

// line is what lies between one agent and the driver. Whoever wraps its ends
// can do to the bytes what a network does.
type line struct {
	// out takes what the agent sends, in gives what the driver sends.
	out io.Writer
	in  io.Reader

	broken chan faultserver.Break
}

// breaks breaks the connection, once.
func (l *line) breaks(way faultserver.Break) {
	select {
	case l.broken <- way:
	default:
	}
}

// play has the programs of the Pods run from now on, until the end of the
// test.
func (h *harness) play() *programs {
	h.t.Helper()
	base, err := os.MkdirTemp("", "pods")
	if err != nil {
		h.t.Fatal(err)
	}
	p := &programs{t: h.t, base: base}
	helper := filepath.Join(base, "bin", "gitlab-runner-helper")
	if err := errors.Join(os.Mkdir(filepath.Dir(helper), 0o755), os.WriteFile(helper, []byte("#!/bin/sh\n"), 0o755)); err != nil {
		h.t.Fatal(err)
	}
	p.path = filepath.Dir(helper) + ":" + os.Getenv("PATH")
	h.t.Cleanup(func() {
		endAll(h.t, p.mark())
		p.checkRaces()
		if err := os.RemoveAll(base); err != nil {
			h.t.Error(err)
		}
	})
	h.server.OnExec(p.exec)
	return p
}

// mark is what every process of the Pods has in its environment.
func (p *programs) mark() string { return "TENANT_EXECUTOR_TEST=" + p.base }

// volume is the folder that stands for the driver's in a Pod.
func (p *programs) volume(pod string) string { return filepath.Join(p.base, pod) }

func (p *programs) environment(container string) []string {
	return []string{
		p.mark(), "PATH=" + p.path, "HOME=/", "CONTAINER=" + container,
		"GORACE=atexit_sleep_ms=0 log_path=" + filepath.Join(p.base, "race"),
	}
}

// checkRaces looks for what the race detector has said in an agent.
func (p *programs) checkRaces() {
	found, err := filepath.Glob(filepath.Join(p.base, "race.*"))
	if err != nil {
		p.t.Fatal(err)
	}
	for _, path := range found {
		text, _ := os.ReadFile(path)
		p.t.Errorf("the agent has a data race:\n%s", text)
	}
}

// exec runs a command of the driver as a container would, with the Pod's
// volume in its place.
func (p *programs) exec(e *faultserver.Exec) {
	volume := p.volume(e.Pod)
	if err := os.MkdirAll(volume, 0o755); err != nil {
		p.t.Error(err)
	}
	args := slices.Clone(e.Args)
	front := len(args) == 3 && args[0] == podFolder+"/podagent" && args[1] == "front"
	for i, arg := range args {
		if arg == podFolder || strings.HasPrefix(arg, podFolder+"/") {
			args[i] = volume + strings.TrimPrefix(arg, podFolder)
		}
	}
	l := &line{out: e.Stdout, in: e.Stdin, broken: make(chan faultserver.Break, 1)}
	if front {
		p.mu.Lock()
		p.fronts++
		n, change := p.fronts, p.line
		p.mu.Unlock()
		if change != nil {
			change(n, l)
		}
	}
	p.process(e, l, args, func(int) {})
}

// process runs one process with an exec's streams. As a container runtime
// does, it kills the process when the connection breaks, and that one alone.
// Started hears the process's number.
func (p *programs) process(e *faultserver.Exec, l *line, args []string, started func(pid int)) {
	command := exec.Command(args[0], args[1:]...)
	command.Dir, command.Env, command.Stderr = "/", p.environment(e.Container), e.Stderr
	stdin, err1 := command.StdinPipe()
	stdout, err2 := command.StdoutPipe()
	if err := errors.Join(err1, err2); err != nil {
		p.t.Error(err)
		return
	}
	if err := command.Start(); err != nil {
		e.Error("exec failed: " + err.Error())
		return
	}
	started(command.Process.Pid)
	// What stands at an end of the line may hold on to it, but not to us.
	copied := make(chan struct{})
	go func() {
		defer close(copied)
		_, _ = io.Copy(struct{ io.Writer }{l.out}, stdout)
	}()
	go func() {
		_, _ = io.Copy(stdin, struct{ io.Reader }{l.in})
		_ = stdin.Close()
	}()
	var way faultserver.Break
	select {
	case <-copied:
		select {
		case way = <-l.broken: // and what was copied broke off with it
		default:
			_ = command.Wait() // its state says how
			e.Exit(exitCode(command.ProcessState))
			return
		}
	case way = <-l.broken:
	case <-e.Gone():
	}
	if way != "" {
		e.Break(way)
	} else {
		e.WaitGone()
	}
	_ = command.Process.Kill() // it may have ended by itself
	_ = command.Wait()
}

// exitCode is how a container runtime tells the end of a process.
func exitCode(state *os.ProcessState) int {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return state.ExitCode()
}

// connections is how often an agent was connected to.
func (p *programs) connections() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fronts
}

// onLine sets what becomes of further connections, counted from 1 again.
func (p *programs) onLine(change func(n int, l *line)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.line, p.fronts = change, 0
}

// number reads a process's number out of the files of the one stage whose name
// begins so: "pid" is its supervisor, "shell" its script.
func (p *programs) number(stage, file string) int {
	p.t.Helper()
	found, err := filepath.Glob(filepath.Join(p.base, "job-*", "*", "stages", stage+"-*", file))
	if err != nil || len(found) != 1 {
		p.t.Fatalf("stage %s has the files %q (%v), want one", stage, found, err)
	}
	text, err := os.ReadFile(found[0])
	if err != nil {
		p.t.Fatal(err)
	}
	n, err := strconv.Atoi(string(text))
	if err != nil || n < 2 {
		p.t.Fatalf("%s holds %q", found[0], text)
	}
	return n
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
