package settings

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Pull policies under the names that GitLab gives them.
var pullPolicies = []string{"always", "if-not-present", "never"}

// transports are the protocols that carry exec.
var transports = []string{"spdy", "websocket"}

// check says everything that is wrong with the values.
func (s Settings) check() error {
	return errors.Join(
		s.Cluster.check(),
		s.Kubernetes.check(),
		s.Job.check(),
		atLeast("wait.node", s.Wait.Node, time.Second),
		atLeast("wait.start", s.Wait.Start, time.Second),
		atLeast("wait.reach", s.Wait.Reach, time.Second),
		atLeast("run.cancel_grace", s.Run.CancelGrace, 0),
		atLeast("run.node_lost", s.Run.NodeLost, time.Second),
		atLeast("run.poll", s.Run.Poll, time.Second),
		atLeast("run.outage", s.Run.Outage, time.Second),
		atLeast("run.silence", s.Run.Silence, 3*time.Second),
		s.Run.checkSpool(),
		atLeast("cleanup.timeout", s.Cleanup.Timeout, time.Second),
	)
}

func (c Cluster) check() error {
	var all []error
	for _, field := range []struct{ key, value string }{
		{"cluster.ca_file", c.CAFile}, {"cluster.cert_file", c.CertFile}, {"cluster.key_file", c.KeyFile},
	} {
		if field.value == "" {
			all = append(all, fmt.Errorf("%s is not set: it names a PEM file", field.key))
		} else if !path.IsAbs(field.value) {
			all = append(all, fmt.Errorf("%s is %q: write the whole path, the runner calls the driver in a folder of its own", field.key, field.value))
		}
	}
	if !slices.Contains(transports, c.Transport) {
		all = append(all, fmt.Errorf("cluster.transport is %q: use one of %s", c.Transport, strings.Join(transports, ", ")))
	}
	return errors.Join(append(all, checkURL(c.URL))...)
}

// checkURL accepts the one kind of address that a tenant cluster has for a
// runner. The kcp mount takes bearer tokens only and carries no upgraded
// connections, so no exec goes through it.
func checkURL(raw string) error {
	if raw == "" {
		return errors.New(`cluster.url is not set: write the apiserver's address, such as "https://127.0.0.1:36443"`)
	}
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return fmt.Errorf("cluster.url is not an address: %w", err)
	case u.Scheme != "https":
		return fmt.Errorf("cluster.url is %q: it has to start with https://, since the driver shows a client certificate", raw)
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return fmt.Errorf("cluster.url is %q: it has to be https://HOST:PORT and nothing more", u.Redacted())
	case strings.Contains(u.Path, "/clusters/"):
		return fmt.Errorf("cluster.url is %q: this is the kcp mount, which takes bearer tokens only and carries no exec; use the loopback address in .status.url of the Cluster object, on the kcp host", raw)
	case strings.Trim(u.Path, "/") != "":
		return fmt.Errorf("cluster.url is %q: it has to be https://HOST:PORT without a path", raw)
	case !isLoopback(u.Hostname()):
		return fmt.Errorf("cluster.url is %q: a tenant cluster listens on the loopback interface of the kcp host; run the runner there and use 127.0.0.1", raw)
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

func (k Kubernetes) check() error {
	var all []error
	complain := func(format string, args ...any) { all = append(all, fmt.Errorf(format, args...)) }

	if problems := validation.IsDNS1123Label(k.Namespace); len(problems) > 0 {
		complain("kubernetes.namespace is %q: %s", k.Namespace, strings.Join(problems, "; "))
	}
	if k.HelperImage == "" {
		complain("kubernetes.helper_image is not set: name GitLab's gitlab-runner-helper image of the runner's version")
	}
	if k.PullPolicy != "" && !slices.Contains(pullPolicies, k.PullPolicy) {
		complain("kubernetes.pull_policy is %q: use one of %s", k.PullPolicy, strings.Join(pullPolicies, ", "))
	}
	all = append(all, k.checkResources()...)
	all = append(all, checkLabels("kubernetes.node_selector", k.NodeSelector)...)
	all = append(all, checkLabels("kubernetes.pod_labels", k.PodLabels)...)
	for name := range k.PodAnnotations {
		if problems := validation.IsQualifiedName(name); len(problems) > 0 {
			complain("kubernetes.pod_annotations has the name %q: %s", name, strings.Join(problems, "; "))
		}
	}
	return errors.Join(all...)
}

func checkLabels(key string, labels map[string]string) []error {
	var all []error
	for name, value := range labels {
		if problems := validation.IsQualifiedName(name); len(problems) > 0 {
			all = append(all, fmt.Errorf("%s has the name %q: %s", key, name, strings.Join(problems, "; ")))
		}
		if problems := validation.IsValidLabelValue(value); len(problems) > 0 {
			all = append(all, fmt.Errorf("%s has the value %q: %s", key, value, strings.Join(problems, "; ")))
		}
	}
	return all
}

// Resource is a pair of settings for one resource of one container.
type Resource struct {
	// Name is the resource as the settings name it: cpu, memory or
	// ephemeral_storage, with "helper_" before it for the helper.
	Name           string
	Request, Limit string
}

// BuildResources are the resources of the build container.
func (k Kubernetes) BuildResources() []Resource {
	return []Resource{
		{"cpu", k.CPURequest, k.CPULimit},
		{"memory", k.MemoryRequest, k.MemoryLimit},
		{"ephemeral_storage", k.EphemeralStorageRequest, k.EphemeralStorageLimit},
	}
}

// HelperResources are the resources of the helper container.
func (k Kubernetes) HelperResources() []Resource {
	return []Resource{
		{"helper_cpu", k.HelperCPURequest, k.HelperCPULimit},
		{"helper_memory", k.HelperMemoryRequest, k.HelperMemoryLimit},
		{"helper_ephemeral_storage", k.HelperEphemeralStorageRequest, k.HelperEphemeralStorageLimit},
	}
}

func (k Kubernetes) checkResources() []error {
	var all []error
	for _, r := range append(k.BuildResources(), k.HelperResources()...) {
		request, err1 := quantity("kubernetes."+r.Name+"_request", r.Request)
		limit, err2 := quantity("kubernetes."+r.Name+"_limit", r.Limit)
		all = append(all, err1, err2)
		if err1 == nil && err2 == nil && r.Request != "" && r.Limit != "" && request.Cmp(limit) > 0 {
			all = append(all, fmt.Errorf("kubernetes.%s_request is %s, more than %s_limit, which is %s", r.Name, r.Request, r.Name, r.Limit))
		}
	}
	return all
}

func quantity(key, text string) (resource.Quantity, error) {
	if text == "" {
		return resource.Quantity{}, nil
	}
	q, err := resource.ParseQuantity(text)
	if err != nil {
		return q, fmt.Errorf("%s is %q: write a Kubernetes quantity such as 500m, 2 or 4Gi", key, text)
	}
	if q.Sign() <= 0 {
		return q, fmt.Errorf("%s is %q: it has to be above 0", key, text)
	}
	return q, nil
}

// smallestSpool is the least spool_limit, in bytes: some pieces of the agent's
// spool.
const smallestSpool = 16 << 20

func (r Run) checkSpool() error {
	limit, err := quantity("run.spool_limit", r.SpoolLimit)
	if err != nil {
		return err
	}
	if limit.Value() < smallestSpool {
		return fmt.Errorf("run.spool_limit is %q: it has to be at least 16Mi", r.SpoolLimit)
	}
	return nil
}

// SpoolBytes is the spool limit in bytes.
func (r Run) SpoolBytes() int64 {
	limit, err := resource.ParseQuantity(r.SpoolLimit)
	if err != nil {
		return smallestSpool // not reached: Parse has checked it
	}
	return limit.Value()
}

func (j Job) check() error {
	var all []error
	for _, dir := range []struct{ key, value string }{{"job.builds_dir", j.BuildsDir}, {"job.cache_dir", j.CacheDir}} {
		if !path.IsAbs(dir.value) || path.Clean(dir.value) != dir.value || dir.value == "/" {
			all = append(all, fmt.Errorf("%s is %q: write a folder's whole path, such as /builds", dir.key, dir.value))
		}
	}
	if j.Shell != "bash" && j.Shell != "sh" {
		all = append(all, fmt.Errorf("job.shell is %q: use bash or sh", j.Shell))
	}
	return errors.Join(all...)
}

func atLeast(key string, value Duration, least time.Duration) error {
	parsed, err := time.ParseDuration(string(value))
	if err != nil {
		return fmt.Errorf("%s is %q: write a time such as 90s, 10m or 1h30m", key, value)
	}
	if parsed < least {
		return fmt.Errorf("%s is %s: it has to be at least %s", key, value, least)
	}
	return nil
}
