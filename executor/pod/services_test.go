package pod_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"github.com/socialweb-computer/tenant-executor/executor/failure"
	"github.com/socialweb-computer/tenant-executor/executor/job"
	"github.com/socialweb-computer/tenant-executor/executor/pod"
	"github.com/socialweb-computer/tenant-executor/executor/settings"
)

// served is a plan with services of the configuration and of the job.
func served() pod.Plan {
	p := plan()
	p.Variables = job.Environment{
		"CUSTOM_ENV_TAG": "7", "CUSTOM_ENV_PASSWORD": "pa$$w(d)$(HOME)", "CUSTOM_ENV_CI_PROJECT_ID": "7",
	}
	p.Job.Variables = []job.Variable{
		{Key: "TAG", Value: "7", Public: true},
		{Key: "PASSWORD", Value: "pa$$w(d)$(HOME)"},
		{Key: "CI_PROJECT_ID", Value: "7", Public: true},
	}
	p.Settings.AllowedPullPolicies = []string{"always", "if-not-present"}
	p.Settings.ServiceContainers = settings.ServiceContainers{
		Services: []settings.Service{
			{Name: "redis:$TAG", Alias: "cache-$TAG", Environment: []string{"MODE=$PASSWORD", "EMPTY="}},
			{Name: "$NONE"},
		},
		ServiceCPULimit: "1", ServiceMemoryRequest: "64Mi", ServiceMemoryLimitMax: "2Gi",
	}
	p.Job.Services = []job.Image{
		{
			Name: "reg.example.com:5000/a/b:1", Alias: "db,postgres db2", Entrypoint: []string{"/start"}, Command: []string{"-x", "$(Y)"},
			PullPolicies: []string{"always"},
			Variables: []job.Variable{
				{Key: "PW", Value: "$PASSWORD-$$x"},
				{Key: "HEALTHCHECK_TCP_PORT", Value: "5432"},
				{Key: "KUBERNETES_SERVICE_MEMORY_LIMIT", Value: "2048Mi"},
			},
		},
		{Name: "redis:7", Alias: "cache-7"},
		{Name: ""},
		{Name: "webide", Alias: "not/a/name", Ports: []job.Port{{Number: 3000}}},
	}
	return p
}

func TestServicesGolden(t *testing.T) {
	built, err := served().Build()
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	write := func(v any) {
		text, err := yaml.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&got, "---\n%s", text)
	}
	write(built.Pod.Spec.Containers[2:])
	write(built.Pod.Spec.HostAliases)
	for _, secret := range built.Secrets {
		text := map[string]string{}
		for name, value := range secret.Data {
			text[name] = string(value)
		}
		write(map[string]any{"metadata": secret.ObjectMeta, "data as text": text})
	}
	write(built.Notes)
	const golden = "testdata/services.yaml"
	if *update {
		if err := os.WriteFile(golden, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("%s (-want +got):\n%s", golden, diff)
	}
	text, err := yaml.Marshal(built.Pod)
	if err != nil {
		t.Fatal(err)
	}
	for _, hidden := range []string{"pa$$w", "PASSWORD", "PW"} {
		if strings.Contains(string(text), hidden) {
			t.Errorf("the Pod shows %s:\n%s", hidden, text)
		}
	}
}

// services builds a job with services and gives them.
func services(t *testing.T, images ...job.Image) []pod.Service {
	t.Helper()
	p := plan()
	p.Job.Services = images
	all, err := p.JobServices()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestServiceHostNames(t *testing.T) {
	for image, want := range map[string][]string{
		"redis":                         {"redis"},
		"redis:7":                       {"redis"},
		"a/b:1":                         {"a-b"}, // a__b is no host name
		"a.b/c@sha256:0123":             {"a.b-c"},
		"reg.x:5000/a/b:1":              {"reg.x-a-b"},
		"reg.x:5000/a":                  {"reg.x-a"},
		"localhost:5000":                {"localhost"},
		"reg.x/a/b:1@sha256:0123":       {"reg.x-a-b"},
		"Upper/case:1":                  nil,
		strings.Repeat("a", 70) + ":1":  {strings.Repeat("a", 70)},
		"reg.example.com/group/_odd:12": nil,
	} {
		if diff := cmp.Diff(want, services(t, job.Image{Name: image})[0].Names); diff != "" {
			t.Errorf("host names of %s (-want +got):\n%s", image, diff)
		}
	}
}

func TestServiceContainerNames(t *testing.T) {
	all := services(t,
		job.Image{Name: "redis:7"},
		job.Image{Name: "redis:7", Alias: "redis"},
		job.Image{Name: "redis:7", Alias: "redis second"},
		job.Image{Name: "redis:7", Alias: "redis"},
		job.Image{Name: "x", Alias: "svc-2 late"},
		job.Image{Name: "x", Alias: "build,helper"},
		job.Image{Name: "x", Alias: "init-permissions"},
		job.Image{Name: "x", Alias: "with.dot"},
		job.Image{Name: "x", Alias: strings.Repeat("a", 64) + " short"},
	)
	var got []string
	for _, s := range all {
		got = append(got, s.Container)
		if problems := validation.IsDNS1123Label(s.Container); len(problems) > 0 {
			t.Errorf("container %s: %v", s.Container, problems)
		}
	}
	want := []string{"svc-0", "redis", "second", "svc-1", "svc-2", "svc-3", "svc-4", "svc-5", "short"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("containers (-want +got):\n%s", diff)
	}
}

// An entrypoint or command that says nothing is none, however GitLab writes it.
func TestServiceCommands(t *testing.T) {
	for _, nothing := range [][]string{nil, {}, {""}} {
		p := plan()
		p.Job.Services = []job.Image{{Name: "x", Entrypoint: nothing, Command: nothing}}
		built, err := p.Build()
		if err != nil {
			t.Fatal(err)
		}
		if c := built.Pod.Spec.Containers[2]; c.Command != nil || c.Args != nil {
			t.Errorf("%#v became command %q, args %q", nothing, c.Command, c.Args)
		}
	}
}

func TestServiceRefusals(t *testing.T) {
	with := func(image job.Image) func(*pod.Plan) {
		return func(p *pod.Plan) { p.Job.Services = []job.Image{image} }
	}
	variables := func(name, value string) job.Image {
		return job.Image{Name: "redis:7", Variables: []job.Variable{{Key: name, Value: value}}}
	}
	for _, test := range []struct {
		name   string
		change func(*pod.Plan)
		cause  failure.Cause
		says   []string
	}{
		{"alias with an underscore", with(job.Image{Name: "redis:7", Alias: "db my_db"}), failure.JobInvalid, []string{"redis:7", `"my_db"`}},
		{"alias of the configuration", func(p *pod.Plan) {
			p.Settings.Services = []settings.Service{{Name: "redis:7", Alias: "$A"}}
			p.Variables = job.Environment{"CUSTOM_ENV_A": "a/b"}
		}, failure.Settings, []string{"kubernetes.services", `"a/b"`}},
		{"port that is none", with(variables("HEALTHCHECK_TCP_PORT", "redis")), failure.JobInvalid, []string{"HEALTHCHECK_TCP_PORT", `"redis"`}},
		{"port out of range", with(variables("HEALTHCHECK_TCP_PORT", "65536")), failure.JobInvalid, []string{"65536"}},
		{"pull policy", with(job.Image{Name: "redis:7", PullPolicies: []string{"sometimes"}}), failure.JobInvalid, []string{`"sometimes"`}},
		{"variable too large", with(variables("BIG", strings.Repeat("x", 128<<10))), failure.JobInvalid, []string{"BIG", "redis:7"}},
		{"variable with a zero byte", with(variables("ZERO", "a\x00b")), failure.JobInvalid, []string{"ZERO"}},
		{"more memory than allowed", func(p *pod.Plan) {
			p.Settings.ServiceMemoryLimitMax = "2Gi"
			p.Job.Services = []job.Image{variables("KUBERNETES_SERVICE_MEMORY_LIMIT", "4Gi")}
		}, failure.JobInvalid, []string{"KUBERNETES_SERVICE_MEMORY_LIMIT", "4Gi", "service_memory_limit_overwrite_max_allowed", "2Gi"}},
		{"bad quantity", func(p *pod.Plan) {
			p.Settings.ServiceCPULimitMax = "2"
			p.Job.Services = []job.Image{variables("KUBERNETES_SERVICE_CPU_LIMIT", "1,5")}
		}, failure.JobInvalid, []string{"KUBERNETES_SERVICE_CPU_LIMIT", `"1,5"`}},
		{"request above the limit", func(p *pod.Plan) {
			p.Settings.ServiceCPULimit, p.Settings.ServiceCPURequestMax = "1", "4"
			p.Job.Services = []job.Image{variables("KUBERNETES_SERVICE_CPU_REQUEST", "2")}
		}, failure.JobInvalid, []string{"redis:7", "2", "1"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := plan()
			test.change(&p)
			_, err := p.Build()
			var f *failure.Failure
			if !errors.As(err, &f) || f.Cause != test.cause {
				t.Fatalf("error %v, want cause %s", err, test.cause)
			}
			for _, part := range test.says {
				if !strings.Contains(f.Error(), part) {
					t.Errorf("%q does not say %s", f.Error(), part)
				}
			}
		})
	}
}

func TestServiceResources(t *testing.T) {
	const name = "KUBERNETES_SERVICE_MEMORY_LIMIT"
	for _, test := range []struct {
		label, config, most, own, jobs, want string
	}{
		{"nothing", "", "", "", "", ""},
		{"configuration", "1Gi", "", "", "", "1Gi"},
		{"not allowed to change", "1Gi", "", "2Gi", "3Gi", "1Gi"},
		{"by the service", "1Gi", "4Gi", "2Gi", "3Gi", "2Gi"},
		{"by the job", "1Gi", "4Gi", "", "3Gi", "3Gi"},
		{"as much as is allowed, in other words", "", "2Gi", "2048Mi", "", "2Gi"},
	} {
		t.Run(test.label, func(t *testing.T) {
			p := plan()
			p.Settings.ServiceMemoryLimit, p.Settings.ServiceMemoryLimitMax = test.config, test.most
			p.Variables = job.Environment{"CUSTOM_ENV_" + name: test.jobs}
			service := job.Image{Name: "redis:7"}
			if test.own != "" {
				service.Variables = []job.Variable{{Key: name, Value: test.own}}
			}
			p.Job.Services = []job.Image{service}
			built, err := p.Build()
			if err != nil {
				t.Fatal(err)
			}
			limit, set := built.Pod.Spec.Containers[2].Resources.Limits[corev1.ResourceMemory]
			if got := limit.String(); set != (test.want != "") || set && got != test.want {
				t.Errorf("memory limit %q, want %q", got, test.want)
			}
		})
	}
}

// Variables may be many and large, and named as no variable can be.
func TestServiceVariablesInSecrets(t *testing.T) {
	p := plan()
	p.Variables = job.Environment{"CUSTOM_ENV_NO NAME": "x", "CUSTOM_ENV_1DIGIT.dot-dash": "y"}
	for i := range 20 {
		p.Variables[fmt.Sprintf("CUSTOM_ENV_BIG%d", i)] = strings.Repeat("x", 120<<10)
	}
	p.Job.Services = []job.Image{{Name: "redis:7"}, {Name: "redis:7", Alias: "services"}}
	built, err := p.Build()
	if err != nil {
		t.Fatal(err)
	}
	names, values := map[string]bool{}, map[string]int{}
	for _, secret := range built.Secrets {
		if names[secret.Name] || len(validation.IsDNS1123Subdomain(secret.Name)) > 0 {
			t.Errorf("Secret %s: not a name of its own", secret.Name)
		}
		names[secret.Name] = true
		size := 0
		for name, value := range secret.Data {
			values[name] = len(value)
			size += len(value)
		}
		if size > corev1.MaxSecretSize {
			t.Errorf("Secret %s has %d bytes", secret.Name, size)
		}
	}
	if len(values) != 21 || values["BIG7"] != 120<<10 {
		t.Errorf("got %d variables, want 21 whole ones", len(values))
	}
	for _, c := range built.Pod.Spec.Containers[2:] {
		if len(c.EnvFrom) != len(built.Secrets) {
			t.Errorf("container %s gets %d of %d Secrets", c.Name, len(c.EnvFrom), len(built.Secrets))
		}
		for _, source := range c.EnvFrom {
			if !names[source.SecretRef.Name] {
				t.Errorf("container %s refers to a Secret %s that is not there", c.Name, source.SecretRef.Name)
			}
		}
	}
	if len(built.Notes) != 1 || !strings.Contains(built.Notes[0], `"NO NAME"`) {
		t.Errorf("notes %q, want one on NO NAME", built.Notes)
	}
}

func TestServiceClash(t *testing.T) {
	all := services(t,
		job.Image{Name: "redis:7", Alias: "one"}, job.Image{Name: "redis:7", Alias: "two"}, job.Image{Name: "nginx"},
		job.Image{Name: "a", Variables: []job.Variable{{Key: "HEALTHCHECK_TCP_PORT", Value: "80"}}},
		job.Image{Name: "b", Variables: []job.Variable{{Key: "HEALTHCHECK_TCP_PORT", Value: "80"}}})
	inUse := []string{"starting", "bind: Address already in use"}
	for _, test := range []struct {
		service int
		lines   []string
		names   []string
	}{
		{0, []string{"out of memory"}, nil},
		{0, inUse, []string{"redis-one", "redis-two", "one network"}},
		{1, []string{"Error: listen EADDRINUSE: :::6379"}, []string{"redis-two", "redis-one"}},
		{2, inUse, []string{"nginx", "one network"}},
		{3, inUse, []string{"service a ", "that of b"}},
	} {
		got := all[test.service].Clash(all, test.lines)
		if (got == "") != (test.names == nil) {
			t.Errorf("service %d with %q: %q", test.service, test.lines, got)
		}
		for _, name := range test.names {
			if !strings.Contains(got, name) {
				t.Errorf("%q does not name %s", got, name)
			}
		}
	}
}
