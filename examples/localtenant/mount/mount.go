// Package mount serves a tenant's apiserver below /clusters/NAME/, as the kcp
// side's proxy does for users: with a bearer token, and without connections
// that change their protocol, so that nobody can exec through it.
package mount

import (
	"context"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/socialweb-computer/tenant-executor/examples/localtenant/pki"
)

// Options are what a mount needs.
type Options struct {
	// Address is the host:port to listen on.
	Address string
	// Cluster is the name in the path.
	Cluster string
	// Token is the one that is let in.
	Token string
	// Serving is the server's own certificate.
	Serving pki.Pair
	// Target gives the apiserver's URL, which may change.
	Target func() string
	// Authority is the apiserver's CA, Client who the mount is there.
	Authority []byte
	Client    pki.Pair
	Log       *slog.Logger
}

// Mount is a running mount.
type Mount struct {
	url    string
	server *http.Server
}

// Start serves until the context is over.
func Start(ctx context.Context, o Options) (*Mount, error) {
	handler, err := newHandler(o)
	if err != nil {
		return nil, fmt.Errorf("start the mount: %w", err)
	}
	serving, err := tls.X509KeyPair(o.Serving.Certificate, o.Serving.Key)
	if err != nil {
		return nil, fmt.Errorf("start the mount: %w", err)
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", o.Address)
	if err != nil {
		return nil, fmt.Errorf("start the mount: %w", err)
	}
	m := &Mount{
		url: "https://" + listener.Addr().String() + prefix + o.Cluster,
		server: &http.Server{
			Handler: handler, ReadHeaderTimeout: 10 * time.Second,
			ErrorLog: slog.NewLogLogger(o.Log.Handler(), slog.LevelDebug),
			// No client certificate is ever asked for.
			TLSConfig: &tls.Config{Certificates: []tls.Certificate{serving}, MinVersion: tls.VersionTLS12, ClientAuth: tls.NoClientCert},
		},
	}
	context.AfterFunc(ctx, func() { m.server.Close() })
	go func() {
		if err := m.server.ServeTLS(listener, "", ""); !errors.Is(err, http.ErrServerClosed) {
			o.Log.Error("the mount has ended", "error", err)
		}
	}()
	return m, nil
}

// URL is where the tenant's API is mounted.
func (m *Mount) URL() string { return m.url }

// prefix is where all mounts are.
const prefix = "/clusters/"

// newHandler lets the token in, and passes on what lies below the cluster's
// path.
func newHandler(o Options) (http.Handler, error) {
	own, err := tls.X509KeyPair(o.Client.Certificate, o.Client.Key)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(o.Authority) {
		return nil, errors.New("the apiserver's CA is no certificate")
	}
	proxy := &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { rewrite(r, o.Target()) },
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{own}, MinVersion: tls.VersionTLS12}},
		ErrorLog:  slog.NewLogLogger(o.Log.Handler(), slog.LevelDebug),
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			refuse(w, http.StatusBadGateway, metav1.StatusReasonServiceUnavailable, "the tenant does not answer: "+err.Error())
		},
	}
	mux := http.NewServeMux()
	mux.Handle(prefix+o.Cluster+"/", http.StripPrefix(prefix+o.Cluster, proxy))
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound, "nothing is mounted at "+r.URL.Path)
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, isBearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if !isBearer || subtle.ConstantTimeCompare([]byte(token), []byte(o.Token)) != 1 {
			refuse(w, http.StatusUnauthorized, metav1.StatusReasonUnauthorized, "Unauthorized")
			return
		}
		mux.ServeHTTP(w, r)
	}), nil
}

// rewrite turns a request to the mount into one to the apiserver. What asks for
// another protocol (exec, attach, port-forward) arrives as a plain request,
// which the apiserver refuses.
func rewrite(r *httputil.ProxyRequest, target string) {
	to, err := url.Parse(target)
	if err != nil {
		// The proxy answers that there is no such host.
		to = &url.URL{Scheme: "https"}
	}
	r.SetURL(to)
	for _, name := range []string{"Authorization", "Connection", "Upgrade"} {
		r.Out.Header.Del(name)
	}
}

// refuse answers as an apiserver does.
func refuse(w http.ResponseWriter, code int, reason metav1.StatusReason, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	// A client that has gone away needs no answer.
	_ = json.NewEncoder(w).Encode(metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure, Reason: reason, Message: message, Code: int32(code),
	})
}
