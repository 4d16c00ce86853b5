package main_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/socialweb-computer/tenant-executor/stages/course"
)

// withJobs is a harness with two jobs that have ended: one passed, one whose
// script failed.
func withJobs(t *testing.T) *harness {
	t.Helper()
	h := newHarness(t)
	h.play()
	for i, script := range []string{"true", "exit 4"} {
		h.job["id"] = 4711 + i
		h.configured()
		h.theJob()
		want := []int{0, buildCode}[i]
		if got := h.run("build_script", script); got.code != want {
			t.Fatalf("%+v", got)
		}
		h.expect(h.stage("cleanup"), 0, "", "")
	}
	return h
}

func TestStats(t *testing.T) {
	t.Parallel()
	h := withJobs(t)

	got := h.stage("stats", "--jobs")
	if got.code != 0 || got.stderr != "" {
		t.Fatalf("%+v", got)
	}
	for _, part := range []string{
		"2 attempts at 2 jobs, ", ": 1 passed, 1 failed\n", "\nSTART  COUNT  MEDIAN", "\nwarm   2 ", "\nWAIT FOR  COUNT",
		"\nbuild_script  2 ", "\nscript_failed  build  1      4712\n", "\nJOB   NAME", "\n4712  unit", "script_failed in build_script",
	} {
		if !strings.Contains(got.stdout, part) {
			t.Errorf("%q is missing in\n%s", part, got.stdout)
		}
	}
	if strings.Contains(got.stdout, "\x1b") || strings.Contains(got.stdout, " \n") {
		t.Errorf("colours, or blanks at the ends of lines:\n%q", got.stdout)
	}

	got = h.stage("stats", "--output", "json", "--last", "1")
	var answer struct {
		Summary struct {
			Attempts int
			Results  []struct {
				Name  string
				Count int
			}
			ColdCost *float64 `json:"cold_cost_seconds"`
		}
		Jobs []course.Course
	}
	if err := json.Unmarshal([]byte(got.stdout), &answer); err != nil || got.code != 0 {
		t.Fatalf("%v: %+v", err, got)
	}
	if answer.Summary.Attempts != 1 || len(answer.Jobs) != 1 || answer.Jobs[0].JobID != 4712 || answer.Summary.Results[0].Name != "failed" || answer.Summary.ColdCost != nil {
		t.Errorf("%+v", answer)
	}
	h.expect(h.stage("stats", "--runner", "nobody"), 0, "No job has been written down in this host's state folder yet.\n", "")
}

func TestStatsPage(t *testing.T) {
	t.Parallel()
	h := withJobs(t)
	path := filepath.Join(h.folder, "jobs.html")
	h.write("jobs.html", "an older one")
	h.settings["tenant.hold"] = "5m"
	got := h.stage("stats", "--html", path)
	h.expect(got, 0, "Wrote FOLDER/jobs.html: 2 attempts at jobs. Open it in a browser.\n", "")
	text, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(text), "here 5 min (tenant.hold)") || !strings.HasPrefix(string(text), "<!DOCTYPE html>") || !strings.HasSuffix(string(text), "</html>\n") {
		t.Fatalf("%v: %.200s", err, text)
	}
	if got := h.stage("stats", "--html", "-"); got.code != 0 || !strings.HasPrefix(got.stdout, "<!DOCTYPE html>") {
		t.Errorf("%d: %.200s", got.code, got.stdout)
	}
	got = h.stage("stats", "--html", filepath.Join(h.folder, "none", "jobs.html"))
	if got.code != systemCode || !strings.Contains(got.stderr, "--html") {
		t.Errorf("%+v", got)
	}
	if left, _ := filepath.Glob(filepath.Join(h.folder, ".jobs*")); len(left) > 0 {
		t.Errorf("left over: %q", left)
	}
}

func TestStatsRefusals(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	for want, args := range map[string][]string{
		`--output is "xml": use table or json`:     {"--output", "xml"},
		"--last is 0: it has to be at least 1":     {"--last", "0"},
		"tenant-executor stats takes no arguments": {"x"},
	} {
		got := h.stage(append([]string{"stats"}, args...)...)
		if got.code != systemCode || !strings.Contains(got.stderr, want) || got.stdout != "" {
			t.Errorf("%q: %+v", args, got)
		}
	}
	// A folder that others can write to is none to believe.
	if err := os.MkdirAll(filepath.Join(h.settings["state.dir"], "jobs"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(h.settings["state.dir"], "jobs"), 0o777); err != nil {
		t.Fatal(err)
	}
	if got := h.stage("stats"); got.code != systemCode || !strings.Contains(got.stderr, "chmod 700") {
		t.Errorf("%+v", got)
	}
}
