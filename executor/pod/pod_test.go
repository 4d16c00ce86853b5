package pod_test

import (
	"encoding/base64"
	"errors"
	"flag"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/quick"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/validation"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/socialweb-computer/tenant-executor/executor/failure"
	"github.com/socialweb-computer/tenant-executor/executor/job"
	"github.com/socialweb-computer/tenant-executor/executor/pod"
	"github.com/socialweb-computer/tenant-executor/executor/settings"
)

var update = flag.Bool("update", false, "write generated files instead of comparing them")

func plan() pod.Plan {
	return pod.Plan{
		Job: job.Job{
			ID: 4711, Name: "build: [a, b] 1/3", Timeout: time.Hour,
			Image:       job.Image{Name: "debian:12"},
			Project:     job.Project{ID: 7, NamespaceID: 3, RootNamespaceID: 2, Name: "demo", FullPath: "group/sub/demo"},
			Git:         job.Git{URL: "https://gitlab.example.com/group/sub/demo.git", Ref: "feature/ünïcode", SHA: "3f47", BeforeSHA: "0000"},
			RunnerToken: "t3_abcdef", RunnerName: "tenant runner (kcp host)", ConcurrentID: "2",
		},
		Settings: settings.Kubernetes{
			Namespace: "ci", ServiceAccount: "jobs",
			PodLabels:      map[string]string{"team": "platform"},
			PodAnnotations: map[string]string{"contact": "platform@example.com"},
			Images:         settings.Images{HelperImage: "helper:19", PullPolicy: settings.List{"if-not-present"}, ImagePullSecrets: []string{"login"}},
			Scheduling:     settings.Scheduling{NodeSelector: map[string]string{"kubernetes.io/arch": "amd64"}},
			Resources: settings.Resources{
				CPURequest: "500m", CPULimit: "2", MemoryLimit: "2Gi", EphemeralStorageLimit: "10Gi", HelperMemoryRequest: "128Mi",
			},
		},
		BuildsDir: "/builds", CacheDir: "/cache",
		Attempt: "a1b2c3", Keeper: []string{"keep"}, Folder: "/driver",
		Wait: 30 * time.Minute,
		Now:  time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC),
	}
}

func TestBuildGolden(t *testing.T) {
	built, err := plan().Build()
	if err != nil {
		t.Fatal(err)
	}
	got, err := yaml.Marshal(built.Pod)
	if err != nil {
		t.Fatal(err)
	}
	const golden = "testdata/pod.yaml"
	if *update {
		if err := os.WriteFile(golden, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", golden, diff)
	}
}

// The rule of one job a node has to hold across namespaces and against every
// Pod that this package makes.
func TestOneJobANode(t *testing.T) {
	built, err := plan().Build()
	if err != nil {
		t.Fatal(err)
	}
	terms := built.Pod.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	if len(terms) != 1 {
		t.Fatalf("%d required terms, want 1", len(terms))
	}
	if terms[0].NamespaceSelector == nil || len(terms[0].NamespaceSelector.MatchLabels)+len(terms[0].NamespaceSelector.MatchExpressions) != 0 {
		t.Error("the term does not look at all namespaces")
	}
	if terms[0].TopologyKey != "kubernetes.io/hostname" {
		t.Errorf("the term spreads over %s", terms[0].TopologyKey)
	}
	for name, value := range terms[0].LabelSelector.MatchLabels {
		if built.Pod.Labels[name] != value {
			t.Errorf("the Pod itself has %s=%q, so others would not keep away from it", name, built.Pod.Labels[name])
		}
	}
}

func TestRefusals(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*pod.Plan)
		want   failure.Cause
	}{
		{"no image", func(p *pod.Plan) { p.Job.Image.Name = "" }, failure.ImageMissing},
		{"runner's label", func(p *pod.Plan) { p.Settings.PodLabels = map[string]string{"job.runner.gitlab.com/pod": "x"} }, failure.Settings},
		{"our annotation", func(p *pod.Plan) {
			p.Settings.PodAnnotations = map[string]string{pod.AnnotationExpires: "x"}
		}, failure.Settings},
		{"quantity", func(p *pod.Plan) { p.Settings.CPULimit = "1,5" }, failure.Settings},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := plan()
			test.change(&p)
			_, err := p.Build()
			var f *failure.Failure
			if !errors.As(err, &f) || f.Cause != test.want {
				t.Errorf("error %v, want cause %s", err, test.want)
			}
		})
	}
}

func TestDefaultImage(t *testing.T) {
	p := plan()
	p.Job.Image.Name, p.Settings.Image = "", "busybox:1"
	built, err := p.Build()
	if err != nil {
		t.Fatal(err)
	}
	if got := built.Pod.Spec.Containers[0].Image; got != "busybox:1" {
		t.Errorf("image %q, want the default", got)
	}
}

// Whatever GitLab sends, the cluster has to accept the Pod's metadata.
func TestMetadataIsAlwaysValid(t *testing.T) {
	worst := []string{
		"", "---", "日本語", "feature/Ünïcödé-🚀/" + strings.Repeat("x", 200), strings.Repeat("a/", 127) + "b",
		"build: [a, b] 1/3", "-leading", "trailing.", "with\nnewline", "\x00\xff", strings.Repeat("é", 64),
	}
	check := func(name, full, ref, token, runner, concurrent string, id int64) bool {
		p := plan()
		p.Job.ID = max(id, 1)
		p.Job.Name, p.Job.Project.Name, p.Job.Project.FullPath = name, name, full
		p.Job.Git.Ref, p.Job.RunnerToken, p.Job.RunnerName, p.Job.ConcurrentID = ref, token, runner, concurrent
		built, err := p.Build()
		if err != nil {
			t.Logf("Build: %v", err)
			return false
		}
		problems := validation.ValidateObjectMeta(&built.Pod.ObjectMeta, true, func(name string, _ bool) []string {
			return utilvalidation.IsDNS1123Label(name)
		}, field.NewPath("metadata"))
		for name, value := range built.Pod.Labels {
			if bad := append(utilvalidation.IsQualifiedName(name), utilvalidation.IsValidLabelValue(value)...); len(bad) > 0 {
				t.Logf("label %s=%q: %v", name, value, bad)
				return false
			}
		}
		if len(problems) > 0 {
			t.Log(problems)
		}
		return len(problems) == 0
	}
	for _, text := range worst {
		if !check(text, text, text, text, text, text, 1) {
			t.Errorf("not valid with %q everywhere", text)
		}
	}
	if err := quick.Check(check, nil); err != nil {
		t.Error(err)
	}
}

func TestLabelValueKeepsTextsApart(t *testing.T) {
	long := strings.Repeat("a", 80)
	seen := map[string]string{}
	for _, text := range []string{"", "plain", "a/b", "a-b", "a b", long, long + "b", long[:63], "日本", "日本語", "---", "--"} {
		value := pod.LabelValue(text)
		if other, taken := seen[value]; taken {
			t.Errorf("%q and %q both become %q", text, other, value)
		}
		seen[value] = text
	}
	if got := pod.LabelValue("plain"); got != "plain" {
		t.Errorf("a valid value was changed to %q", got)
	}
}

// The labels of the kubernetes executor keep its values, for selectors that
// were written for it.
func TestRunnerLabels(t *testing.T) {
	built, err := plan().Build()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"pod":                                      "runner-t3abcdef-project-7-concurrent-2",
		"job.runner.gitlab.com/pod":                "runner-t3abcdef-project-7-concurrent-2",
		"project.runner.gitlab.com/namespace":      "group_sub",
		"manager.runner.gitlab.com/name":           "tenant_runner__kcp_host",
		"manager.runner.gitlab.com/id-short":       "t3_abcdef",
		"project.runner.gitlab.com/root-namespace": "group",
	} {
		if got := built.Pod.Labels[name]; got != want {
			t.Errorf("label %s = %q, want %q", name, got, want)
		}
	}
}

// The Pod tells people whose it is, also where there is no GitLab page of it.
func TestPodTellsItsJob(t *testing.T) {
	page := "https://gitlab.example.com/group/sub/demo"
	for _, test := range []struct {
		repository, path string
		want             pod.Told
	}{
		{page + ".git", "another/path", pod.Told{Name: "build: [a, b] 1/3", Project: "group/sub/demo", URL: page + "/-/jobs/4711"}},
		{"/srv/git/demo.git", "group/sub/demo", pod.Told{Name: "build: [a, b] 1/3", Project: "group/sub/demo"}},
		{"", "", pod.Told{Name: "build: [a, b] 1/3"}},
	} {
		p := plan()
		p.Job.Git.URL, p.Job.Project.FullPath = test.repository, test.path
		built, err := p.Build()
		if err != nil {
			t.Fatal(err)
		}
		if got := pod.Tell(built.Pod.Annotations); got != test.want {
			t.Errorf("%q, %q: %+v, want %+v", test.repository, test.path, got, test.want)
		}
	}
}

// What stands in a file for a job's scripts gets into no object and no message.
func TestFilesStayOutOfThePod(t *testing.T) {
	const content = "-----BEGIN OPENSSH PRIVATE KEY-----"
	p := plan()
	p.Variables = variables("KEYFILE", content, "RUNNER_TEMP_PROJECT_DIR", "/builds/demo.tmp")
	p.Job.Variables = []job.Variable{{Key: "KEYFILE", Value: content, File: true}}
	p.Settings.PodAnnotations = map[string]string{"note": "$KEYFILE"}
	p.Settings.PodLabels = map[string]string{"note": "x$KEYFILE"}
	p.Settings.Image, p.Job.Image.Name = "image:$KEYFILE", ""
	p.Settings.HelperImage = "helper:$KEYFILE"
	p.Settings.Volumes.HostPaths = []settings.HostPath{{Name: "x", MountPath: "/mnt/$KEYFILE", SubPath: "x${KEYFILE}"}}
	p.Settings.Volumes.PVCs = []settings.PVC{{Name: "a", MountPath: "/pvc$KEYFILE"}}
	p.Settings.Services = []settings.Service{{Name: "service:$KEYFILE", Environment: []string{"A=$KEYFILE"}}}
	p.Job.Image.Options.Kubernetes.User = "$KEYFILE"
	objects, err := p.Build()
	if err != nil {
		t.Fatal(err)
	}
	text, err := yaml.Marshal(objects)
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"BEGIN OPENSSH", "BEGIN_OPENSSH", base64.StdEncoding.EncodeToString([]byte(content))} {
		if strings.Contains(string(text), secret) {
			t.Errorf("the content of the file is in the objects: %s", secret)
		}
	}
	if got := objects.Pod.Annotations["note"]; got != "/builds/demo.tmp/KEYFILE" {
		t.Errorf("the annotation is %q, want the file's path", got)
	}
}

// The operator knows better whether a Pod may be moved, and which label stands
// for a slot. An id that GitLab does not send is not 0.
func TestWhatTheOperatorMaySet(t *testing.T) {
	p := plan()
	p.Settings.PodAnnotations = map[string]string{"cluster-autoscaler.kubernetes.io/safe-to-evict": "true"}
	p.Settings.PodLabels = map[string]string{"pod": "mine"}
	p.Job.Project.NamespaceID = 0
	built, err := p.Build()
	if err != nil {
		t.Fatal(err)
	}
	if got := built.Pod.Annotations["cluster-autoscaler.kubernetes.io/safe-to-evict"]; got != "true" {
		t.Errorf("safe-to-evict is %q", got)
	}
	for name, want := range map[string]string{"pod": "mine", "project.runner.gitlab.com/namespace-id": "", "job.runner.gitlab.com/pod": "runner-t3abcdef-project-7-concurrent-2"} {
		if got, there := built.Pod.Labels[name]; !there || got != want {
			t.Errorf("label %s is %q, want %q", name, got, want)
		}
	}
}

func TestProtected(t *testing.T) {
	for _, name := range []string{"job.runner.gitlab.com/pod", "project.runner.gitlab.com/id", "runner.gitlab.com/x", pod.LabelJob} {
		if !pod.Protected(name) {
			t.Errorf("%s can be set by settings", name)
		}
	}
	if !pod.ProtectedFromJobs("pod") || !pod.ProtectedFromJobs(pod.LabelJob) {
		t.Error("a job can set what is the runner's")
	}
	for _, name := range []string{"team", "pod", "example.com/pod", "notrunner.gitlab.com/x", "pods"} {
		if pod.Protected(name) {
			t.Errorf("%s is refused", name)
		}
	}
}

func TestNoSecretsInThePod(t *testing.T) {
	const canary = "glcbt-canary"
	p := plan()
	parsed, err := job.Parse([]byte(`{"id": 1, "token": "`+canary+`",
		"git_info": {"repo_url": "https://gitlab-ci-token:`+canary+`@gitlab.example.com/a/b.git"},
		"variables": [{"key": "PASSWORD", "value": "`+canary+`", "masked": true}],
		"credentials": [{"type": "registry", "password": "`+canary+`"}],
		"image": {"name": "debian:12"}}`), job.Environment{"CUSTOM_ENV_PASSWORD": canary, "CUSTOM_ENV_CI_JOB_TOKEN": canary})
	if err != nil {
		t.Fatal(err)
	}
	p.Job = parsed
	built, err := p.Build()
	if err != nil {
		t.Fatal(err)
	}
	text, err := yaml.Marshal(built.Pod)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), canary) {
		t.Errorf("the Pod shows a secret:\n%s", text)
	}
	if !slices.Contains([]string{"https://gitlab.example.com/a/b/-/jobs/1"}, built.Pod.Annotations["job.runner.gitlab.com/url"]) {
		t.Errorf("url annotation %q", built.Pod.Annotations["job.runner.gitlab.com/url"])
	}
}
