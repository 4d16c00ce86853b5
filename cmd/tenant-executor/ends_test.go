package main_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/socialweb-computer/tenant-executor/kube/faultserver"
	"github.com/socialweb-computer/tenant-executor/stages/course"
)

// underWay is the course of a job whose prepare has ended well.
func (h *harness) underWay() course.Course {
	h.t.Helper()
	h.configured()
	h.theJob()
	all := h.courses()
	if len(all) != 1 || all[0].Finished() || all[0].Owner == nil || all[0].Owner.PID != os.Getpid() {
		h.t.Fatalf("under way: %+v", all)
	}
	return all[0]
}

// results are those of stats, by job.
func (h *harness) results() map[string]int {
	h.t.Helper()
	got := h.stage("stats", "--output", "json")
	var told struct {
		Summary struct {
			Results []struct {
				Name  string
				Count int
			}
		}
	}
	if err := json.Unmarshal([]byte(got.stdout), &told); err != nil {
		h.t.Fatalf("%v: %+v", err, got)
	}
	results := map[string]int{}
	for _, r := range told.Summary.Results {
		results[r.Name] = r.Count
	}
	return results
}

// rewrite changes what is written down of the only attempt.
func (h *harness) rewrite(change func(*course.Course)) {
	h.t.Helper()
	files, err := filepath.Glob(filepath.Join(h.settings["state.dir"], "jobs", "job-*"))
	if err != nil || len(files) != 1 {
		h.t.Fatalf("%v, %v", files, err)
	}
	c := h.courses()[0]
	change(&c)
	text, err := json.Marshal(c)
	if err != nil {
		h.t.Fatal(err)
	}
	if err := os.WriteFile(files[0], text, 0o600); err != nil {
		h.t.Fatal(err)
	}
}

// The attempt of a runner that was killed is over at once, for whoever looks. The
// next job's end writes that down, and counts it.
func TestAttemptOfADeadRunner(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.play()
	prom := filepath.Join(h.folder, "jobs.prom")
	h.settings["metrics.textfile"] = prom
	h.underWay()
	if got := h.results(); got[course.Running] != 1 {
		t.Errorf("while its runner lives: %v", got)
	}
	h.rewrite(func(c *course.Course) { c.Owner.PID = impossible })
	if got := h.results(); got[course.Abandoned] != 1 || got[course.Running] != 0 {
		t.Errorf("its runner is dead: %v", got)
	}
	h.job["id"] = 4712 // another job; the first one's Pod stays
	h.configured()
	h.theJob()
	if got := h.stage("cleanup"); got.code != 0 {
		t.Fatalf("%+v", got)
	}
	c := h.courses()[0]
	prepare, _ := c.Step(course.Prepare)
	if c.Closed != "runner gone" || !c.Ended.Equal(prepare.Begun.Add(prepare.Took.Duration())) {
		t.Errorf("written down: %+v", c)
	}
	text, err := os.ReadFile(prom)
	for _, line := range []string{`result="abandoned"} 1`, `result="passed"} 1`, `result="system_failure"} 0`} {
		if err != nil || !strings.Contains(string(text), "tenant_executor_attempts_total{"+line) {
			t.Errorf("the metrics lack %s: %v\n%s", line, err, text)
		}
	}
}

// Whoever removes a job's Pod writes down that its attempt is over: a sweep and
// reap. What is nobody's is left alone.
func TestAttemptsEndWithTheirPods(t *testing.T) {
	t.Parallel()
	for _, by := range []string{"sweep", "reap", "reap --dry-run"} {
		t.Run(by, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t)
			h.play()
			prom := filepath.Join(h.folder, "jobs.prom")
			h.settings["metrics.textfile"] = prom
			h.underWay()
			h.secrets()
			p := h.server.Pods()[0]
			h.server.AddPod(expiredCopy(p))
			h.nextJob(4712)
			h.configured()
			if by == "sweep" {
				h.theJob()
			} else {
				h.stage(append(strings.Fields(by), "--runner", p.Labels[domain+"runner"])...)
			}
			c := h.courses()[0]
			if dry := strings.HasSuffix(by, "--dry-run"); dry == c.Finished() || !dry && c.Closed != "attempt over" {
				t.Errorf("dry run %t: %+v", dry, c)
			}
			text, _ := os.ReadFile(prom) // a sweep does not write it, a job's end does
			if by == "reap" && !strings.Contains(string(text), `tenant_executor_attempts_total{result="abandoned"} 1`) {
				t.Errorf("the metrics are\n%s", text)
			}
		})
	}
}

func expiredCopy(p corev1.Pod) *corev1.Pod {
	left := p.DeepCopy()
	left.Name, left.UID = p.Name+"x", ""
	expired(left)
	return left
}

// A job that is cancelled while it waits for a node is no failure of the system:
// nobody is to be called at night for it.
func TestCancelWhileQueued(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	prom := filepath.Join(h.folder, "jobs.prom")
	h.settings["metrics.textfile"] = prom
	h.server.OnCreate(faultserver.Unscheduled("0/1 nodes are available"))
	h.configured()
	stage := h.start("prepare")
	stage.stdout.waitFor(t, "Waiting for a node")
	stage.terminate()
	if got := stage.wait(); got.code != systemCode {
		t.Errorf("prepare: %+v", got)
	}
	if got := h.stage("cleanup"); got.code != 0 {
		t.Errorf("cleanup: %+v", got)
	}
	text, err := os.ReadFile(prom)
	if err != nil || !strings.Contains(string(text), `result="cancelled"} 1`) || !strings.Contains(string(text), `result="system_failure"} 0`) {
		t.Errorf("%v:\n%s", err, text)
	}
	if got := h.results(); got[course.Cancelled] != 1 {
		t.Errorf("%v", got)
	}
}
