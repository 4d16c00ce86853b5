package settings

import (
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
)

// check says everything that is wrong with the values.
func (s Settings) check() error {
	return errors.Join(
		s.Cluster.check(),
		s.Tenant.check(),
		s.Kubernetes.check(),
		s.Job.check(),
		atLeast("wait.node", s.Wait.Node, time.Second),
		atLeast("wait.start", s.Wait.Start, time.Second),
		atLeast("wait.registry", s.Wait.Registry, 0),
		atLeast("wait.reach", s.Wait.Reach, time.Second),
		atLeast("wait.services", s.Wait.Services, time.Second),
		atLeast("run.cancel_grace", s.Run.CancelGrace, 0),
		atLeast("run.node_lost", s.Run.NodeLost, time.Second),
		atLeast("run.poll", s.Run.Poll, time.Second),
		atLeast("run.outage", s.Run.Outage, time.Second),
		atLeast("run.silence", s.Run.Silence, 3*time.Second),
		s.checkSpool(),
		atLeast("cleanup.timeout", s.Cleanup.Timeout, time.Second),
		absolute("state.dir", s.State.Dir),
		s.Metrics.check(),
		s.Log.check(),
		s.Warm.check(),
		s.checkNamespaces(),
		s.Inherit.check(),
		s.Debug.check(),
	)
}

func (i Inherit) check() error {
	if i.ConfigFile == "" {
		return nil
	}
	return absolute("inherit.config_file", i.ConfigFile)
}

// checkNamespaces refuses placeholders where no job is in their namespace: the
// scheduler counts those of one namespace alone.
func (s Settings) checkNamespaces() error {
	if s.Kubernetes.NamespacePerJob && s.Warm.Used() {
		return errors.New("kubernetes.namespace_per_job is set beside warm: placeholders make way for jobs of their own namespace alone; keep one of them")
	}
	return nil
}

func (t Tenant) check() error {
	var all []error
	if t.Ceiling < 1 {
		all = append(all, fmt.Errorf("tenant.ceiling is %d: a cluster without nodes runs no job; it has to be at least 1", t.Ceiling))
	}
	if t.PodsPerNode < 0 {
		all = append(all, fmt.Errorf("tenant.pods_per_node is %d: it has to be at least 1", t.PodsPerNode))
	}
	all = append(all, atLeast("tenant.hold", t.Hold, 0))
	for _, field := range []struct{ key, value string }{
		{"tenant.node_cpu", t.NodeCPU}, {"tenant.node_memory", t.NodeMemory}, {"tenant.node_ephemeral_storage", t.NodeEphemeralStorage},
	} {
		_, err := quantity(field.key, field.value)
		all = append(all, err)
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
