package metrics_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/socialweb-computer/tenant-executor/executor/failure"
	"github.com/socialweb-computer/tenant-executor/executor/job"
	"github.com/socialweb-computer/tenant-executor/stages/course"
	"github.com/socialweb-computer/tenant-executor/stages/metrics"
)

func start() time.Time { return time.Date(2026, 11, 30, 8, 0, 0, 0, time.UTC) }

func openBook(t *testing.T) (*course.Book, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "state")
	book, err := course.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return book, filepath.Join(dir, "jobs")
}

// play plays a job: prepare for 10 s on a node that was booted, a script for
// 20 s, and cleanup, if it comes to that.
func play(t *testing.T, book *course.Book, id int64, failed error, cleaned bool) {
	t.Helper()
	now := start().Add(time.Duration(id) * time.Second)
	j := job.Job{ID: id, RunnerToken: "t1", Git: job.Git{URL: "https://gitlab.example.com/group/demo.git"}}
	step := func(name string, took time.Duration, failed error, note func(*course.Entry)) {
		e, err := course.Begin(book, j, "aa01", name, func() time.Time { return now })
		if err != nil {
			t.Error(err)
		}
		now = now.Add(took)
		note(e)
		if _, _, err := e.End(failed); err != nil {
			t.Error(err)
		}
	}
	step(course.Prepare, 10*time.Second, nil, func(e *course.Entry) {
		e.Note(func(c *course.Course) {
			c.Kind, c.Node, c.Waits, c.Reaped = course.Cold, "n1", course.Waits{Node: 8, Start: 1.5, Reach: 0.25}, 1
		})
	})
	step("step_mine", 20*time.Second, failed, func(e *course.Entry) {
		e.NoteStep(func(s *course.Step) { s.Bytes, s.Reconnects, s.Outage = 100, 2, 3 })
	})
	if cleaned {
		step(course.Cleanup, time.Second, nil, func(*course.Entry) {})
	}
}

// parsed reads metrics as Prometheus does.
func parsed(t *testing.T, text []byte) map[string]*dto.MetricFamily {
	t.Helper()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return families
}

// value is a counter, or a histogram's count, with a label's value.
func value(t *testing.T, families map[string]*dto.MetricFamily, name string, labels ...string) float64 {
	t.Helper()
	for _, m := range families[name].GetMetric() {
		var have []string
		for _, l := range m.GetLabel() {
			have = append(have, l.GetValue())
		}
		if strings.Join(have, ",") != strings.Join(labels, ",") {
			continue
		}
		if h := m.GetHistogram(); h != nil {
			return float64(h.GetSampleCount())
		}
		return m.GetCounter().GetValue()
	}
	t.Errorf("there is no %s %v", name, labels)
	return -1
}

func now() time.Time { return start().Add(time.Hour) }

func text(t *testing.T, book *course.Book) []byte {
	t.Helper()
	totals, _, err := metrics.Fold(book, now())
	if err != nil {
		t.Fatal(err)
	}
	out, err := totals.Text()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestCounts(t *testing.T) {
	book, _ := openBook(t)
	empty := parsed(t, text(t, book))
	if got := value(t, empty, "tenant_executor_attempts_total", "passed") + value(t, empty, "tenant_executor_reconnects_total"); got != 0 {
		t.Errorf("nothing counts %v", got)
	}
	play(t, book, 1, nil, true)
	play(t, book, 2, failure.Script(1), true)
	play(t, book, 3, failure.New(failure.NodeLost, "gone"), true)
	play(t, book, 4, nil, false) // it is under way
	families := parsed(t, text(t, book))
	for _, test := range []struct {
		name   string
		labels []string
		want   float64
	}{
		{"tenant_executor_attempts_total", []string{"passed"}, 1},
		{"tenant_executor_attempts_total", []string{"failed"}, 1},
		{"tenant_executor_attempts_total", []string{"system_failure"}, 1},
		{"tenant_executor_starts_total", []string{"cold"}, 3},
		{"tenant_executor_starts_total", []string{"held"}, 0},
		{"tenant_executor_wait_seconds", []string{"node"}, 3},
		{"tenant_executor_wait_seconds", []string{"services"}, 3},
		{"tenant_executor_prepare_seconds", []string{"cold"}, 3},
		{"tenant_executor_stage_seconds", []string{"step"}, 3},
		{"tenant_executor_stage_seconds", []string{"cleanup"}, 3},
		{"tenant_executor_failures_total", []string{"run", "script_failed", "build"}, 1},
		{"tenant_executor_failures_total", []string{"run", "node_lost", "system"}, 1},
		{"tenant_executor_node_seconds_total", []string{"boot"}, 24},
		{"tenant_executor_node_seconds_total", []string{"run"}, 63},
		{"tenant_executor_reconnects_total", nil, 6},
		{"tenant_executor_outage_seconds_total", nil, 9},
		{"tenant_executor_output_bytes_total", nil, 300},
		{"tenant_executor_leftovers_reaped_total", nil, 3},
		{"tenant_executor_pods_remade_total", nil, 0},
	} {
		if got := value(t, families, test.name, test.labels...); got != test.want {
			t.Errorf("%s %v is %v, want %v", test.name, test.labels, got, test.want)
		}
	}
	for _, m := range families["tenant_executor_wait_seconds"].GetMetric() {
		if m.GetLabel()[0].GetValue() != "node" {
			continue
		}
		for _, b := range m.GetHistogram().GetBucket() {
			want := uint64(0)
			if b.GetUpperBound() >= 8 {
				want = 3
			}
			if b.GetCumulativeCount() != want {
				t.Errorf("bucket %v has %d, want %d", b.GetUpperBound(), b.GetCumulativeCount(), want)
			}
		}
		if m.GetHistogram().GetSampleSum() != 24 {
			t.Errorf("sum %v", m.GetHistogram().GetSampleSum())
		}
	}
	for name, f := range families {
		if f.GetHelp() == "" || !strings.HasPrefix(name, "tenant_executor_") {
			t.Errorf("%s has the help %q", name, f.GetHelp())
		}
		if counter := f.GetType() == dto.MetricType_COUNTER; counter != strings.HasSuffix(name, "_total") {
			t.Errorf("%s is a %s", name, f.GetType())
		}
	}
}

// Counts never go back: not when courses are dropped, nor by a ledger that was
// lost, nor when nothing is new. And a job under way is counted once it ends.
func TestCountsOnlyGrow(t *testing.T) {
	book, dir := openBook(t)
	for id := range int64(course.Most + 20) {
		play(t, book, id+1, nil, true)
		if id%50 == 0 {
			text(t, book)
		}
	}
	passed := func() float64 {
		return value(t, parsed(t, text(t, book)), "tenant_executor_attempts_total", "passed")
	}
	if got := passed(); got != course.Most+20 {
		t.Errorf("%v jobs are counted", got)
	}
	if found, _ := filepath.Glob(filepath.Join(dir, "totals-*")); len(found) > 2 {
		t.Errorf("the ledgers %q", found)
	}
	// A crash of the disk has cut off the newest; the one before counts, and what
	// it had counted is not counted again.
	found, _ := filepath.Glob(filepath.Join(dir, "totals-*"))
	if err := os.WriteFile(found[len(found)-1], []byte(`{"counted":["jo`), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := passed(); got != course.Most+20 {
		t.Errorf("%v jobs are counted after a ledger was lost", got)
	}
	play(t, book, 5000, nil, false)
	if got := passed(); got != course.Most+20 {
		t.Errorf("%v jobs are counted, one of them under way", got)
	}
}

// Many processes that end jobs at once count each of them once.
func TestManyAtOnce(t *testing.T) {
	book, dir := openBook(t)
	path := filepath.Join(t.TempDir(), "x.prom")
	const jobs = 24
	var all sync.WaitGroup
	for id := range int64(jobs) {
		all.Go(func() {
			play(t, book, id+1, nil, true)
			if err := metrics.WriteTextfile(path, book, now()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	written, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := value(t, parsed(t, written), "tenant_executor_attempts_total", "passed"); got != jobs {
		t.Errorf("the file counts %v jobs, want %d", got, jobs)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	for _, folder := range []string{dir, filepath.Dir(path)} {
		if left, _ := filepath.Glob(filepath.Join(folder, ".*new-*")); len(left) > 0 {
			t.Errorf("left over: %q", left)
		}
	}
}

// However hostile the names are, there are few series, and the ledger has room
// in its file.
func TestBounded(t *testing.T) {
	book, dir := openBook(t)
	for id := range int64(60) {
		j := job.Job{ID: id + 1, Git: job.Git{URL: "https://gitlab.example.com/x.git"}}
		for i := range 20 {
			name := fmt.Sprintf("step_%d_%d", id, i)
			if i == 0 {
				name = course.Prepare
			}
			if i == 19 {
				name = course.Cleanup
			}
			e, err := course.Begin(book, j, "aa01", name, now)
			if err != nil {
				t.Fatal(err)
			}
			e.Note(func(c *course.Course) { c.Kind, c.Node = course.Kind(fmt.Sprint("kind", id)), "n" })
			e.NoteStep(func(s *course.Step) { s.Name = name + "\"\n" })
			if _, _, err := e.End(failure.New(failure.Cause(fmt.Sprint("cause", i, id)), "x")); err != nil {
				t.Fatal(err)
			}
		}
	}
	for id := range int64(440) {
		play(t, book, 100+id, nil, true)
	}
	if lines := bytes.Count(text(t, book), []byte("\n")); lines > 600 {
		t.Errorf("%d lines", lines)
	}
	found, _ := filepath.Glob(filepath.Join(dir, "totals-*"))
	if info, err := os.Stat(found[len(found)-1]); err != nil || info.Size() > 48<<10 {
		t.Errorf("the ledger has %d bytes, %v", info.Size(), err)
	}
}

func TestGauges(t *testing.T) {
	book, _ := openBook(t)
	totals, _, err := metrics.Fold(book, now())
	if err != nil {
		t.Fatal(err)
	}
	out, err := totals.Text(
		metrics.Gauge{Name: "g", Help: "A gauge.", Labels: []string{"state", "a"}, Value: 1},
		metrics.Gauge{Name: "g", Help: "A gauge.", Labels: []string{"state", "b"}, Value: 2},
	)
	if err != nil {
		t.Fatal(err)
	}
	if g := parsed(t, out)["g"].GetMetric(); len(g) != 2 || g[1].GetGauge().GetValue() != 2 {
		t.Errorf("%v", g)
	}
}
