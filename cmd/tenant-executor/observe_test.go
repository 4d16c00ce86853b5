package main_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

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
	h.configured()
	h.settings["cluster.ca_file"] = filepath.Join(h.folder, "none.crt")
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
}
