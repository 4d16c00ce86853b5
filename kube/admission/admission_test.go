package admission_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/socialweb-computer/tenant-executor/kube/admission"
)

func forbidden(words string) error {
	return fmt.Errorf("creating Pod ci/job-1: %w", apierrors.NewForbidden(corev1.Resource("pods"), "job-1", errors.New(words)))
}

func internal(words string) error { return apierrors.NewInternalError(errors.New(words)) }

func TestOf(t *testing.T) {
	const post = `failed to call webhook: Post "https://hooks.default.svc:443/pods?timeout=10s": dial tcp 10.96.0.7:443: connect: connection refused`
	for _, test := range []struct {
		name string
		err  error
		kind admission.Kind
		says string
	}{
		{"used up", forbidden("exceeded quota: ci, requested: pods=1, used: pods=1, limited: pods=1"),
			admission.QuotaFull, "ci: 1 of 1 pods used"},
		{"several resources, with groups and slashes", forbidden("exceeded quota: team-a.ci, requested: count/pods=1,limits.memory=2Gi,requests.nvidia.com/gpu=1, used: count/pods=3,limits.memory=7Gi,requests.nvidia.com/gpu=4, limited: count/pods=3,limits.memory=8Gi,requests.nvidia.com/gpu=4"),
			admission.QuotaFull, "team-a.ci: 3 of 3 count/pods used; 7Gi of 8Gi limits.memory used, 2Gi needed; 4 of 4 requests.nvidia.com/gpu used"},
		{"several quotas", forbidden("[exceeded quota: a, requested: pods=1, used: pods=1, limited: pods=1, exceeded quota: b, requested: requests.cpu=500m, used: requests.cpu=1, limited: requests.cpu=1]"),
			admission.QuotaFull, "a: 1 of 1 pods used | b: 1 of 1 requests.cpu used, 500m needed"},
		{"as much as there is altogether", forbidden("exceeded quota: ci, requested: limits.cpu=2, used: limits.cpu=500m, limited: limits.cpu=2"),
			admission.QuotaFull, "ci: 500m of 2 limits.cpu used, 2 needed"},
		{"more than there is altogether", forbidden("exceeded quota: ci, requested: limits.cpu=2001m, used: limits.cpu=0, limited: limits.cpu=2"),
			admission.QuotaTooSmall, "ci: 0 of 2 limits.cpu used, 2001m needed"},
		{"one resource never fits, another is used up", forbidden("exceeded quota: ci, requested: limits.cpu=3,pods=1, used: limits.cpu=0,pods=1, limited: limits.cpu=2,pods=1"),
			admission.QuotaTooSmall, "ci: 0 of 2 limits.cpu used, 3 needed; 1 of 1 pods used"},
		{"none is allowed", forbidden("exceeded quota: closed, requested: pods=1, used: pods=0, limited: pods=0"),
			admission.QuotaTooSmall, "closed: 0 of 0 pods used"},
		{"not counted yet", forbidden("status unknown for quota: fresh, resources: pods,secrets"), admission.QuotaUnready, "fresh: "},
		{"a namespace that ends", forbidden("unable to create new content in namespace ci because it is being terminated"), admission.NamespaceEnding, ""},
		{"a webhook that is down", internal(`failed calling webhook "pods.policy.example.com": ` + post), admission.WebhookDown, "pods.policy.example.com"},
		{"a webhook that takes too long", internal(`failed calling webhook "slow.example.com": failed to call webhook: Post "https://x": context deadline exceeded`), admission.WebhookDown, "slow.example.com"},
		{"as the repetition was stopped", fmt.Errorf("around: %w", admission.Stop(internal(`failed calling webhook "a.b": gone`))), admission.WebhookDown, "a.b"},
		{"a webhook that denies", forbidden(`admission webhook "pods.policy.example.com" denied the request: exceeded patience`), -1, ""},
		{"a quota that wants limits", forbidden("failed quota: ci: must specify limits.memory for: build,helper"), -1, ""},
		{"no quota covers the priority", forbidden("insufficient quota to consume: pods"), -1, ""},
		{"figures that are none", forbidden("exceeded quota: ci, requested: pods=one, used: pods=1, limited: pods=1"), -1, ""},
		{"a limit that is not told", forbidden("exceeded quota: ci, requested: pods=1, used: pods=1, limited: secrets=1"), -1, ""},
		{"a caller without the right", forbidden(`User "x" cannot create resource "pods" in API group "" in the namespace "ci"`), -1, ""},
		{"another inner error", internal("etcdserver: leader changed"), -1, ""},
		{"the same words, not from the cluster", errors.New(`failed calling webhook "x": y`), -1, ""},
		{"nothing", nil, -1, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := admission.Of(test.err)
			if r == nil {
				if test.kind >= 0 {
					t.Fatal("nothing is read out of it")
				}
				return
			}
			var says []string
			for _, q := range r.Quotas {
				says = append(says, q.Name+": "+q.String())
			}
			got := strings.Join(says, " | ") + r.Webhook
			if r.Kind != test.kind || got != test.says {
				t.Errorf("kind %d, %q; want %d, %q", r.Kind, got, test.kind, test.says)
			}
			if want := test.kind == admission.QuotaFull || test.kind == admission.QuotaUnready || test.kind == admission.WebhookDown; r.Kind.Passes() != want {
				t.Errorf("passes: %t", r.Kind.Passes())
			}
		})
	}
}

// Only a webhook's silence is kept from being asked about again unseen.
func TestStop(t *testing.T) {
	for _, err := range []error{nil, internal("etcdserver: leader changed"), forbidden("exceeded quota: ci, requested: pods=1, used: pods=1, limited: pods=1")} {
		if got := admission.Stop(err); got != err {
			t.Errorf("%v became %v", err, got)
		}
	}
	stopped := admission.Stop(internal(`failed calling webhook "a.b": gone`))
	if apierrors.IsInternalError(stopped) || !apierrors.IsInternalError(admission.Of(stopped).Answer()) {
		t.Errorf("%v shows its answer before it is asked for", stopped)
	}
}

func TestOutOfRange(t *testing.T) {
	list := func(cpu, memory string) corev1.ResourceList {
		all := corev1.ResourceList{}
		for name, text := range map[corev1.ResourceName]string{corev1.ResourceCPU: cpu, corev1.ResourceMemory: memory} {
			if text != "" {
				all[name] = resource.MustParse(text)
			}
		}
		return all
	}
	pod := &corev1.PodSpec{
		InitContainers: []corev1.Container{{Name: "init", Resources: corev1.ResourceRequirements{Requests: list("10m", "")}}},
		Containers: []corev1.Container{
			{Name: "build", Resources: corev1.ResourceRequirements{Requests: list("1", "1Gi"), Limits: list("2", "2Gi")}},
			{Name: "helper", Resources: corev1.ResourceRequirements{Limits: list("", "128Mi")}},
			{Name: "svc-0", Resources: corev1.ResourceRequirements{Limits: list("2", "2048Mi")}},
		},
	}
	for _, test := range []struct {
		name, words string
		found       bool
		want        []string
	}{
		{"a limit", "maximum memory usage per Container is 1Gi, but limit is 2Gi", true, []string{"build", "svc-0"}},
		{"a request", "maximum memory usage per Container is 512Mi, but request is 1Gi", true, []string{"build"}},
		{"too little", "minimum cpu usage per Container is 100m, but request is 10m", true, []string{"init"}},
		{"nothing set", "maximum cpu usage per Container is 1.  No limit is specified", true, []string{"init", "helper"}},
		{"several", "[minimum cpu usage per Container is 100m, but request is 10m, maximum memory usage per Container is 64Mi, but limit is 128Mi]", true, []string{"init", "helper"}},
		{"a ratio", "memory max limit to request ratio per Container is 1, but provided ratio is 2.000000", true, []string{"build"}},
		{"the Pod as a whole", "maximum memory usage per Pod is 1Gi, but limit is 4Gi", true, nil},
		{"a default of the cluster's", "maximum memory usage per Container is 1Gi, but limit is 3Gi", true, nil},
		{"something else", "exceeded quota: ci, requested: pods=1, used: pods=1, limited: pods=1", false, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, found := admission.OutOfRange(forbidden(test.words), pod)
			if diff := cmp.Diff(test.want, got); found != test.found || diff != "" {
				t.Errorf("found %t (-want +got):\n%s", found, diff)
			}
		})
	}
}
