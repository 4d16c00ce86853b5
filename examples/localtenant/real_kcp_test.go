//go:build localtenant

package main

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// side is the kcp side, as its administrator sees it.
type side struct {
	t      *testing.T
	config *rest.Config
	name   string
}

func (c *cluster) kcp() side {
	c.t.Helper()
	state := c.status().KCP
	config, err := clientcmd.BuildConfigFromFlags("", state.Kubeconfig)
	if err != nil {
		c.t.Fatal(err)
	}
	return side{t: c.t, config: config, name: state.Cluster}
}

// resource finds what serves clusters, whatever its group.
func (s side) resource() schema.GroupVersionResource {
	s.t.Helper()
	client, err := discovery.NewDiscoveryClientForConfig(s.config)
	if err != nil {
		s.t.Fatal(err)
	}
	lists, err := client.ServerPreferredResources()
	if err != nil {
		s.t.Fatal(err)
	}
	var found []schema.GroupVersionResource
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			s.t.Fatal(err)
		}
		for _, resource := range list.APIResources {
			if resource.Name == "clusters" && resource.SingularName == "cluster" && !resource.Namespaced && slices.Contains(resource.Verbs, "watch") {
				found = append(found, version.WithResource(resource.Name))
			}
		}
	}
	if len(found) != 1 {
		s.t.Fatalf("%v serve clusters, want one", found)
	}
	return found[0]
}

func (s side) clusters(config *rest.Config) dynamic.ResourceInterface {
	s.t.Helper()
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		s.t.Fatal(err)
	}
	return client.Resource(s.resource())
}

// url is .status.url of the tenant's Cluster.
func (s side) url() string {
	s.t.Helper()
	object, err := s.clusters(s.config).Get(s.t.Context(), s.name, metav1.GetOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	url, _, err := unstructured.NestedString(object.Object, "status", "url")
	if err != nil {
		s.t.Fatal(err)
	}
	if phase, _, _ := unstructured.NestedString(object.Object, "status", "phase"); phase != "Ready" {
		s.t.Errorf("the phase is %q", phase)
	}
	return url
}

// stranger is somebody who is known on the kcp side and has no rights there.
func (s side) stranger() *rest.Config {
	s.t.Helper()
	client, err := typedcorev1.NewForConfig(s.config)
	if err != nil {
		s.t.Fatal(err)
	}
	accounts := client.ServiceAccounts("default")
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "stranger"}}
	if _, err := accounts.Create(s.t.Context(), account, metav1.CreateOptions{}); err != nil {
		s.t.Fatal(err)
	}
	token, err := accounts.CreateToken(s.t.Context(), account.Name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	config := rest.AnonymousClientConfig(s.config)
	config.BearerToken = token.Status.Token
	return config
}

func TestRealKCP(t *testing.T) {
	c := newCluster(t)
	c.up("--paused")
	kcp := c.kcp()
	if got, want := kcp.url(), c.status().URL; got != want {
		t.Errorf("after up .status.url is %s, want %s", got, want)
	}

	before := kcp.url()
	c.run("apiserver", "kill")
	if got := kcp.url(); got != before {
		t.Errorf("with the apiserver down .status.url is %s, it was %s: nobody has noticed", got, before)
	}
	c.run("apiserver", "start", "--port", "new")
	if got, want := kcp.url(), c.status().URL; got != want || got == before {
		t.Errorf("at a new port .status.url is %s, want %s; it was %s", got, want, before)
	}

	c.run("kcp", "kill")
	if s := c.status().KCP; s.Running || s.PID != 0 {
		t.Errorf("after the kill: %+v", s)
	}
	c.run("apiserver", "restart", "--port", "new")
	c.run("kcp", "start")
	if got, want := c.kcp().url(), c.status().URL; got != want {
		t.Errorf("after a move that the kcp side has missed .status.url is %s, want %s", got, want)
	}
	if kcp.config.Host != c.kcp().config.Host {
		t.Errorf("the kcp side has moved from %s to %s by itself", kcp.config.Host, c.kcp().config.Host)
	}

	// The status belongs to its subresource.
	patch := []byte(`{"status":{"url":"https://elsewhere"}}`)
	if _, err := kcp.clusters(kcp.config).Patch(t.Context(), kcp.name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Error(err)
	}
	if got, want := kcp.url(), c.status().URL; got != want {
		t.Errorf("a change of the object has changed its status to %s", got)
	}
	if _, err := kcp.clusters(kcp.stranger()).Get(t.Context(), kcp.name, metav1.GetOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("somebody without rights: %v, want to be forbidden", err)
	}

	// Who is somebody there is nobody here.
	tenant, err := clientcmd.BuildConfigFromFlags("", c.status().Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	tenant.CertData, tenant.KeyData = kcp.config.CertData, kcp.config.KeyData
	client, err := typedcorev1.NewForConfig(tenant)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Nodes().List(t.Context(), metav1.ListOptions{}); !apierrors.IsUnauthorized(err) {
		t.Errorf("the administrator of the kcp side at the tenant: %v, want to be unauthorized", err)
	}
}

func TestRealMount(t *testing.T) {
	c := newCluster(t)
	c.up("--hold", "1h")
	c.startPod("job")
	mount := c.status().Mount
	byToken := &rest.Config{Host: mount.URL, BearerToken: mount.Token, TLSClientConfig: rest.TLSClientConfig{CAFile: mount.CAFile}}
	client, err := typedcorev1.NewForConfig(byToken)
	if err != nil {
		t.Fatal(err)
	}
	if pod, err := client.Pods("ci").Get(t.Context(), "job", metav1.GetOptions{}); err != nil || pod.Status.Phase != corev1.PodRunning {
		t.Errorf("by token: %v", err)
	}

	access := c.status().AccessDir
	byCertificate, err := typedcorev1.NewForConfig(&rest.Config{Host: mount.URL, TLSClientConfig: rest.TLSClientConfig{
		CAFile: mount.CAFile, CertFile: access + "/client.crt", KeyFile: access + "/client.key",
	}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := byCertificate.Pods("ci").List(t.Context(), metav1.ListOptions{}); !apierrors.IsUnauthorized(err) {
		t.Errorf("by certificate: %v, want to be unauthorized", err)
	}

	// HTTP/2 knows no upgrades: clients that exec speak HTTP/1.1.
	byToken.NextProtos = []string{"http/1.1"}
	transport, err := rest.HTTPClientFor(byToken)
	if err != nil {
		t.Fatal(err)
	}
	for _, protocol := range []string{"SPDY/3.1", "websocket"} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, mount.URL+"/api/v1/namespaces/ci/pods/job/exec?command=true&stdout=true", strings.NewReader(""))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Connection", "Upgrade")
		request.Header.Set("Upgrade", protocol)
		response, err := transport.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != http.StatusBadRequest {
			t.Errorf("exec by %s: %s, want 400", protocol, response.Status)
		}
	}
}
