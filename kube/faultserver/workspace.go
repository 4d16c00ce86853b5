package faultserver

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Group is an API group of a Workspace.
type Group struct {
	Name, Version string
	// Resources are what it serves.
	Resources  []string
	Namespaced bool
}

// Workspace is the apiserver of a kcp workspace with Cluster objects.
type Workspace struct {
	ca      *authority
	address string

	mu       sync.Mutex
	web      *httptest.Server
	groups   []Group
	legacy   bool
	objects  map[string]string
	answer   func(w http.ResponseWriter) bool
	requests []string
}

// WorkspaceToken lets a client in.
const WorkspaceToken = "workspace-token"

// StartWorkspace starts a Workspace, which ends with the test. It serves
// clusters.tenancy.example.com.
func StartWorkspace(t testing.TB) *Workspace {
	t.Helper()
	ca, err := newAuthority("kcp CA")
	if err != nil {
		t.Fatalf("starting the workspace: %v", err)
	}
	w := &Workspace{ca: ca, address: "127.0.0.1:0", objects: map[string]string{}}
	w.SetGroups(
		Group{Name: "apps", Version: "v1", Resources: []string{"deployments"}, Namespaced: true},
		Group{Name: "tenancy.example.com", Version: "v1alpha1", Resources: []string{"workspaces", "clusters"}},
	)
	w.Up(t)
	t.Cleanup(w.Down)
	return w
}

// Up opens the port, again after Down.
func (w *Workspace) Up(t testing.TB) {
	t.Helper()
	serving, err := w.ca.issue("kcp", x509.ExtKeyUsageServerAuth, w.ca.cert.NotAfter)
	if err != nil {
		t.Fatalf("opening the workspace's port: %v", err)
	}
	listener, err := listen(t, w.address)
	if err != nil {
		t.Fatalf("opening the workspace's port: %v", err)
	}
	web := &httptest.Server{
		Listener: listener,
		Config:   &http.Server{Handler: http.HandlerFunc(w.serve), ErrorLog: log.New(io.Discard, "", 0)}, //nolint:gosec // a test's
		TLS:      &tls.Config{Certificates: []tls.Certificate{serving}, MinVersion: tls.VersionTLS12},
	}
	web.StartTLS()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.web, w.address = web, listener.Addr().String()
}

// Down closes the port.
func (w *Workspace) Down() {
	w.mu.Lock()
	web := w.web
	w.web = nil
	w.mu.Unlock()
	if web != nil {
		web.CloseClientConnections()
		web.Close()
	}
}

// URL is the Workspace's address.
func (w *Workspace) URL() string { return "https://" + w.address }

// SetGroups says which API groups there are.
func (w *Workspace) SetGroups(groups ...Group) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.groups = groups
}

// SetLegacy has the Workspace list its groups as servers of old do, without
// their resources.
func (w *Workspace) SetLegacy() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.legacy = true
}

// SetCluster makes or changes the Cluster object at a path below /apis, such
// as "tenancy.example.com/v1alpha1/clusters/acme".
func (w *Workspace) SetCluster(path, url string) {
	w.SetObject(path, fmt.Sprintf(`{"status": {"url": %q, "phase": "Ready"}}`, url))
}

// SetObject makes or changes an object, "" removes it.
func (w *Workspace) SetObject(path, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.objects[path] = text
	if text == "" {
		delete(w.objects, path)
	}
}

// Refuse has every request answered with a Status from now on; code 0 ends
// that.
func (w *Workspace) Refuse(code int, reason metav1.StatusReason, message string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answer = nil
	if code != 0 {
		w.answer = func(to http.ResponseWriter) bool {
			writeStatus(to, metav1.Status{
				TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
				Status:   metav1.StatusFailure, Code: int32(code), Reason: reason, Message: message,
			})
			return true
		}
	}
}

// Redirect has every request sent on to an address from now on.
func (w *Workspace) Redirect(code int, to string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answer = func(answer http.ResponseWriter) bool {
		answer.Header().Set("Location", to)
		answer.WriteHeader(code)
		return true
	}
}

// Requests are the paths that were asked for.
func (w *Workspace) Requests() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.requests)
}

// Kubeconfig writes a kubeconfig into a folder of the test. Its user has a
// bearer token, as is usual on the kcp side, and its contexts are "one", the
// current one, and "two" with the namespace "team".
func (w *Workspace) Kubeconfig(t testing.TB) string {
	t.Helper()
	folder := t.TempDir()
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: w.ca.cert.Raw})
	text := fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: one
clusters:
- name: kcp
  cluster: {server: %q, certificate-authority: ca.crt}
users:
- name: user
  user: {token: %s}
contexts:
- name: one
  context: {cluster: kcp, user: user}
- name: two
  context: {cluster: kcp, user: user, namespace: team}
`, w.URL(), WorkspaceToken)
	path := filepath.Join(folder, "kcp.kubeconfig")
	for name, data := range map[string][]byte{filepath.Join(folder, "ca.crt"): authority, path: []byte(text)} {
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatalf("writing a kubeconfig: %v", err)
		}
	}
	return path
}

func (w *Workspace) serve(to http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.requests = append(w.requests, r.URL.Path)
	path, isAPI := strings.CutPrefix(r.URL.Path, "/apis/")
	switch {
	case w.answer != nil && w.answer(to):
	case r.Header.Get("Authorization") != "Bearer "+WorkspaceToken:
		writeStatus(to, metav1.Status{Status: metav1.StatusFailure, Code: http.StatusUnauthorized, Reason: metav1.StatusReasonUnauthorized, Message: "Unauthorized"})
	case r.URL.Path == "/apis":
		w.listGroups(to, strings.Contains(r.Header.Get("Accept"), "as=APIGroupDiscoveryList"))
	case isAPI && w.objects[path] != "":
		to.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(to, w.objects[path])
	case isAPI && w.listResources(to, path):
	default:
		writeStatus(to, metav1.Status{Status: metav1.StatusFailure, Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound, Message: "not found"})
	}
}

// listGroups lists the groups in one of the two forms that there are
// (k8s.io/apiserver/pkg/endpoints/discovery).
func (w *Workspace) listGroups(to http.ResponseWriter, aggregated bool) {
	type object = map[string]any
	var items, groups []object
	for _, g := range w.groups {
		scope := "Cluster"
		if g.Namespaced {
			scope = "Namespaced"
		}
		var resources []object
		for _, name := range g.Resources {
			resources = append(resources, object{"resource": name, "scope": scope, "verbs": []string{"get"}})
		}
		items = append(items, object{"metadata": object{"name": g.Name}, "versions": []object{{"version": g.Version, "resources": resources}}})
		version := object{"groupVersion": g.Name + "/" + g.Version, "version": g.Version}
		groups = append(groups, object{"name": g.Name, "versions": []object{version}, "preferredVersion": version})
	}
	answer := object{"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}
	if aggregated && !w.legacy {
		answer = object{"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "items": items}
	}
	to.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(to).Encode(answer)
}

// listResources lists the resources of GROUP/VERSION.
func (w *Workspace) listResources(to http.ResponseWriter, path string) bool {
	for _, g := range w.groups {
		if path != g.Name+"/"+g.Version {
			continue
		}
		list := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: path}
		for _, name := range g.Resources {
			list.APIResources = append(list.APIResources, metav1.APIResource{Name: name, Namespaced: g.Namespaced, Verbs: []string{"get"}})
		}
		writeJSON(to, http.StatusOK, list)
		return true
	}
	return false
}
