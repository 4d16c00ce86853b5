package hostlog_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/socialweb-computer/tenant-executor/executor/failure"
	"github.com/socialweb-computer/tenant-executor/executor/job"
	"github.com/socialweb-computer/tenant-executor/executor/settings"
	"github.com/socialweb-computer/tenant-executor/stages/course"
	"github.com/socialweb-computer/tenant-executor/stages/hostlog"
)

func theJob() job.Job {
	return job.Job{
		ID: 7, Name: "unit\nevil=1",
		Variables: []job.Variable{
			{Key: "SHORT", Value: "hunter2", Masked: true}, {Key: "LONG", Value: "hunter2-and-more", Masked: true},
			{Key: "NESTED", Value: "$SHORT-nested", Masked: true}, {Key: "EMPTY", Masked: true}, {Key: "OPEN", Value: "open"},
		},
		Credentials: []job.Credential{{Password: "registry-pass"}},
	}
}

// write has one step say all it can say, and gives the lines.
func write(t *testing.T, s settings.Log, failed error) []string {
	t.Helper()
	s.File = filepath.Join(t.TempDir(), "jobs.log")
	env := job.ParseEnvironment([]string{"CUSTOM_ENV_NESTED=hunter2-nested"})
	log, err := hostlog.Open(s, theJob(), env, "build_script")
	if err != nil {
		t.Fatal(err)
	}
	log.Begin()
	log.Warn(errors.New("cannot write registry-pass"))
	log.End(course.Course{Attempt: "aa01", Node: "n1"}, course.Step{Name: "build_script", Took: 1.5, Bytes: 7}, failed)
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(s.File)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(s.File); err != nil || info.Mode().Perm()&0o007 != 0 {
		t.Errorf("everybody can read it: %v, %v", info.Mode(), err)
	}
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
}

// Secrets of the job are masked wherever they turn up, and a name with a line
// break begins no line of its own.
func TestMasked(t *testing.T) {
	for _, format := range []string{"text", "json"} {
		lines := write(t, settings.Log{Level: "debug", Format: format},
			failure.Wrap(failure.PodRefused, errors.New("open hunter2-nested"), "image hunter2-and-more:hunter2"))
		if len(lines) != 3 {
			t.Fatalf("%q", lines)
		}
		if !strings.Contains(lines[2], "step failed: image [MASKED]:[MASKED]: open [MASKED]") || !strings.Contains(lines[1], "cannot write [MASKED]") {
			t.Errorf("%q", lines)
		}
	}
}

func TestFields(t *testing.T) {
	lines := write(t, settings.Log{Level: "info", Format: "json"}, nil)
	var got map[string]any
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &got); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]any{
		"job": 7.0, "step": "build_script", "attempt": "aa01", "node": "n1", "took": 1.5, "bytes": 7.0, "level": "info", "msg": "step ended", "name": "unit\nevil=1",
	} {
		if got[name] != want {
			t.Errorf("%s is %v, want %v", name, got[name], want)
		}
	}
	if _, has := got["cause"]; has || got["time"] == nil {
		t.Errorf("%v", got)
	}
}

func TestLevels(t *testing.T) {
	for level, want := range map[string]struct{ passed, script, system int }{
		"debug": {3, 3, 3}, "info": {2, 2, 2}, "warn": {1, 2, 2}, "error": {0, 0, 1},
	} {
		count := func(failed error) int {
			n := 0
			for _, line := range write(t, settings.Log{Level: level, Format: "text"}, failed) {
				if line != "" {
					n++
				}
			}
			return n
		}
		got := struct{ passed, script, system int }{count(nil), count(failure.Script(1)), count(failure.New(failure.NodeLost, "gone"))}
		if got != want {
			t.Errorf("%s: %+v lines, want %+v", level, got, want)
		}
	}
}

// Many stages write to one file at once, and their lines do not mix.
func TestManyAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.log")
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			for range 50 {
				log, err := hostlog.Open(settings.Log{File: path, Level: "info", Format: "json"}, theJob(), nil, "x")
				if err != nil {
					t.Error(err)
					return
				}
				log.End(course.Course{}, course.Step{}, nil)
				if err := log.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	if len(lines) != 1000 {
		t.Errorf("%d lines", len(lines))
	}
	for _, line := range lines {
		if !json.Valid([]byte(line)) {
			t.Fatalf("a line is %s", line)
		}
	}
}

func TestWithoutAFile(t *testing.T) {
	log, err := hostlog.Open(settings.Log{Level: "info", Format: "text"}, theJob(), nil, "x")
	if log != nil || err != nil {
		t.Fatal(log, err)
	}
	log.Begin()
	log.Warn(errors.New("x"))
	log.End(course.Course{}, course.Step{}, nil)
	if err := log.Close(); err != nil {
		t.Error(err)
	}
	_, err = hostlog.Open(settings.Log{File: filepath.Join(t.TempDir(), "none", "x"), Level: "info"}, theJob(), nil, "x")
	if err == nil || !strings.Contains(err.Error(), "log.file") {
		t.Error(err)
	}
}
