package stream_test

import (
	"bytes"
	"context"
	"runtime"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/socialweb-computer/tenant-executor/kube/cluster"
	"github.com/socialweb-computer/tenant-executor/kube/faultserver"
	"github.com/socialweb-computer/tenant-executor/kube/stream"
)

// The Pod that all tests of this package run commands in.
const (
	namespace = "ci"
	podName   = "job"
)

// bench is a server with one running Pod and a client of it.
type bench struct {
	server  *faultserver.Server
	cluster *cluster.Client
	runner  *stream.Runner
}

// overEach runs a test over each transport.
func overEach(t *testing.T, test func(t *testing.T, b *bench)) {
	t.Helper()
	for _, over := range []stream.Transport{stream.SPDY, stream.WebSocket} {
		t.Run(string(over), func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.runner = stream.NewRunner(b.cluster, over)
			test(t, b)
		})
	}
}

func newBench(t *testing.T) *bench {
	t.Helper()
	server := faultserver.Start(t)
	server.AddPod(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: podName},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "build"}}},
	}, faultserver.Scheduled("n1"), faultserver.Running())
	return connect(t, server, server.Credentials(t))
}

func connect(t *testing.T, server *faultserver.Server, files faultserver.Credentials) *bench {
	t.Helper()
	c, err := cluster.Connect(t.Context(), cluster.Fixed(cluster.Config{URL: server.URL(), CAFile: files.CAFile, CertFile: files.CertFile, KeyFile: files.KeyFile, UserAgent: "test"}))
	if err != nil {
		t.Fatal(err)
	}
	return &bench{server: server, cluster: c, runner: stream.NewRunner(c, stream.SPDY)}
}

// outcome is what Run gave.
type outcome struct {
	code           int
	err            error
	stdout, stderr bytes.Buffer
}

func (b *bench) run(ctx context.Context, args ...string) *outcome {
	o := &outcome{}
	o.code, o.err = b.runner.Run(ctx, b.command(o, args...))
	return o
}

func (b *bench) command(o *outcome, args ...string) stream.Command {
	return stream.Command{Namespace: namespace, Pod: podName, Container: "build", Args: args, Stdout: &o.stdout, Stderr: &o.stderr}
}

// yield lets others run.
func yield() { runtime.Gosched() }
