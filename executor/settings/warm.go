package settings

import (
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/socialweb-computer/tenant-executor/executor/warm"
)

// Warm is how nodes are kept for jobs to come.
type Warm struct {
	Linger   Duration `toml:"linger" default:"0s" doc:"How long a job's node is held for the next job once it is free. The gateway's own hold follows. cleanup then waits for the end of the job's Pod, a second or two. 0s holds none."`
	Lifetime Duration `toml:"lifetime" default:"15m" doc:"How long a placeholder of the policies holds a node at most. tenant-executor warm replaces it in time; where nobody does, the node is let go."`

	PausePodImage            string   `toml:"pause_pod_image" example:"registry.example.com/pause:3.10" doc:"Image of the placeholders: it has to wait and do nothing. Required for linger and for policies."`
	PausePodImagePullSecrets []string `toml:"pause_pod_image_pull_secrets" example:"registry-login" doc:"Names of Secrets in the namespace with logins for the registry of that image."`
	PausePodPriorityClass    string   `toml:"pause_pod_priority_class_name" example:"idle-capacity" doc:"Priority class of the placeholders. Jobs take their nodes without it."`
	MaxPausePods             int      `toml:"max_pause_pods" example:"5" doc:"How many nodes the policies keep free at most, whatever they say. 0 is without a limit."`
	Policies                 []Policy `toml:"policy" doc:"How many nodes tenant-executor warm keeps free, and when. Of several policies that apply, the last wins."`
}

// Policy is one entry of the list of policies.
type Policy struct {
	Periods          []string `toml:"periods" example:"* 8-17 * * mon-fri" doc:"When the policy applies: cron expressions of five fields, each of which names minutes. Without any it always applies."`
	Timezone         string   `toml:"timezone" example:"Europe/Berlin" doc:"Time zone of the periods. Without it that of this host."`
	IdleCount        int      `toml:"idle_count" example:"2" doc:"How many nodes are kept free."`
	IdleTime         Duration `toml:"idle_time" example:"20m" doc:"How long nodes are kept when fewer are wanted than before."`
	ScaleFactor      float64  `toml:"scale_factor" example:"0.5" doc:"Free nodes for each job that runs; it counts where that makes more than idle_count."`
	ScaleFactorLimit int      `toml:"scale_factor_limit" example:"4" doc:"How many free nodes scale_factor asks for at most. 0 is without a limit."`
}

// shortestLife is the least that linger and lifetime can be: the kubelet
// counts whole seconds, and a placeholder needs some to start.
const (
	shortestLinger = time.Second
	shortestLife   = 10 * time.Second
)

func (w Warm) check() error {
	all := []error{atLeast("warm.linger", w.Linger, 0), atLeast("warm.lifetime", w.Lifetime, shortestLife)}
	if linger := w.Linger.Value(); linger > 0 && linger < shortestLinger {
		all = append(all, fmt.Errorf("warm.linger is %s: it has to be 0s or at least %s", w.Linger, shortestLinger))
	}
	if w.MaxPausePods < 0 {
		all = append(all, fmt.Errorf("warm.max_pause_pods is %d: it has to be 0 or more", w.MaxPausePods))
	}
	if w.PausePodPriorityClass != "" && len(validation.IsDNS1123Subdomain(w.PausePodPriorityClass)) > 0 {
		all = append(all, fmt.Errorf("warm.pause_pod_priority_class_name is %q: it has to be the name of a PriorityClass", w.PausePodPriorityClass))
	}
	for i, p := range w.Policies {
		if p.IdleTime != "" {
			all = append(all, atLeast(fmt.Sprintf("warm.policy %d: idle_time", i+1), p.IdleTime, 0))
		}
	}
	policies, err := w.Compile()
	if err != nil {
		all = append(all, fmt.Errorf("warm.%w", err))
	}
	if w.PausePodImage == "" && (w.Linger.Value() > 0 || policies.Any()) {
		all = append(all, errors.New("warm.pause_pod_image is not set: placeholders need an image that waits and does nothing, such as registry.k8s.io/pause"))
	}
	return errors.Join(all...)
}

// Compile reads the policies.
func (w Warm) Compile() (warm.Policies, error) {
	var list []warm.Policy
	for _, p := range w.Policies {
		list = append(list, warm.Policy{
			Periods: p.Periods, Timezone: p.Timezone,
			IdleCount: p.IdleCount, IdleTime: p.IdleTime.Value(),
			ScaleFactor: p.ScaleFactor, ScaleFactorLimit: p.ScaleFactorLimit,
		})
	}
	return warm.Compile(list)
}

// Used says whether the settings ever make placeholders.
func (w Warm) Used() bool {
	policies, err := w.Compile()
	return w.Linger.Value() > 0 || err == nil && policies.Any()
}
