package pod

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/socialweb-computer/tenant-executor/executor/failure"
	"github.com/socialweb-computer/tenant-executor/executor/job"
	"github.com/socialweb-computer/tenant-executor/executor/settings"
)

// Pulls are by which pull policies the image of each container is to be pulled:
// by the first, and by the next where that fails. Policies have GitLab's names;
// "" is what the cluster decides.
type Pulls map[string][]string

// Next is the policy behind the one that has failed for a container so many
// times before, if there is one.
func (p Pulls) Next(container string, failed int) (string, bool) {
	if policies := p[container]; failed+1 < len(policies) {
		return policies[failed+1], true
	}
	return "", false
}

// pull is the policy by which a container's image is pulled in this Pod; of is
// the image of the job or the service whose policies count.
func (b *builder) pull(container string, of job.Image) (corev1.PullPolicy, error) {
	policies, err := b.policies(of)
	if err != nil {
		return "", err
	}
	if b.Pulls == nil {
		b.Pulls = Pulls{}
	}
	b.Pulls[container] = policies
	return kubernetesPolicy(policies[min(b.PullsFailed[container], len(policies)-1)]), nil
}

// policies are the pull policies of an image: its own or the settings', as far
// as they are allowed. Without allowed_pull_policies those of pull_policy are
// (common/config.go, GetAllowedPullPolicies).
func (p Plan) policies(of job.Image) ([]string, error) {
	configured := []string(p.Settings.PullPolicy)
	allowed := p.Settings.AllowedPullPolicies
	if len(configured) == 0 {
		// Where only others are allowed, the cluster has nothing to decide.
		configured = allowed
	}
	if len(configured) == 0 {
		configured = []string{""}
	}
	if len(allowed) == 0 {
		allowed = configured
	}
	if len(of.PullPolicies) == 0 {
		return intersection(configured, allowed), nil
	}
	for _, policy := range of.PullPolicies {
		if kubernetesPolicy(policy) == "" {
			return nil, failure.New(failure.JobInvalid, "pull_policy %q of image %s is not one of always, if-not-present, never", policy, of.Name)
		}
	}
	usable := intersection(of.PullPolicies, allowed)
	if len(usable) == 0 {
		return nil, failure.New(failure.NotAllowed, "pull_policy %s of image %s is not allowed: %s",
			strings.Join(of.PullPolicies, ", "), of.Name, allowedPolicies(allowed))
	}
	return usable, nil
}

func allowedPolicies(allowed []string) string {
	if slices.Equal(allowed, []string{""}) {
		return "the configuration has neither pull_policy nor allowed_pull_policies, so a job may name none"
	}
	return "only " + strings.Join(allowed, ", ") + " may be named"
}

// intersection is what of the first is in the second, in the order of the
// first.
func intersection(first, second []string) []string {
	var both []string
	for _, policy := range first {
		if slices.Contains(second, policy) {
			both = append(both, policy)
		}
	}
	return both
}

// kubernetesPolicy is Kubernetes' name of a policy, "" for none.
func kubernetesPolicy(policy string) corev1.PullPolicy {
	switch policy {
	case settings.PullAlways:
		return corev1.PullAlways
	case settings.PullIfNotPresent:
		return corev1.PullIfNotPresent
	case settings.PullNever:
		return corev1.PullNever
	}
	return ""
}
