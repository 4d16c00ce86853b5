package cluster_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/socialweb-computer/tenant-executor/kube/cluster"
	"github.com/socialweb-computer/tenant-executor/kube/faultserver"
)

func connect(t *testing.T, server *faultserver.Server, files faultserver.Credentials) *cluster.Client {
	t.Helper()
	c, err := cluster.Connect(t.Context(), cluster.Fixed(cluster.Config{URL: server.URL(), CAFile: files.CAFile, CertFile: files.CertFile, KeyFile: files.KeyFile, UserAgent: "test"}))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// list asks once for all Pods of a namespace. client-go by itself would ask
// again after some errors.
func list(ctx context.Context, c *cluster.Client) error {
	return c.REST().Get().MaxRetries(0).Namespace("ci").Resource("pods").Do(ctx).Into(&corev1.PodList{})
}

// class is what a caller makes of an error.
func class(err error) string {
	switch {
	case err == nil:
		return "none"
	case cluster.Denied(err) && cluster.Transient(err):
		return "both"
	case cluster.Denied(err):
		return "denied"
	case cluster.Transient(err):
		return "transient"
	}
	return "final"
}

func TestClassesOfAnswers(t *testing.T) {
	t.Parallel()
	status := faultserver.AnswerStatus
	tests := []struct {
		name  string
		fault faultserver.Fault
		want  string
	}{
		{"unauthorized", status(http.StatusUnauthorized, metav1.StatusReasonUnauthorized, "Unauthorized"), "denied"},
		{"forbidden", status(http.StatusForbidden, metav1.StatusReasonForbidden, "forbidden"), "denied"},
		{"not found", status(http.StatusNotFound, metav1.StatusReasonNotFound, "not found"), "final"},
		{"conflict", status(http.StatusConflict, metav1.StatusReasonConflict, "conflict"), "final"},
		{"invalid", status(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, "invalid"), "final"},
		{"bad request", status(http.StatusBadRequest, metav1.StatusReasonBadRequest, "bad"), "final"},
		{"etcd slow", status(http.StatusInternalServerError, metav1.StatusReasonInternalError, "etcdserver: request timed out"), "transient"},
		{"server timeout", status(http.StatusGatewayTimeout, metav1.StatusReasonTimeout, "timeout"), "transient"},
		{"starting", status(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, "apiserver not ready"), "transient"},
		{"too many", status(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, "slow down"), "transient"},
		{"bad gateway", faultserver.Answer(http.StatusBadGateway, "Bad Gateway"), "transient"},
		{"unavailable", faultserver.Answer(http.StatusServiceUnavailable, "starting"), "transient"},
		{"text of a broken server", faultserver.Answer(http.StatusInternalServerError, "database is locked"), "transient"},
		{"too large for the apiserver", faultserver.AnswerStatus(http.StatusRequestEntityTooLarge, metav1.StatusReasonRequestEntityTooLarge, "Request entity too large: limit is 3145728"), "final"},
		{"too large for a proxy", faultserver.Answer(http.StatusRequestEntityTooLarge, "Request Entity Too Large"), "final"},
		{"too large for etcd", status(http.StatusInternalServerError, "", "etcdserver: request is too large"), "final"},
		{"too large for etcd's connection", status(http.StatusInternalServerError, "", "rpc error: code = ResourceExhausted desc = trying to send message larger than max (2097200 vs. 2097152)"), "final"},
		{"etcd changes its leader", status(http.StatusInternalServerError, "", "etcdserver: leader changed"), "transient"},
		{"etcd is full", status(http.StatusInternalServerError, "", "etcdserver: mvcc: database space exceeded"), "transient"},
		{"a webhook fails", status(http.StatusInternalServerError, metav1.StatusReasonInternalError, "Internal error occurred: failed calling webhook \"a.example.com\": connection refused"), "transient"},
		{"reset", faultserver.Reset(), "transient"},
		{"broken off", faultserver.Abort(), "transient"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			server := faultserver.Start(t)
			c := connect(t, server, server.Credentials(t))
			server.Fail(-1, "", "", test.fault)
			if err := list(t.Context(), c); class(err) != test.want {
				t.Errorf("%v is %s, want %s", err, class(err), test.want)
			}
		})
	}
}

func TestClassesOfConnections(t *testing.T) {
	t.Parallel()
	server := faultserver.Start(t)
	for name, files := range map[string]faultserver.Credentials{
		"client of another CA":  server.ForeignClient(t),
		"cluster of another CA": server.ForeignCA(t),
	} {
		// The server's alert may come after the handshake (TLS 1.3), and then
		// first shows as a connection that failed.
		c := connect(t, server, files)
		err := cluster.Retry(t.Context(), time.Minute, func(ctx context.Context) error { return list(ctx, c) })
		if class(err) != "denied" {
			t.Errorf("%s: %v is %s", name, err, class(err))
		}
	}
	c := connect(t, server, server.Credentials(t))
	if err := list(t.Context(), c); err != nil {
		t.Errorf("a good certificate: %v", err)
	}

	server.Fail(1, "", "", faultserver.Silence())
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := list(short, c); class(err) != "transient" {
		t.Errorf("no answer: %v is %s", err, class(err))
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if err := list(ended, c); class(err) != "final" {
		t.Errorf("cancelled: %v is %s", err, class(err))
	}
	server.Down()
	if err := list(t.Context(), c); class(err) != "transient" {
		t.Errorf("refused: %v is %s", err, class(err))
	}
}

func TestMissingFiles(t *testing.T) {
	t.Parallel()
	server := faultserver.Start(t)
	good := server.Credentials(t)
	for _, broken := range []faultserver.Credentials{
		{CAFile: "/nowhere/ca.crt", CertFile: good.CertFile, KeyFile: good.KeyFile},
		{CAFile: good.CAFile, CertFile: "/nowhere/client.crt", KeyFile: good.KeyFile},
		{CAFile: good.CAFile, CertFile: good.CertFile, KeyFile: "/nowhere/client.key"},
	} {
		_, err := cluster.Connect(t.Context(), cluster.Fixed(cluster.Config{URL: server.URL(), CAFile: broken.CAFile, CertFile: broken.CertFile, KeyFile: broken.KeyFile}))
		var file *cluster.FileError
		if !errors.As(err, &file) {
			t.Errorf("%+v: %v is no *FileError", broken, err)
		}
	}
}

// Files that are there and are not what they should be. client-go would only
// say so in its log, and go on without a certificate.
func TestFilesThatAreNoCertificates(t *testing.T) {
	t.Parallel()
	server := faultserver.Start(t)
	good, other := server.Credentials(t), server.Credentials(t)
	for name, test := range map[string]struct {
		files faultserver.Credentials
		blame string
	}{
		"key for certificate": {faultserver.Credentials{CAFile: good.CAFile, CertFile: good.KeyFile, KeyFile: good.KeyFile}, good.KeyFile},
		"key of another":      {faultserver.Credentials{CAFile: good.CAFile, CertFile: good.CertFile, KeyFile: other.KeyFile}, good.CertFile},
		"key for CA":          {faultserver.Credentials{CAFile: good.KeyFile, CertFile: good.CertFile, KeyFile: good.KeyFile}, good.KeyFile},
	} {
		_, err := cluster.Connect(t.Context(), cluster.Fixed(cluster.Config{URL: server.URL(), CAFile: test.files.CAFile, CertFile: test.files.CertFile, KeyFile: test.files.KeyFile}))
		var file *cluster.FileError
		if !errors.As(err, &file) || file.Path != test.blame {
			t.Errorf("%s: got %v; want a *FileError of %s", name, err, test.blame)
		}
	}
}

// The driver runs beside the cluster: a proxy of the environment is not asked.
// (This test cannot be parallel: it sets the environment.)
func TestProxyOfTheEnvironmentIsNotUsed(t *testing.T) {
	t.Setenv("HTTPS_PROXY", "http://127.0.0.1:1")
	t.Setenv("https_proxy", "http://127.0.0.1:1")
	server := faultserver.Start(t)
	c := connect(t, server, server.Credentials(t))
	if c.Config().Proxy == nil {
		t.Fatal("the environment decides about a proxy")
	}
	if address, err := c.Config().Proxy(nil); address != nil || err != nil {
		t.Errorf("proxy %v, %v", address, err)
	}
	if err := list(t.Context(), c); err != nil {
		t.Error(err)
	}
}
