package main_test

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/socialweb-computer/tenant-executor/executor/failure"
	"github.com/socialweb-computer/tenant-executor/executor/job"
	"github.com/socialweb-computer/tenant-executor/kube/faultserver"
	"github.com/socialweb-computer/tenant-executor/stages/course"
)

// courses are what the stages of a harness have written down.
func (h *harness) courses() []course.Course {
	h.t.Helper()
	book, err := course.Open(h.settings["state.dir"])
	if err != nil {
		h.t.Fatal(err)
	}
	all, err := book.Courses(course.Most)
	if err != nil {
		h.t.Fatal(err)
	}
	return all
}

// withoutCanaries looks for secrets in all files below a folder.
func (h *harness) withoutCanaries(dir string) {
	h.t.Helper()
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		for _, secret := range []string{canaryToken, canaryVariable, canaryScript} {
			if strings.Contains(string(text), secret) {
				h.t.Errorf("%s holds a secret:\n%s", path, text)
			}
		}
		return err
	})
	if err != nil {
		h.t.Fatal(err)
	}
}

// configured runs config and hands its answer to the stages that follow, as the
// runner does.
func (h *harness) configured() {
	h.t.Helper()
	got := h.stage("config")
	var answer struct {
		JobEnv map[string]string `json:"job_env"`
	}
	if err := json.Unmarshal([]byte(got.stdout), &answer); err != nil {
		h.t.Fatalf("%v: %+v", err, got)
	}
	for name, value := range answer.JobEnv {
		h.env[name] = value
	}
}

// The stages of a job write down its course: where it ran, how its stages ended.
func TestCourse(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	p := h.play()
	h.configured()
	h.theJob()
	p.onLine(func(n int, l *line) {
		if n == 1 {
			l.breaks(faultserver.RST)
		}
	})
	if got := h.run("build_script", "echo seven77; exit 3"); got.code != buildCode {
		t.Fatalf("%+v", got)
	}
	under := h.courses()
	if len(under) != 1 || under[0].Finished() || under[0].Node != node || under[0].Kind != course.Warm {
		t.Fatalf("under way: %+v", under)
	}
	if got := h.stage("cleanup"); got.code != 0 {
		t.Fatalf("%+v", got)
	}
	all := h.courses()
	if len(all) != 1 {
		t.Fatalf("%+v", all)
	}
	c := all[0]
	if !strings.HasSuffix(c.Pod, c.Attempt) || c.JobID != 4711 || c.Project != "group/demo" || c.Namespace != namespace || c.Cluster == "" || !c.Finished() || c.Result(c.Ended) != course.Failed {
		t.Errorf("%+v", c)
	}
	if s, _ := c.Step("build_script"); s.Exit != 3 || s.Cause != "script_failed" || s.Bytes != int64(len("seven77\n")) || s.Reconnects != 1 || s.Took <= 0 || !s.Done {
		t.Errorf("the stage: %+v", s)
	}
	if len(c.Steps) != 3 {
		t.Errorf("steps: %+v", c.Steps)
	}
	h.withoutCanaries(h.settings["state.dir"])
}

// A failed attempt says by which cause, also where the driver could not begin.
func TestCourseOfFailures(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.settings["cluster.ca_file"] = filepath.Join(h.folder, "none.crt")
	h.configured()
	if got := h.stage("prepare"); got.code != systemCode {
		t.Fatalf("%+v", got)
	}
	all := h.courses()
	if len(all) != 1 {
		t.Fatalf("%+v", all)
	}
	if s, failed := all[0].Failure(); !failed || s.Cause != "credentials" || s.Class != course.ClassSystem || s.Name != course.Prepare {
		t.Errorf("%+v", all[0])
	}
}

// A job whose state folder cannot be used runs, and its log says nothing of the
// course.
func TestNoCourse(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	dir := h.settings["state.dir"]
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "jobs"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	h.play()
	h.configured()
	h.theJob()
	got := h.run("build_script", "echo fine")
	h.expect(got, 0, "fine\n", "")
	h.expect(h.stage("cleanup"), 0, "", "")
	// An operator who wants figures is told why there are none.
	h.settings["metrics.textfile"] = filepath.Join(h.folder, "jobs.prom")
	h.configured()
	got = h.stage("cleanup")
	if got.code != 0 || !strings.Contains(got.stderr, "WARNING: counting for the metrics: making the state folder") {
		t.Errorf("cleanup: %+v", got)
	}
}

// The end of a job is counted for Prometheus, and each step of it says a line to
// the host, with the job's id.
func TestOutside(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"json", "text"} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t)
			h.play()
			prom, log := filepath.Join(h.folder, "jobs.prom"), filepath.Join(h.folder, "jobs.log")
			h.settings["metrics.textfile"], h.settings["log.file"], h.settings["log.format"] = prom, log, format
			h.settings["log.level"] = "debug"
			h.configured()
			h.theJob()
			if got := h.run("build_script", "exit 3"); got.code != buildCode {
				t.Fatalf("%+v", got)
			}
			h.expect(h.stage("cleanup"), 0, "", "")
			text, err := os.ReadFile(prom)
			if err != nil || !strings.Contains(string(text), `tenant_executor_failures_total{step="run",cause="script_failed",class="build"} 1`) {
				t.Errorf("%v: %s", err, text)
			}
			lines := h.lines(log)
			if len(lines) != 6 {
				t.Fatalf("the log: %q", lines)
			}
			for i, want := range []string{"step begins", "step ended", "step begins", "step failed: the script ended with exit code 3", "step begins", "step ended"} {
				if !strings.Contains(lines[i], want) || !strings.Contains(lines[i], "4711") {
					t.Errorf("line %d is %s; want %q", i+1, lines[i], want)
				}
			}
			if format == "json" {
				var line map[string]any
				if err := json.Unmarshal([]byte(lines[3]), &line); err != nil || line["job"] != 4711.0 || line["exit"] != 3.0 || line["cause"] != "script_failed" || line["level"] != "warning" || line["node"] != node {
					t.Errorf("%v: %v", err, line)
				}
			}
			h.withoutCanaries(h.settings["state.dir"])
			for _, file := range []string{prom, log} {
				h.withoutCanaries(file)
			}
		})
	}
}

func (h *harness) lines(path string) []string {
	h.t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		h.t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
}

// What cannot be written costs no job anything, and cleanup tells the host why.
func TestOutsideCannotBeWritten(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.play()
	h.settings["metrics.textfile"], h.settings["log.file"] = filepath.Join(h.folder, "none/jobs.prom"), filepath.Join(h.folder, "none/jobs.log")
	h.configured()
	h.theJob()
	h.expect(h.run("build_script", "echo fine"), 0, "fine\n", "")
	got := h.stage("cleanup")
	if got.code != 0 || !strings.Contains(got.stderr, "metrics.textfile") || !strings.Contains(got.stderr, "log.file") {
		t.Errorf("%+v", got)
	}
}

// metricsPath is the driver's metrics as examples/grafana is tested with.
const metricsPath = "../../examples/grafana/testdata/metrics.prom"

// sameSeries compares metrics with the file, by their names and labels.
func sameSeries(t *testing.T, text string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(metricsPath, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(metricsPath)
	if err != nil {
		t.Fatal(err)
	}
	names := func(text string) []string {
		var all []string
		for line := range strings.Lines(text) {
			name, _, _ := strings.Cut(line, "} ")
			if !strings.Contains(line, "{") {
				name, _, _ = strings.Cut(line, " ")
			}
			if line[0] == '#' || strings.HasPrefix(line, "tenant_executor_build_info") {
				name = strings.TrimSpace(strings.SplitN(line, "{", 2)[0])
			}
			all = append(all, name)
		}
		return all
	}
	if diff := cmp.Diff(names(string(want)), names(text)); diff != "" {
		t.Errorf("the metrics are others than examples/grafana is tested with; run the test with -update (-want +got):\n%s", diff)
	}
}

// Every metric stands in the documentation, and no other.
func TestMetricsAreDocumented(t *testing.T) {
	names := func(path, pattern string) []string {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var all []string
		for _, found := range regexp.MustCompile(pattern).FindAllStringSubmatch(string(text), -1) {
			all = append(all, found[1])
		}
		return all
	}
	written := names(metricsPath, `(?m)^# TYPE (\w+)`)
	if diff := cmp.Diff(written, names("../../docs/observing.md", "(?m)^\\| `(\\w+)` \\|")); diff != "" || len(written) < 10 {
		t.Errorf("docs/observing.md names others than the driver writes (-want +got):\n%s", diff)
	}
}

// countedBefore is a job that had to have a node booted, lost its node, and left
// something behind.
func (h *harness) countedBefore() {
	h.t.Helper()
	book, err := course.Open(h.settings["state.dir"])
	if err != nil {
		h.t.Fatal(err)
	}
	j := job.Job{ID: 1, Git: job.Git{URL: "https://gitlab.example.com/group/demo.git"}}
	at := time.Date(2026, 11, 30, 8, 0, 0, 0, time.UTC)
	for _, step := range []struct {
		name   string
		failed error
	}{{course.Prepare, nil}, {"get_sources", nil}, {"step_mine", failure.New(failure.NodeLost, "gone")}, {course.Cleanup, nil}} {
		e, err := course.Begin(book, j, "aa01", step.name, func() time.Time { return at })
		if err != nil {
			h.t.Fatal(err)
		}
		at = at.Add(40 * time.Second)
		e.Note(func(c *course.Course) {
			c.Kind, c.Node, c.Remakes, c.Reaped = course.Cold, "n0", 1, 2
			c.Waits = course.Waits{Node: 35, Start: 3, Reach: 1, Services: 1}
		})
		e.NoteStep(func(s *course.Step) { s.Reconnects, s.Outage = 1, 2 })
		if _, _, err := e.End(step.failed); err != nil {
			h.t.Fatal(err)
		}
	}
}

// warm answers Prometheus while it runs, with all that jobs have come to.
func TestWarmAnswersPrometheus(t *testing.T) {
	t.Parallel()
	h := withJobs(t)
	h.countedBefore()
	h.settings["metrics.listen"] = "127.0.0.1:0"
	h.settings["warm.pause_pod_image"] = "pause:1"
	h.env["TENANT_EXECUTOR_CONFIG"] = filepath.Join(h.folder, "policy.toml")
	h.write("policy.toml", h.config()+"[[warm.policy]]\nidle_count = 1\n")
	warm := h.start("warm")
	warm.stderr.waitFor(t, "/metrics\n")
	warm.stderr.waitFor(t, "free nodes wanted: 1, held: 1")
	_, rest, _ := strings.Cut(warm.stderr.String(), "http://")
	address, _, _ := strings.Cut(rest, "\n")
	for path, want := range map[string]string{
		address: "tenant_executor_free_nodes{state=\"wanted\"} 1\n",
		strings.TrimSuffix(address, "metrics") + "other": "the metrics are at /metrics",
	} {
		answer, err := http.Get("http://" + path)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(answer.Body)
		if err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s: %v: %s", path, err, text)
		}
		if path == address {
			sameSeries(t, string(text))
		}
		_ = answer.Body.Close()
	}
	warm.terminate()
	if got := warm.wait(); got.code != 0 {
		t.Errorf("%+v", got)
	}
	// The node that was held is written down, for the page.
	book, err := course.Look(h.settings["state.dir"])
	if err != nil {
		t.Fatal(err)
	}
	if seen := book.Sightings(); len(seen) != 1 || seen[0].Node != node || seen[0].Cluster != h.courses()[1].Cluster {
		t.Errorf("seen: %+v", seen)
	}
	// An address that is taken, or none, is said before anything begins.
	h.write("policy.toml", strings.Replace(h.config(), "127.0.0.1:0", "203.0.113.1:1", 1)+"[[warm.policy]]\nidle_count = 1\n")
	if got := h.stage("warm"); got.code != systemCode || !strings.Contains(got.stderr, "metrics.listen") {
		t.Errorf("%+v", got)
	}
}
