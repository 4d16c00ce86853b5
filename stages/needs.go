package stages

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/socialweb-computer/tenant-executor/executor/failure"
	"github.com/socialweb-computer/tenant-executor/executor/pod"
	"github.com/socialweb-computer/tenant-executor/kube/objects"
)

// How often it is looked for what the Pod needs where settings say "below 0",
// and the pause between two looks
// (executors/kubernetes/kubernetes.go, resourceAvailabilityCheckMaxPollInterval).
const (
	usualLooks = 5
	lookPause  = 5 * time.Second
)

// need is an object that the Pod names and somebody else makes.
type need struct {
	what, name string
	there      func(ctx context.Context, namespace, name string) (bool, error)
}

// checkNeeds waits until the service account and the registry logins of the
// Pod are there, where settings ask for it.
func (d *Driver) checkNeeds(ctx context.Context, plan pod.Objects) error {
	looks := d.settings.Kubernetes.AvailabilityAttempts
	if looks < 0 {
		looks = usualLooks
	}
	if looks == 0 {
		return nil
	}
	needs := needsOf(plan, objects.NewClient(d.cluster, requestBudget))
	for look := 1; ; look++ {
		missing, err := missingOf(ctx, plan.Pod.Namespace, needs)
		switch {
		case err != nil:
			return d.requestFailure(err)
		case len(missing) == 0:
			return nil
		case look > looks:
			return failure.New(failure.Settings, "%s: not there in namespace %s after %d looks", strings.Join(missing, ", "), plan.Pod.Namespace, look)
		case look == 1:
			d.log.Info("Waiting for %s in namespace %s", strings.Join(missing, ", "), plan.Pod.Namespace)
		}
		select {
		case <-ctx.Done():
			return d.asTheRunnerSays(failure.New(failure.Interrupted, "the runner ended prepare while it waited for %s", strings.Join(missing, ", ")))
		case <-d.clock.After(lookPause):
		}
	}
}

// needsOf leaves out what the plan makes itself.
func needsOf(plan pod.Objects, client *objects.Client) []need {
	var all []need
	if name := plan.Pod.Spec.ServiceAccountName; name != "" {
		all = append(all, need{"service account", name, client.HasServiceAccount})
	}
	own := map[string]bool{}
	for _, secret := range plan.Secrets {
		own[secret.Name] = true
	}
	for _, secret := range plan.Pod.Spec.ImagePullSecrets {
		if !own[secret.Name] {
			all = append(all, need{"Secret", secret.Name, client.HasSecret})
		}
	}
	return all
}

func missingOf(ctx context.Context, namespace string, needs []need) ([]string, error) {
	var missing []string
	for _, n := range needs {
		there, err := n.there(ctx, namespace, n.name)
		if err != nil {
			return nil, err
		}
		if !there {
			missing = append(missing, fmt.Sprintf("%s %s", n.what, n.name))
		}
	}
	return missing, nil
}
