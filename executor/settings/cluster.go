package settings

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// transports are the protocols that carry exec.
var transports = []string{"spdy", "websocket"}

// check accepts exactly one of the three ways to the cluster, with all that
// the way needs.
func (c Cluster) check() error {
	var ways []string
	for _, way := range []struct {
		key string
		set bool
	}{{"url", c.URL != ""}, {"discover_cluster", c.DiscoverCluster != ""}, {"in_cluster", c.InCluster}} {
		if way.set {
			ways = append(ways, "cluster."+way.key)
		}
	}
	var all []error
	switch {
	case len(ways) == 0:
		all = append(all, errors.New(`cluster.url is not set: write the apiserver's address, such as "https://127.0.0.1:36443"; or set cluster.discover_cluster to have it looked up, or cluster.in_cluster where the driver runs in a Pod of the cluster`))
	case len(ways) > 1:
		all = append(all, fmt.Errorf("%s are set: keep one of them, they are different ways to find the cluster", strings.Join(ways, " and ")))
	case c.URL != "":
		all = append(all, CheckURL("cluster.url", c.URL))
	}
	if !slices.Contains(transports, c.Transport) {
		all = append(all, fmt.Errorf("cluster.transport is %q: use one of %s", c.Transport, strings.Join(transports, ", ")))
	}
	all = append(all, c.checkDiscovery()...)
	return errors.Join(append(all, c.checkFiles()...)...)
}

func (c Cluster) checkDiscovery() []error {
	var all []error
	if c.DiscoverCluster == "" {
		for _, field := range []struct{ key, value string }{
			{"discover_kubeconfig", c.DiscoverKubeconfig}, {"discover_context", c.DiscoverContext}, {"discover_resource", c.DiscoverResource},
		} {
			if field.value != "" {
				all = append(all, fmt.Errorf("cluster.%s is set without cluster.discover_cluster: set that to the name of the Cluster object", field.key))
			}
		}
		return all
	}
	if strings.ContainsAny(c.DiscoverCluster, "/%") || c.DiscoverCluster == "." || c.DiscoverCluster == ".." {
		all = append(all, fmt.Errorf("cluster.discover_cluster is %q: write the name of the Cluster object alone", c.DiscoverCluster))
	}
	if c.DiscoverKubeconfig == "" {
		all = append(all, errors.New("cluster.discover_kubeconfig is not set: it names the kubeconfig of the workspace that the Cluster object is in"))
	} else {
		all = append(all, absolute("cluster.discover_kubeconfig", c.DiscoverKubeconfig))
	}
	if group := schema.ParseGroupResource(c.DiscoverResource); c.DiscoverResource != "" && (group.Group == "" || group.Resource == "") {
		all = append(all, fmt.Errorf("cluster.discover_resource is %q: write resource and API group, such as clusters.example.com", c.DiscoverResource))
	}
	return all
}

func (c Cluster) checkFiles() []error {
	var all []error
	for _, field := range []struct{ key, value string }{
		{"cluster.ca_file", c.CAFile}, {"cluster.cert_file", c.CertFile}, {"cluster.key_file", c.KeyFile},
	} {
		switch {
		case c.InCluster && field.value != "":
			all = append(all, fmt.Errorf("%s is set beside cluster.in_cluster: remove it, the Pod's service account takes its place", field.key))
		case c.InCluster:
		case field.value == "":
			all = append(all, fmt.Errorf("%s is not set: it names a PEM file", field.key))
		default:
			all = append(all, absolute(field.key, field.value))
		}
	}
	return all
}

func absolute(key, value string) error {
	if path.IsAbs(value) {
		return nil
	}
	return fmt.Errorf("%s is %q: write the whole path, the runner calls the driver in a folder of its own", key, value)
}

// CheckURL accepts the one kind of address that a tenant cluster has for a
// runner on the kcp host. The kcp mount takes bearer tokens only and carries no
// upgraded connections, so no exec goes through it. What names the address in
// errors.
func CheckURL(what, raw string) error {
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return fmt.Errorf("%s is not an address: %w", what, err)
	case strings.Contains(u.Path, "/clusters/"):
		return fmt.Errorf("%s is %q: this is the kcp mount, which takes bearer tokens only and carries no exec; use the loopback address in .status.url of the Cluster object, on the kcp host", what, u.Redacted())
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return fmt.Errorf("%s is %q: it has to be https://HOST:PORT and nothing more", what, u.Redacted())
	case u.Scheme != "https":
		return fmt.Errorf("%s is %q: it has to start with https://, since the driver shows a client certificate", what, raw)
	case strings.Trim(u.Path, "/") != "":
		return fmt.Errorf("%s is %q: it has to be https://HOST:PORT without a path", what, raw)
	case !isLoopback(u.Hostname()):
		return fmt.Errorf("%s is %q: a tenant cluster listens on the loopback interface of the kcp host; run the runner there and use 127.0.0.1, or run it in a Pod of the cluster with cluster.in_cluster", what, raw)
	}
	return nil
}

func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.IsLoopback()
}
