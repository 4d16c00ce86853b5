package main_test

import (
	"bytes"
	"context"
	"io"
	"net/url"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"

	"github.com/socialweb-computer/tenant-executor/kube/faultserver"
)

// plainExec runs a command as kubectl exec does, with client-go, in the job's
// Pod. What is done to our own connections is done to it as well: change gets
// its line, and the command prints text and ends with 42.
func (h *harness) plainExec(ctx context.Context, p *programs, text string, change func(*line)) (printed string, err error) {
	h.t.Helper()
	h.server.OnExec(func(e *faultserver.Exec) {
		l := &line{out: e.Stdout, in: e.Stdin, broken: make(chan faultserver.Break, 1)}
		change(l)
		written := make(chan error, 1)
		go func() {
			_, err := io.Copy(struct{ io.Writer }{l.out}, bytes.NewReader([]byte(text)))
			written <- err
		}()
		if <-written == nil {
			e.Exit(42)
			return
		}
		e.Break(<-l.broken)
	})
	defer h.server.OnExec(p.exec)
	where, err := url.Parse(h.server.URL() + "/api/v1/namespaces/" + namespace + "/pods/" + h.server.Pods()[0].Name + "/exec?command=plain&container=build&stdout=true&stderr=true")
	if err != nil {
		h.t.Fatal(err)
	}
	executor, err := remotecommand.NewSPDYExecutor(&rest.Config{Host: h.server.URL(), TLSClientConfig: rest.TLSClientConfig{
		CAFile: h.settings["cluster.ca_file"], CertFile: h.settings["cluster.cert_file"], KeyFile: h.settings["cluster.key_file"],
	}}, "POST", where)
	if err != nil {
		h.t.Fatal(err)
	}
	// client-go may write on after its context has ended.
	out, stderr := newOutput(), newOutput()
	err = executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: out, Stderr: stderr})
	return out.String(), err
}
