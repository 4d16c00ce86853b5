//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/socialweb-computer/tenant-executor/examples/localrunner/runner"
	"github.com/socialweb-computer/tenant-executor/examples/testbed"
)

// statistics is what the test reads of "stats --output json".
type statistics struct {
	Summary struct {
		Attempts int
		ColdCost *float64 `json:"cold_cost_seconds"`
		Starts   []struct {
			Kind   string
			Count  int
			Median float64 `json:"median_seconds"`
		}
		Failures []struct{ Cause string }
	}
	Jobs []struct {
		Job   int64
		Node  string
		Kind  string
		Waits struct{ Node, Start, Reach, Queue float64 }
		Steps []struct {
			Name  string
			Took  float64
			Bytes int64
			Done  bool
		}
		Linger float64
		Ended  string
	}
}

// Jobs on real nodes, seen from outside: the first has its node booted, the
// second finds it held, the third fails. The statistics, the page, the figures
// for Prometheus and the log on the host tell so.
func TestSeenFromOutside(t *testing.T) {
	fromZero(t, "--boot-time", "3s", "--hold", "3s")
	dir := t.TempDir()
	prom, log := filepath.Join(dir, "jobs.prom"), filepath.Join(dir, "jobs.log")
	config := warmConfig(t, fmt.Sprintf("linger = \"30s\"\n[metrics]\ntextfile = %q\n[log]\nfile = %q\nformat = \"json\"\n", prom, log))
	replaceInFile(t, config, filepath.Join(filepath.Dir(config), "state"), filepath.Join(dir, "state"))

	passes := func(script string) int64 {
		j := testbed.WithoutSources(bed.Job(script))
		wantPassed(t, runJobWith(t, config, j, runner.Options{}))
		return j.ID
	}
	first, second := passes("seq 1 1000"), passes("true")
	failing := testbed.WithoutSources(bed.Job("exit 3"))
	if out := runJobWith(t, config, failing, runner.Options{}); !strings.Contains(out.Log, "exit status 3") && !strings.Contains(out.Log, "exit code 3") {
		t.Errorf("the job that fails:\n%s", plain(out.Log))
	}

	text := outside(t, config, "stats", "--output", "json")
	var got statistics
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		t.Fatalf("%v:\n%s", err, text)
	}
	kinds := map[string]int{}
	for _, s := range got.Summary.Starts {
		kinds[s.Kind] = s.Count
	}
	if got.Summary.Attempts != 3 || kinds["cold"] != 1 || kinds["held"] != 2 || got.Summary.ColdCost == nil || *got.Summary.ColdCost < 3 {
		t.Errorf("the summary is\n%s", text)
	}
	if len(got.Jobs) != 3 || got.Jobs[0].Job != first || got.Jobs[1].Job != second || got.Jobs[0].Node == "" || got.Jobs[0].Node != got.Jobs[1].Node {
		t.Fatalf("the jobs are\n%s", text)
	}
	if c := got.Jobs[0]; c.Waits.Node < 3 || c.Waits.Start <= 0 || c.Waits.Reach <= 0 || c.Linger != 30 || c.Ended == "" {
		t.Errorf("the first job: %+v", c)
	}
	bytes := int64(0)
	for _, s := range got.Jobs[0].Steps {
		if bytes += s.Bytes; !s.Done || s.Took <= 0 {
			t.Errorf("step %+v", s)
		}
	}
	if bytes < 3893 { // of seq
		t.Errorf("%d bytes of output", bytes)
	}

	table := outside(t, config, "stats", "--jobs")
	t.Logf("\n%s", table)
	for _, part := range []string{"3 attempts at 3 jobs", "\ncold", "\nheld", "A cold start took ", "script_failed", fmt.Sprintf("\n%d ", first)} {
		if !strings.Contains(table, part) {
			t.Errorf("stats does not say %q", part)
		}
	}
	page := outside(t, config, "stats", "--html", "-")
	for _, part := range []string{"</html>", got.Jobs[0].Node, `class="bar boot"`, `class="bar run"`, `class="bar placeholder"`} {
		if !strings.Contains(page, part) {
			t.Errorf("the page lacks %q", part)
		}
	}
	figures, err := os.ReadFile(prom)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		`tenant_executor_starts_total{start="cold"} 1`, `tenant_executor_starts_total{start="held"} 2`,
		`tenant_executor_attempts_total{result="passed"} 2`, `tenant_executor_failures_total{step="run",cause="script_failed",class="build"} 1`,
	} {
		if !strings.Contains(string(figures), line+"\n") {
			t.Errorf("the figures lack %s:\n%s", line, figures)
		}
	}
	lines, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []int64{first, second, failing.ID} {
		if found := regexp.MustCompile(fmt.Sprintf(`"job":%d,`, id)).FindAll(lines, -1); len(found) < 3 {
			t.Errorf("the log has %d lines of job %d:\n%s", len(found), id, lines)
		}
	}

	// Nodes that a policy keeps are on the page as well.
	configured, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	policy := filepath.Join(dir, "policy.toml")
	withPolicy := strings.Replace(string(configured), "[metrics]", "[[warm.policy]]\nidle_count = 2\n[metrics]", 1)
	if err := os.WriteFile(policy, []byte(withPolicy), 0o600); err != nil {
		t.Fatal(err)
	}
	k := startKeeper(t, policy)
	spare := seenForAWhile(t, filepath.Join(dir, "state", "jobs", "placeholders"))
	k.end(t)
	if page := outside(t, config, "stats", "--html", "-"); !strings.Contains(page, ">"+spare+"<") {
		t.Errorf("node %s of the policy is not on the page", spare)
	}
}

// seenForAWhile waits until a placeholder of the policies was seen twice, and
// names its node.
func seenForAWhile(t *testing.T, path string) string {
	t.Helper()
	ctx := limited(t, time.Minute)
	for {
		var seen []struct {
			Node     string
			From, To time.Time
		}
		if text, err := os.ReadFile(path); err == nil && json.Unmarshal(text, &seen) == nil {
			for _, s := range seen {
				if s.To.After(s.From) {
					return s.Node
				}
			}
		}
		select {
		case <-ctx.Done():
			t.Fatal("no placeholder of the policy was seen for a while")
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// outside runs a command of the driver for people.
func outside(t *testing.T, config string, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(limited(t, jobLimit), bed.Driver, append(args, "--config", config)...).CombinedOutput()
	if err != nil {
		t.Fatalf("%q: %v:\n%s", args, err, out)
	}
	return string(out)
}
