package settings

import (
	"bytes"
	"fmt"

	"github.com/pelletier/go-toml/v2"
)

// Decided is what a job's later stages need of the settings, as they were when
// the job began. It goes through the environment of processes, which others of
// the same user can read: no key that may hold a secret is in it.
type Decided struct {
	Cluster    Cluster           `toml:"cluster"`
	Tenant     Tenant            `toml:"tenant"`
	Job        Job               `toml:"job"`
	Wait       Wait              `toml:"wait"`
	Run        Run               `toml:"run"`
	Cleanup    Cleanup           `toml:"cleanup"`
	State      State             `toml:"state"`
	Metrics    Metrics           `toml:"metrics"`
	Log        Log               `toml:"log"`
	Warm       Warm              `toml:"warm"`
	Debug      Debug             `toml:"debug"`
	Kubernetes DecidedKubernetes `toml:"kubernetes"`
}

// DecidedKubernetes is where a job's Pod is and how it ends.
type DecidedKubernetes struct {
	Namespace                 string            `toml:"namespace"`
	NamespacePerJob           bool              `toml:"namespace_per_job"`
	NamespaceOverwriteAllowed string            `toml:"namespace_overwrite_allowed"`
	CleanupGrace              *int64            `toml:"cleanup_grace_period_seconds"`
	NodeSelector              map[string]string `toml:"node_selector"`
	NodeTolerations           map[string]string `toml:"node_tolerations"`
}

// Decide is what later stages need of s.
func (s Settings) Decide() Decided {
	return Decided{
		Cluster: s.Cluster, Tenant: s.Tenant, Job: s.Job, Wait: s.Wait, Run: s.Run, Cleanup: s.Cleanup,
		State: s.State, Metrics: s.Metrics, Log: s.Log, Warm: s.Warm, Debug: s.Debug,
		Kubernetes: DecidedKubernetes{
			Namespace:                 s.Kubernetes.Namespace,
			NamespacePerJob:           s.Kubernetes.NamespacePerJob,
			NamespaceOverwriteAllowed: s.Kubernetes.NamespaceOverwriteAllowed,
			CleanupGrace:              s.Kubernetes.CleanupGrace,
			NodeSelector:              s.Kubernetes.NodeSelector,
			NodeTolerations:           s.Kubernetes.NodeTolerations,
		},
	}
}

// Over are the settings of the files as they are now, with what was decided in
// its place.
func (d Decided) Over(s Settings) Settings {
	s.Cluster, s.Tenant, s.Job, s.Wait, s.Run, s.Cleanup = d.Cluster, d.Tenant, d.Job, d.Wait, d.Run, d.Cleanup
	s.State, s.Metrics, s.Log, s.Warm, s.Debug = d.State, d.Metrics, d.Log, d.Warm, d.Debug
	k := &s.Kubernetes
	k.Namespace, k.NamespacePerJob = d.Kubernetes.Namespace, d.Kubernetes.NamespacePerJob
	k.NamespaceOverwriteAllowed, k.CleanupGrace = d.Kubernetes.NamespaceOverwriteAllowed, d.Kubernetes.CleanupGrace
	k.NodeSelector, k.NodeTolerations = d.Kubernetes.NodeSelector, d.Kubernetes.NodeTolerations
	return s
}

// Alone are the settings where no file can be read.
func (d Decided) Alone() Settings { return d.Over(Defaults()) }

// Text writes what was decided, for ParseDecided.
func (d Decided) Text() (string, error) {
	text, err := toml.Marshal(d)
	if err != nil {
		return "", fmt.Errorf("writing the settings for later stages: %w", err)
	}
	return string(text), nil
}

// ParseDecided reads what Text has written, also that of a driver of another
// version: keys that are not known are passed over, and those that are not
// there have their defaults.
func ParseDecided(text string) (Decided, error) {
	d := Defaults().Decide()
	if err := toml.NewDecoder(bytes.NewReader([]byte(text))).Decode(&d); err != nil {
		return Decided{}, fmt.Errorf("reading the settings of the job's beginning: %w", explain(err))
	}
	if err := d.Alone().check(); err != nil {
		return Decided{}, fmt.Errorf("reading the settings of the job's beginning: %w", err)
	}
	return d, nil
}
