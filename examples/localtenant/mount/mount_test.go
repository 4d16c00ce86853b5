package mount

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/socialweb-computer/tenant-executor/examples/localtenant/pki"
)

const token = "open-sesame"

// stand is a mount before an apiserver that tells what has arrived.
type stand struct {
	t      *testing.T
	mount  *Mount
	target atomic.Pointer[string]
	client *http.Client
	// own is a client certificate that the apiserver would take.
	own tls.Certificate
}

func newStand(t *testing.T) *stand {
	t.Helper()
	tenant, kcp := authority(t), authority(t)
	loopback := netip.MustParseAddr("127.0.0.1")
	serving := issue(t, kcp, pki.Subject{CommonName: "mount", Addresses: []netip.Addr{loopback}})
	client := issue(t, tenant, pki.Subject{CommonName: "admin"})
	s := &stand{t: t, own: both(t, client)}
	s.serve(tenant, issue(t, tenant, pki.Subject{CommonName: "api", Addresses: []netip.Addr{loopback}}))
	mount, err := Start(t.Context(), Options{
		Address: "127.0.0.1:0", Cluster: "demo", Token: token, Serving: serving,
		Target: func() string { return *s.target.Load() }, Authority: tenant.Certificate(), Client: client,
		Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	s.mount = mount
	s.client = &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: pool(kcp), Certificates: []tls.Certificate{s.own}}, DisableKeepAlives: true,
	}}
	return s
}

// serve starts the apiserver, which knows its callers by certificate alone.
func (s *stand) serve(tenant *pki.Authority, serving pki.Pair) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/watch" {
			fmt.Fprintln(w, "first")
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done() // the watch goes on
			return
		}
		user := r.TLS.PeerCertificates[0].Subject.CommonName
		fmt.Fprintf(w, "%s %s as %s, authorization %q, upgrade %q %q", r.Method, r.URL, user,
			r.Header.Get("Authorization"), r.Header.Get("Upgrade"), r.Header.Get("Connection"))
	}))
	server.TLS = &tls.Config{
		Certificates: []tls.Certificate{both(s.t, serving)}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool(tenant),
	}
	server.StartTLS()
	s.t.Cleanup(server.Close)
	s.target.Store(&server.URL)
}

func authority(t *testing.T) *pki.Authority {
	t.Helper()
	made, err := pki.NewAuthority("test", time.Now)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func issue(t *testing.T, by *pki.Authority, subject pki.Subject) pki.Pair {
	t.Helper()
	pair, err := by.Issue(subject)
	if err != nil {
		t.Fatal(err)
	}
	return pair
}

func both(t *testing.T, pair pki.Pair) tls.Certificate {
	t.Helper()
	made, err := tls.X509KeyPair(pair.Certificate, pair.Key)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func pool(of *pki.Authority) *x509.CertPool {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(of.Certificate())
	return roots
}

// ask sends a request below the mount's root with headers, given in pairs.
func (s *stand) ask(path string, headers ...string) *http.Response {
	s.t.Helper()
	request, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, strings.TrimSuffix(s.mount.URL(), "/clusters/demo")+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := s.client.Do(request)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { response.Body.Close() })
	return response
}

func (s *stand) text(response *http.Response) string {
	s.t.Helper()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return string(text)
}

func TestPassesOn(t *testing.T) {
	s := newStand(t)
	response := s.ask("/clusters/demo/api/v1/pods?limit=1", "Authorization", "Bearer "+token)
	want := `GET /api/v1/pods?limit=1 as admin, authorization "", upgrade "" ""`
	if got := s.text(response); response.StatusCode != http.StatusOK || got != want {
		t.Errorf("%s: %s\nwant %s", response.Status, got, want)
	}
}

// TestTokenAlone: the client of these requests has a certificate that the
// apiserver takes, and that is worth nothing here.
func TestTokenAlone(t *testing.T) {
	s := newStand(t)
	for name, headers := range map[string][]string{
		"a certificate":   nil,
		"another token":   {"Authorization", "Bearer " + token + "x"},
		"an empty token":  {"Authorization", "Bearer "},
		"a password":      {"Authorization", "Basic " + token},
		"the token alone": {"Authorization", token},
	} {
		response := s.ask("/clusters/demo/api", headers...)
		var status metav1.Status
		if err := json.Unmarshal([]byte(s.text(response)), &status); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if response.StatusCode != http.StatusUnauthorized || status.Code != http.StatusUnauthorized || status.Reason != metav1.StatusReasonUnauthorized {
			t.Errorf("%s: %s, %+v; want 401 as a Status", name, response.Status, status)
		}
	}
}

func TestNoUpgrade(t *testing.T) {
	s := newStand(t)
	for _, protocol := range []string{"SPDY/3.1", "websocket"} {
		response := s.ask("/clusters/demo/exec", "Authorization", "Bearer "+token, "Connection", "Upgrade", "Upgrade", protocol)
		if got := s.text(response); response.StatusCode != http.StatusOK || !strings.HasSuffix(got, `upgrade "" ""`) {
			t.Errorf("%s: %s: %s; want it to arrive as a plain request", protocol, response.Status, got)
		}
	}
}

func TestOtherPaths(t *testing.T) {
	s := newStand(t)
	for _, path := range []string{"/", "/api", "/clusters/", "/clusters/other/api", "/clusters/demonstration/api"} {
		response := s.ask(path, "Authorization", "Bearer "+token)
		if response.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %s, want 404", path, response.Status)
		}
	}
}

// TestWatch: what arrives is passed on at once, without waiting for more.
func TestWatch(t *testing.T) {
	s := newStand(t)
	response := s.ask("/clusters/demo/watch", "Authorization", "Bearer "+token)
	first := make([]byte, len("first\n"))
	if _, err := io.ReadFull(response.Body, first); err != nil || string(first) != "first\n" {
		t.Errorf("%q, %v", first, err)
	}
}

func TestTargetMovesAndGoes(t *testing.T) {
	s := newStand(t)
	there, gone := *s.target.Load(), "https://127.0.0.1:1"
	s.target.Store(&gone)
	response := s.ask("/clusters/demo/api", "Authorization", "Bearer "+token)
	if text := s.text(response); response.StatusCode != http.StatusBadGateway || !strings.Contains(text, "the tenant does not answer") {
		t.Errorf("with the apiserver down: %s: %s", response.Status, text)
	}
	s.target.Store(&there)
	if response := s.ask("/clusters/demo/api", "Authorization", "Bearer "+token); response.StatusCode != http.StatusOK {
		t.Errorf("with the apiserver at a new place: %s", response.Status)
	}
}

func TestEndsWithItsContext(t *testing.T) {
	tenant := authority(t)
	pair := issue(t, tenant, pki.Subject{CommonName: "mount", Addresses: []netip.Addr{netip.MustParseAddr("127.0.0.1")}})
	ctx, cancel := context.WithCancel(t.Context())
	m, err := Start(ctx, Options{
		Address: "127.0.0.1:0", Cluster: "demo", Token: token, Serving: pair, Target: func() string { return "" },
		Authority: tenant.Certificate(), Client: pair, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool(tenant)}, DisableKeepAlives: true}}
	for deadline := time.Now().Add(10 * time.Second); ; {
		response, err := client.Get(m.URL())
		if err != nil {
			return
		}
		response.Body.Close()
		if time.Now().After(deadline) {
			t.Fatal("it still answers after its context is over")
		}
	}
}
