package job_test

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/quick"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/socialweb-computer/tenant-executor/executor/job"
)

// worstValues are values of variables that have broken other drivers.
func worstValues() []string {
	return []string{
		"", " ", "\n", "two\nlines", "a newline at the end\n", "carriage\r\nreturns\r\n", "$", "$$", "$$$", "p$$w(d)$(HOME)", "${", "${}", "${NAME", "$NAME", "${NAME}", "$1$?$@$*",
		"`id`", "$(id)", "'quotes'\"", "\\", "a=b=c", "=", "-rf", "--config=/etc/passwd", "-", "\x1b[31m", "\t", "日本語", "🚀", "\xff\xfe", strings.Repeat("x", 120<<10), strings.Repeat("$A", 1000),
	}
}

func expand(env job.Environment, text string) string { return job.Job{}.ExpandWith(env, nil, text) }

// A value arrives as it is: what stands in for it is not looked at again.
func TestExpandGivesValuesAsTheyAre(t *testing.T) {
	check := func(value, around string) bool {
		env := job.ParseEnvironment([]string{"CUSTOM_ENV_NAME=" + value, "CUSTOM_ENV_A=other", "NAME=the driver's own"})
		around = strings.ReplaceAll(around, "$", "")
		return env.Variable("NAME") == value &&
			expand(env, around) == around &&
			expand(env, around+"${NAME}"+around) == around+value+around &&
			expand(env, "$NAME") == value
	}
	for _, value := range worstValues() {
		if !check(value, " [x] ") {
			t.Errorf("%.60q does not arrive", value)
		}
	}
	if err := quick.Check(check, nil); err != nil {
		t.Error(err)
	}
}

// Text of any kind is expanded to something: with braces that nobody closes, or
// names that are none.
func TestExpandTakesAnyText(t *testing.T) {
	env := job.Environment{"CUSTOM_ENV_A": "a"}
	for _, text := range worstValues() {
		expand(env, text)
	}
	if err := quick.Check(func(text string) bool { expand(env, text); return true }, nil); err != nil {
		t.Error(err)
	}
}

// Whatever names and values a stage is given, it gets these.
func TestParseEnvironmentKeepsAll(t *testing.T) {
	check := func(given map[string]string) bool {
		var entries []string
		want := job.Environment{}
		for name, value := range given {
			if name = strings.ReplaceAll(name, "=", ""); name != "" {
				want[name] = value
			}
		}
		for name, value := range want {
			entries = append(entries, name+"="+value)
		}
		got := job.ParseEnvironment(entries)
		for name, value := range want {
			if got[name] != value {
				return false
			}
		}
		return len(got) == len(want)
	}
	if err := quick.Check(check, nil); err != nil {
		t.Error(err)
	}
}

// A Pod's name is a name for Kubernetes, whatever the job's origin is called,
// and two jobs have two.
func TestPodNamesAreValid(t *testing.T) {
	check := func(id int64, token, url string, attempt uint32) bool {
		if id < 0 {
			id = -(id + 1)
		}
		j := job.Job{ID: id, RunnerToken: token, Git: job.Git{URL: url}}
		name := j.PodName(strings.ToLower(strings.Trim(hexOf(attempt), "-")))
		other := job.Job{ID: id, RunnerToken: token + "x", Git: job.Git{URL: url}}
		// A Pod that is made anew has a number at the end (executor/pod).
		return len(validation.IsDNS1123Label(name+"-99")) == 0 && other.Key() != j.Key() &&
			len(validation.IsValidLabelValue(j.Key())) == 0
	}
	for _, text := range worstValues() {
		if !check(1<<63-1, text, text, 1<<32-1) {
			t.Errorf("no name for %.60q", text)
		}
	}
	if err := quick.Check(check, nil); err != nil {
		t.Error(err)
	}
}

func hexOf(n uint32) string {
	const digits = "0123456789abcdef"
	var b strings.Builder
	for range 6 {
		b.WriteByte(digits[n%16])
		n /= 16
	}
	return b.String()
}

// A job response of any text is a job or an error that can be shown.
func FuzzParse(f *testing.F) {
	for _, text := range worstValues() {
		name, err := json.Marshal(text)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(`{"id": 1, "job_info": {"name": ` + string(name) + `, "project_full_path": ` + string(name) + `}, "git_info": {"repo_url": ` + string(name) + `, "ref": ` + string(name) + `}}`)
	}
	f.Fuzz(func(t *testing.T, text string) {
		j, err := job.Parse([]byte(text), job.Environment{})
		if err == nil && (j.ID <= 0 || j.Timeout <= 0 || j.Key() == "") {
			t.Errorf("parsed %+v", j)
		}
		_, _ = j.Host(), j.URL()
	})
}
