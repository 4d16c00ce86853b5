package pod_test

import (
	"strings"
	"testing"
	"testing/quick"
	"time"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/socialweb-computer/tenant-executor/executor/job"
	"github.com/socialweb-computer/tenant-executor/executor/pod"
)

// valid says what Kubernetes has against the metadata of a plan's objects.
func valid(t *testing.T, p pod.Plan) bool {
	t.Helper()
	built, err := p.Build()
	if err != nil {
		t.Logf("Build: %v", err)
		return false
	}
	problems := apivalidation.ValidateObjectMeta(&built.Pod.ObjectMeta, true, apivalidation.NameIsDNSLabel, field.NewPath("metadata"))
	for name, value := range built.Pod.Labels {
		for _, problem := range append(validation.IsQualifiedName(name), validation.IsValidLabelValue(value)...) {
			t.Logf("label %s=%q: %s", name, value, problem)
			return false
		}
	}
	if len(problems) > 0 {
		t.Log(problems)
	}
	return len(problems) == 0
}

// Values of labels and annotations hold what a job's variables hold, and the
// cluster takes the Pod whatever that is.
func TestExpandedMetadataIsValid(t *testing.T) {
	check := func(value string, remake uint8) bool {
		p := plan()
		p.Remake = int(remake)
		p.Variables = job.Environment{"CUSTOM_ENV_VALUE": value}
		p.Settings.PodLabels = map[string]string{"whole": "$VALUE", "part": "x-${VALUE}-y", "plain": value}
		p.Settings.PodAnnotations = map[string]string{"whole": "$VALUE", "plain": value}
		return valid(t, p)
	}
	for _, value := range []string{
		"", "---", "...", "日本語", "feature/Ünïcödé-🚀/" + strings.Repeat("x", 200), "two\nlines\r\n", "$$", "`id`", "-rf", "a b", "\x00\xff", strings.Repeat("é", 64),
		strings.Repeat("a", 62) + ".b", strings.Repeat("-", 63) + "a", strings.Repeat("x", 60<<10),
	} {
		if !check(value, 3) {
			t.Errorf("not valid with %.60q", value)
		}
	}
	if err := quick.Check(check, nil); err != nil {
		t.Error(err)
	}
}

// A label says what the kubernetes executor would have it say.
func TestExpandedLabels(t *testing.T) {
	p := plan()
	p.Variables = job.Environment{"CUSTOM_ENV_CI_PROJECT_NAME": "my project!", "CUSTOM_ENV_TEAM": "a"}
	p.Settings.PodLabels = map[string]string{"project": "$CI_PROJECT_NAME", "team": "team-${TEAM}", "none": "$NONE"}
	p.Settings.PodAnnotations = map[string]string{"project": "of $CI_PROJECT_NAME\n"}
	built, err := p.Build()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"project": "my_project", "team": "team-a", "none": ""} {
		if got := built.Pod.Labels[name]; got != want {
			t.Errorf("label %s is %q, want %q", name, got, want)
		}
	}
	if got := built.Pod.Annotations["project"]; got != "of my project!\n" {
		t.Errorf("annotation %q", got)
	}
}

// Selectors find the Pods whose labels were made of the same job, however the
// runner is called, and no others.
func TestSelectorsFindThePod(t *testing.T) {
	check := func(token, other string, id int64) bool {
		p := plan()
		p.Job.ID, p.Job.RunnerToken = max(id, 1), token
		p.Settings.PodLabels = map[string]string{"team": other}
		built, err := p.Build()
		if err != nil {
			t.Log(err)
			return false
		}
		for _, selector := range []string{pod.Selector(p.Job), pod.SelectorMade(), pod.RunnerObjects(token), pod.SelectorAll(), pod.SelectorNode()} {
			parsed, err := labels.Parse(selector)
			if err != nil || !parsed.Matches(labels.Set(built.Pod.Labels)) {
				t.Logf("%s: %v", selector, err)
				return false
			}
		}
		parsed, err := labels.Parse(pod.RunnerObjects(other))
		return err == nil && (token == other || !parsed.Matches(labels.Set(built.Pod.Labels)))
	}
	for _, token := range []string{"", "t3_abcdef", "-x", "日本", "a,b=c", "a in (b)", "!x"} {
		if !check(token, token+"2", 1<<62) {
			t.Errorf("not found with %q", token)
		}
	}
	if err := quick.Check(check, nil); err != nil {
		t.Error(err)
	}
}

// A label value keeps apart what is apart, and is valid, for any text.
func TestLabelValuesAreValid(t *testing.T) {
	check := func(a, b string) bool {
		x, y := pod.LabelValue(a), pod.LabelValue(b)
		return len(validation.IsValidLabelValue(x)) == 0 && (a == b) == (x == y)
	}
	if err := quick.Check(check, &quick.Config{MaxCount: 2000}); err != nil {
		t.Error(err)
	}
}

// Times and numbers at their ends do not make a Pod that the cluster refuses.
func TestWorstNumbers(t *testing.T) {
	for _, timeout := range []time.Duration{time.Second, 1000 * 24 * time.Hour} {
		p := plan()
		p.Job.Timeout, p.Job.ID = timeout, 1<<63-1
		built, err := p.Build()
		if err != nil {
			t.Fatal(err)
		}
		if deadline := *built.Pod.Spec.ActiveDeadlineSeconds; deadline < 1 || deadline > 1<<31-1 {
			t.Errorf("a time-out of %s gives the deadline %d", timeout, deadline)
		}
		if !valid(t, p) {
			t.Errorf("a time-out of %s", timeout)
		}
	}
}
