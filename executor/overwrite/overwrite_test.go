package overwrite_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/socialweb-computer/tenant-executor/executor/failure"
	"github.com/socialweb-computer/tenant-executor/executor/job"
	"github.com/socialweb-computer/tenant-executor/executor/overwrite"
	"github.com/socialweb-computer/tenant-executor/executor/settings"
)

// operators are settings that allow some of everything.
func operators() settings.Kubernetes {
	k := settings.Kubernetes{
		Namespace: "ci", ServiceAccount: "jobs",
		PodLabels: map[string]string{"team": "platform"},
	}
	k.NodeSelector = map[string]string{"pool": "small"}
	k.CPURequest, k.CPULimit, k.MemoryLimit, k.HelperMemoryLimit = "500m", "1", "1Gi", "256Mi"
	k.NamespaceOverwriteAllowed, k.ServiceAccountOverwriteAllowed = "^ci-", "ci"
	k.PodLabelsOverwriteAllowed, k.PodAnnotationsOverwriteAllowed, k.NodeSelectorOverwriteAllowed = ".*", ".*", "^pool="
	k.CPULimitOverwriteMaxAllowed, k.CPURequestOverwriteMaxAllowed, k.MemoryLimitOverwriteMaxAllowed = "4", "4", "2Gi"
	k.HelperMemoryLimitOverwriteMaxAllowed = "1Gi"
	return k
}

func variables(pairs ...string) job.Environment {
	env := job.Environment{"KUBERNETES_CPU_LIMIT": "64"} // the driver's own environment is no job's
	for _, pair := range pairs {
		name, value, _ := strings.Cut(pair, "=")
		env["CUSTOM_ENV_"+name] = value
	}
	return env
}

func TestApply(t *testing.T) {
	for _, test := range []struct {
		name      string
		variables []string
		change    func(*settings.Kubernetes) // of the operator's, into what is wanted
		lines     []string
		ignored   []overwrite.Ignored
	}{
		{"nothing", nil, func(*settings.Kubernetes) {}, nil, nil},
		{"empty values", []string{"KUBERNETES_CPU_LIMIT=", "KUBERNETES_NAMESPACE_OVERWRITE=", "KUBERNETES_POD_LABELS_1="}, func(*settings.Kubernetes) {}, nil, nil},
		{"namespace", []string{"KUBERNETES_NAMESPACE_OVERWRITE=ci-7"}, func(k *settings.Kubernetes) { k.Namespace = "ci-7" },
			[]string{`"Namespace" overwritten with "ci-7"`}, nil},
		{"regular expressions are not anchored", []string{"KUBERNETES_SERVICE_ACCOUNT_OVERWRITE=my-ci-account"}, func(k *settings.Kubernetes) { k.ServiceAccount = "my-ci-account" },
			[]string{`"ServiceAccount" overwritten with "my-ci-account"`}, nil},
		{"resources", []string{"KUBERNETES_CPU_LIMIT=2", "KUBERNETES_HELPER_MEMORY_LIMIT=1Gi"}, func(k *settings.Kubernetes) {
			k.CPULimit, k.HelperMemoryLimit = "2", "1Gi"
		}, []string{`"CPULimit" overwritten with "2"`, `"HelperMemoryLimit" overwritten with "1Gi"`}, nil},
		{"quantities are compared, not texts", []string{"KUBERNETES_MEMORY_LIMIT=2048Mi", "KUBERNETES_CPU_LIMIT=4000m"}, func(k *settings.Kubernetes) {
			k.MemoryLimit, k.CPULimit = "2048Mi", "4000m"
		}, []string{`"CPULimit" overwritten with "4000m"`, `"MemoryLimit" overwritten with "2048Mi"`}, nil},
		{"a request of nothing", []string{"KUBERNETES_CPU_REQUEST=0"}, func(k *settings.Kubernetes) { k.CPURequest = "0" }, []string{`"CPURequest" overwritten with "0"`}, nil},
		{"labels", []string{"KUBERNETES_POD_LABELS_1=team=mine", "KUBERNETES_POD_LABELS_x=more=a=b c"}, func(k *settings.Kubernetes) {
			k.PodLabels = map[string]string{"team": "mine", "more": "a=b c"}
		}, []string{`"PodLabels" "team" overwritten with "mine"`, `"PodLabels" "more" overwritten with "a=b c"`}, nil},
		{"annotation where there is none", []string{"KUBERNETES_POD_ANNOTATIONS_1=x/y="}, func(k *settings.Kubernetes) { k.PodAnnotations = map[string]string{"x/y": ""} },
			[]string{`"PodAnnotations" "x/y" overwritten with ""`}, nil},
		{"node selector", []string{"KUBERNETES_NODE_SELECTOR_POOL=pool=big"}, func(k *settings.Kubernetes) { k.NodeSelector = map[string]string{"pool": "big"} },
			[]string{`"NodeSelector" "pool" overwritten with "big"`}, nil},
		{"labels of others", []string{"KUBERNETES_POD_LABELS_1=job.runner.gitlab.com/pod=x", "KUBERNETES_POD_LABELS_2=tenant-executor.socialweb.computer/component=x",
			"KUBERNETES_POD_LABELS_3=pod=x", "KUBERNETES_POD_ANNOTATIONS_1=tenant-executor.socialweb.computer/expires=x"}, func(*settings.Kubernetes) {}, nil, []overwrite.Ignored{
			{"KUBERNETES_POD_LABELS_1", "job.runner.gitlab.com/pod belongs to the runner or the driver"},
			{"KUBERNETES_POD_LABELS_2", "tenant-executor.socialweb.computer/component belongs to the runner or the driver"},
			{"KUBERNETES_POD_LABELS_3", "pod belongs to the runner or the driver"},
			{"KUBERNETES_POD_ANNOTATIONS_1", "tenant-executor.socialweb.computer/expires belongs to the runner or the driver"},
		}},
		{"what is not allowed", []string{"KUBERNETES_MEMORY_REQUEST=1Pi", "KUBERNETES_BEARER_TOKEN=abc"}, func(*settings.Kubernetes) {}, nil, []overwrite.Ignored{
			{"KUBERNETES_BEARER_TOKEN", "tokens of jobs are not used"},
			{"KUBERNETES_MEMORY_REQUEST", "kubernetes.memory_request_overwrite_max_allowed is not set"},
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			given, want := operators(), operators()
			test.change(&want)
			got, err := overwrite.Apply(given, job.Job{}, variables(test.variables...))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(overwrite.Result{Settings: want, Lines: test.lines, Ignored: test.ignored}, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if diff := cmp.Diff(operators(), given); diff != "" {
				t.Errorf("the operator's own settings changed:\n%s", diff)
			}
		})
	}
}

// A gate that is not set keeps a job from everything, with one notice.
func TestAllGatesClosed(t *testing.T) {
	closed := operators()
	closed.Overwrites, closed.ResourceOverwrites = settings.Overwrites{}, settings.ResourceOverwrites{}
	all := []string{"KUBERNETES_NAMESPACE_OVERWRITE", "KUBERNETES_SERVICE_ACCOUNT_OVERWRITE", "KUBERNETES_POD_LABELS_1", "KUBERNETES_POD_ANNOTATIONS_1", "KUBERNETES_NODE_SELECTOR_1"}
	for _, field := range closed.Limited() {
		all = append(all, "KUBERNETES_"+strings.ToUpper(field.Key))
	}
	env := job.Environment{}
	for _, name := range all {
		env["CUSTOM_ENV_"+name] = "not even valid"
	}
	got, err := overwrite.Apply(closed, job.Job{}, env)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Ignored) != len(all) || len(got.Lines) != 0 {
		t.Errorf("%d of %d ignored, lines %q", len(got.Ignored), len(all), got.Lines)
	}
	if diff := cmp.Diff(closed, got.Settings); diff != "" {
		t.Errorf("the job has set something:\n%s", diff)
	}
}

func TestRefusals(t *testing.T) {
	for _, test := range []struct {
		name, variable, value string
		says                  []string
	}{
		{"no match", "KUBERNETES_NAMESPACE_OVERWRITE", "kube-system", []string{`"^ci-"`, "kubernetes.namespace_overwrite_allowed"}},
		{"no namespace", "KUBERNETES_NAMESPACE_OVERWRITE", "ci-/../x", []string{"lower case"}},
		{"no service account", "KUBERNETES_SERVICE_ACCOUNT_OVERWRITE", "ci A", []string{"RFC 1123"}},
		{"above the limit", "KUBERNETES_MEMORY_LIMIT", "3Gi", []string{"2Gi", "kubernetes.memory_limit_overwrite_max_allowed"}},
		{"decimal comma", "KUBERNETES_CPU_LIMIT", "1,5", []string{"quantity", "500m"}},
		{"wrong unit", "KUBERNETES_MEMORY_LIMIT", "1GB", []string{"quantity"}},
		{"negative", "KUBERNETES_CPU_REQUEST", "-1", []string{"quantity"}},
		{"no limit at all", "KUBERNETES_MEMORY_LIMIT", "0", []string{"above 0"}},
		{"request above the limit", "KUBERNETES_CPU_REQUEST", "2", []string{"cpu_request 2", "cpu_limit, which is 1"}},
		{"limit below the request", "KUBERNETES_CPU_LIMIT", "100m", []string{"cpu_request 500m", "cpu_limit, which is 100m"}},
		{"label without a value", "KUBERNETES_POD_LABELS_1", "team", []string{"NAME=VALUE"}},
		{"label without a name", "KUBERNETES_POD_LABELS_1", "=x", []string{"name part"}},
		{"selector's value", "KUBERNETES_NODE_SELECTOR_1", "pool=a b", []string{"label"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := overwrite.Apply(operators(), job.Job{}, variables(test.variable+"="+test.value))
			var f *failure.Failure
			if !errors.As(err, &f) || f.Class() != failure.Build || f.Cause != failure.Overwrite {
				t.Fatalf("error %v, want a refusal", err)
			}
			for _, part := range append(test.says, test.variable, `"`+test.value+`"`) {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("the error lacks %q: %v", part, err)
				}
			}
			if diff := cmp.Diff(overwrite.Result{Settings: operators()}, got); diff != "" {
				t.Errorf("something was set although it was refused:\n%s", diff)
			}
		})
	}
}

// Keys of other groups of settings are overwritten by the same rules.
func TestOtherGroups(t *testing.T) {
	for _, test := range []struct {
		key, variable, value string
		set                  func(*settings.Kubernetes)
		refused              []string
	}{
		{"node_tolerations", "KUBERNETES_NODE_TOLERATIONS_1", "dedicated=ci:NoSchedule", func(k *settings.Kubernetes) { k.NodeTolerationsOverwriteAllowed = "^dedicated|^a" },
			[]string{"dedicated=ci:Sometimes", "a b=c:NoSchedule", "other:NoSchedule"}},
		{"pod_cpu_limit", "KUBERNETES_POD_CPU_LIMIT", "4", func(k *settings.Kubernetes) { k.PodCPULimitOverwriteMaxAllowed = "8" }, []string{"9", "0", "lots"}},
		{"pod_memory_request", "KUBERNETES_POD_MEMORY_REQUEST", "1Gi", func(k *settings.Kubernetes) { k.PodMemoryRequestOverwriteMaxAllowed = "8Gi" }, []string{"9Gi"}},
	} {
		t.Run(test.key, func(t *testing.T) {
			var k settings.Kubernetes
			if _, found := k.Field(test.key); !found {
				t.Skipf("there is no key %s", test.key)
			}
			test.set(&k)
			got, err := overwrite.Apply(k, job.Job{}, variables(test.variable+"="+test.value))
			if err != nil {
				t.Fatal(err)
			}
			field, _ := got.Settings.Field(test.key)
			if field.Text() != test.value && field.Map()["dedicated=ci"] != "NoSchedule" {
				t.Errorf("%s is %q, %v", test.key, field.Text(), field.Map())
			}
			for _, value := range test.refused {
				if _, err := overwrite.Apply(k, job.Job{}, variables(test.variable+"="+value)); err == nil {
					t.Errorf("%s is accepted", value)
				}
			}
		})
	}
}

// Where two variables set one name, the one that GitLab sent later counts,
// whatever they are called.
func TestTheLaterVariableCounts(t *testing.T) {
	j := job.Job{Variables: []job.Variable{{Key: "KUBERNETES_POD_LABELS_Z"}, {Key: "KUBERNETES_POD_LABELS_B"}}}
	got, err := overwrite.Apply(operators(), j, variables(
		"KUBERNETES_POD_LABELS_A=of=runner", "KUBERNETES_POD_LABELS_Z=of=first", "KUBERNETES_POD_LABELS_B=of=second"))
	if err != nil {
		t.Fatal(err)
	}
	if of := got.Settings.PodLabels["of"]; of != "second" {
		t.Errorf("the label is %q, want that of the later variable", of)
	}
}
