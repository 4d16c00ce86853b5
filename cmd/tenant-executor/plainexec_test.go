package main_test

import (
	"context"
	"errors"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/util/exec"

	"github.com/socialweb-computer/tenant-executor/kube/faultserver"
)

// plainExec is a command as kubectl exec runs it, with client-go, in the job's
// Pod. Tests do to it what they do to our own stages: what it loses shows that
// the fault is one.
type plainExec struct {
	h      *harness
	stdout *output
	ended  chan struct{}
	stop   context.CancelFunc
	// err is client-go's word once it has ended.
	err error
	// shell is the number of the command's process.
	shell chan int
}

// startPlainExec runs a script with sh on this host, as the Pod's container
// would, over the job's transport. Change is done to its connection.
func (h *harness) startPlainExec(p *programs, script string, change func(*line)) *plainExec {
	h.t.Helper()
	x := &plainExec{h: h, stdout: newOutput(), ended: make(chan struct{}), shell: make(chan int, 1)}
	script = "echo start >>'" + filepath.Join(h.folder, "plain-starts") + "'\n" + script
	taken := make(chan struct{})
	h.server.OnExec(func(e *faultserver.Exec) {
		close(taken)
		l := &line{out: e.Stdout, in: e.Stdin, broken: make(chan faultserver.Break, 1)}
		if change != nil {
			change(l)
		}
		p.process(e, l, []string{"sh", "-c", script}, func(pid int) { x.shell <- pid })
	})
	executor := h.clientGo()
	ctx, cancel := context.WithCancel(h.t.Context())
	x.stop = cancel
	go func() {
		defer close(x.ended)
		defer x.stdout.end()
		x.err = executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: x.stdout, Stderr: io.Discard})
	}()
	h.t.Cleanup(func() {
		cancel()
		<-x.ended
	})
	select {
	case <-taken:
	case <-x.ended: // refused
	}
	h.server.OnExec(p.exec)
	return x
}

// plainExec is startPlainExec for a command that ends.
func (h *harness) plainExec(p *programs, script string, change func(*line)) *plainExec {
	h.t.Helper()
	x := h.startPlainExec(p, script, change)
	<-x.ended
	return x
}

// clientGo is client-go's executor for the job's transport.
func (h *harness) clientGo() remotecommand.Executor {
	h.t.Helper()
	where, err := url.Parse(h.server.URL() + "/api/v1/namespaces/" + namespace + "/pods/" + h.server.Pods()[0].Name + "/exec?command=plain&container=build&stdout=true&stderr=true")
	if err != nil {
		h.t.Fatal(err)
	}
	if proxied := h.settings["cluster.url"]; proxied != h.server.URL() {
		where.Host = strings.TrimPrefix(proxied, "https://")
	}
	config := &rest.Config{Host: h.server.URL(), TLSClientConfig: rest.TLSClientConfig{
		CAFile: h.settings["cluster.ca_file"], CertFile: h.settings["cluster.cert_file"], KeyFile: h.settings["cluster.key_file"],
	}}
	var executor remotecommand.Executor
	if h.transport() == webSocket {
		executor, err = remotecommand.NewWebSocketExecutor(config, "GET", where.String())
	} else {
		executor, err = remotecommand.NewSPDYExecutor(config, "POST", where)
	}
	if err != nil {
		h.t.Fatal(err)
	}
	return executor
}

// code is the exit code that client-go knows; known is false where it knows
// none and gives an error of the connection.
func (x *plainExec) code() (code int, known bool) {
	<-x.ended
	var exit exec.ExitError
	switch {
	case x.err == nil:
		return 0, true
	case errors.As(x.err, &exit):
		return exit.ExitStatus(), true
	}
	return 0, false
}

// expect is for what a plain exec survives.
func (x *plainExec) expect(stdout string, code int) {
	x.h.t.Helper()
	got, known := x.code()
	if text := x.stdout.String(); text != stdout || !known || got != code {
		x.h.t.Errorf("a plain exec prints %d bytes, want %d, and ends with %v, want exit code %d", len(text), len(stdout), x.err, code)
	}
}

// expectLost is for a connection that broke: the exit code is not the script's,
// and nothing brings back the rest of the output.
func (x *plainExec) expectLost(whole string, code int) {
	x.h.t.Helper()
	if got, known := x.code(); known && got == code {
		x.h.t.Errorf("a plain exec knows the exit code %d in spite of the fault", code)
	}
	text := x.stdout.String()
	if len(text) >= len(whole) {
		x.h.t.Errorf("a plain exec prints %d bytes of %d in spite of the fault", len(text), len(whole))
	}
	x.h.t.Logf("a plain exec prints %d of %d bytes and gives the error %v", len(text), len(whole), x.err)
}

// expectDeceived is for a fault that goes unnoticed: the exit code is the
// script's, the output is not.
func (x *plainExec) expectDeceived(whole string, code int) {
	x.h.t.Helper()
	got, known := x.code()
	if x.stdout.String() == whole || !known || got != code {
		x.h.t.Errorf("a plain exec prints %d bytes of %d and gives %v; it should not have noticed", len(x.stdout.String()), len(whole), x.err)
	}
}

// expectWaiting is for a connection that is dead and open: client-go waits on,
// long after our own stage has ended.
func (x *plainExec) expectWaiting() {
	x.h.t.Helper()
	select {
	case <-x.ended:
		x.h.t.Errorf("a plain exec has noticed: %v", x.err)
	default:
	}
	x.stop()
}

// expectRefused is for an answer in place of a connection: client-go gives it
// to the caller, and the command does not run.
func (x *plainExec) expectRefused() {
	x.h.t.Helper()
	<-x.ended
	if x.err == nil || x.stdout.String() != "" {
		x.h.t.Errorf("a plain exec prints %q and gives %v; it should have been refused", x.stdout.String(), x.err)
	}
	if _, err := os.Stat(filepath.Join(x.h.folder, "plain-starts")); !errors.Is(err, os.ErrNotExist) {
		x.h.t.Errorf("the command was started: %v", err)
	}
}

// Transports of stages, as the settings name them.
const (
	spdy      = "spdy"
	webSocket = "websocket"
)

// transport is the job's.
func (h *harness) transport() string {
	if over := h.settings["cluster.transport"]; over != "" {
		return over
	}
	return spdy
}

// overEach runs a test over each transport.
func overEach(t *testing.T, test func(t *testing.T, h *harness)) {
	t.Helper()
	for _, over := range []string{spdy, webSocket} {
		t.Run(over, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t)
			h.settings["cluster.transport"] = over
			test(t, h)
		})
	}
}

// execVerb is the verb of an exec over the job's transport.
func (h *harness) execVerb() string {
	if h.transport() == webSocket {
		return "get"
	}
	return "create"
}
