package stages

import (
	"encoding/json"
	"fmt"

	"github.com/socialweb-computer/tenant-executor/executor/failure"
	"github.com/socialweb-computer/tenant-executor/executor/job"
	"github.com/socialweb-computer/tenant-executor/executor/overwrite"
	"github.com/socialweb-computer/tenant-executor/executor/pod"
	"github.com/socialweb-computer/tenant-executor/executor/settings"
	"github.com/socialweb-computer/tenant-executor/kube/cluster"
	"github.com/socialweb-computer/tenant-executor/stages/state"
)

// Decided is what config has decided for the whole job. It travels to the later
// stages in job_env, so that whatever happens to the configuration files
// meanwhile neither ends a job that runs nor leaves its Pod behind.
type Decided struct {
	Settings settings.Decided
	// Namespace is that of the job's Pod, with what the job has chosen.
	Namespace string
	// Cluster is the identity of the cluster, "" where it was not known.
	Cluster string
}

// decidedText is a Decided as it travels.
type decidedText struct {
	// Job is the job's key: what was left in the environment of a shell is not
	// taken for another job's.
	Job       string `json:"job"`
	Namespace string `json:"namespace"`
	Cluster   string `json:"cluster,omitempty"`
	Settings  string `json:"settings"`
}

// decide decides for a job.
func decide(p ConfigParts) Decided {
	k := p.Settings.Kubernetes
	// What the job may not have ends prepare; until then the operator's
	// settings hold.
	asked, _ := overwrite.Apply(k, p.Job, p.Variables)
	return Decided{
		Settings:  p.Settings.Decide(),
		Namespace: pod.Namespace(asked.Settings, p.Job),
		Cluster:   identityOf(p.Settings.Cluster, p.Variables),
	}
}

// identityOf is the identity of the cluster, "" where its CA cannot be read.
func identityOf(c settings.Cluster, env job.Environment) string {
	config := cluster.Config{CAFile: c.CAFile}
	if c.InCluster {
		config, _ = cluster.InCluster(env) // without it there is no file to read
	}
	identity, err := cluster.IdentityOf(config)
	if err != nil {
		return ""
	}
	return identity
}

// text writes what was decided for job j.
func (d Decided) text(j job.Job) (string, error) {
	inner, err := d.Settings.Text()
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(decidedText{Job: j.Key(), Namespace: d.Namespace, Cluster: d.Cluster, Settings: inner})
	if err != nil {
		return "", fmt.Errorf("writing what config has decided: %w", err)
	}
	return string(text), nil
}

// ReadDecided is what config has decided for job j, nil where no config ran, or
// another version's, of which nothing can be taken.
func ReadDecided(env job.Environment, j job.Job) *Decided {
	var text decidedText
	if json.Unmarshal([]byte(env[job.HintDecided]), &text) != nil || text.Job != j.Key() {
		return nil
	}
	s, err := settings.ParseDecided(text.Settings)
	if err != nil {
		return nil
	}
	return &Decided{Settings: s, Namespace: text.Namespace, Cluster: text.Cluster}
}

// RememberCleanup writes down the cleanup of a job whose cluster could not even
// be asked, for a later stage of any job there. The parts need no Find.
func RememberCleanup(p Parts) error {
	if p.StateErr != nil {
		return p.StateErr
	}
	u := state.Undone{Key: p.Job.Key(), JobID: p.Job.ID, Since: p.Clock.Now()}
	if p.Host != nil {
		u.Owner = p.Host().annotation()
	}
	if p.Decided != nil {
		u.Cluster, u.Namespace = p.Decided.Cluster, p.Decided.Namespace
	} else {
		asked, _ := overwrite.Apply(p.Settings.Kubernetes, p.Job, p.Variables) // refused: the operator's own
		u.Namespace = pod.Namespace(asked.Settings, p.Job)
	}
	if u.Cluster == "" {
		u.Cluster = identityOf(p.Settings.Cluster, p.Variables)
	}
	if u.Cluster == "" {
		return failure.New(failure.Credentials, "the CA of the cluster cannot be read, by which it is known")
	}
	return p.State.AddUndone(u)
}
