package runner

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/socialweb-computer/tenant-executor/examples/localrunner/build"
	"github.com/socialweb-computer/tenant-executor/examples/localrunner/config"
	"github.com/socialweb-computer/tenant-executor/examples/localrunner/job"
)

// The test binary is its own driver: with driverDir in its environment it
// records how it was called and then becomes the shell snippet that the test
// has left for the stage.
const driverDir = "LOCALRUNNER_TEST_DRIVER_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(driverDir); dir != "" {
		// A driver must never go on to run the tests. Nor does it exit by
		// itself, which takes a second under the race detector.
		fmt.Fprintln(os.Stderr, drive(dir))
		os.Exit(99)
	}
	os.Exit(m.Run())
}

// seen is what a driver call saw.
type seen struct {
	Args         []string
	Env          []string
	Dir          string
	PID          int
	Group        int
	Stdin        string
	Pipes        bool
	Files        map[string]string // name in TMPDIR -> mode
	ScriptMode   string
	ExitCodeFile string // content, "-" when missing
}

func (s seen) stage() string {
	if last := s.Args[len(s.Args)-1]; s.Args[0] == "run" {
		return last
	}
	return s.Args[0]
}

func (s seen) value(key string) string {
	for _, e := range slices.Backward(s.Env) {
		if k, v, _ := strings.Cut(e, "="); k == key {
			return v
		}
	}
	return "<unset>"
}

func drive(dir string) error {
	s, err := look()
	if err != nil {
		return err
	}
	data, err := json.Marshal(s)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(dir+"/calls", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if _, err := f.Write(append(data, '\n')); err != nil {
		return err
	}
	snippet, err := os.ReadFile(dir + "/" + s.stage())
	if err != nil {
		snippet = nil // success
	}
	env := append(os.Environ(), "DIR="+dir)
	return syscall.Exec("/bin/sh", append([]string{"sh", "-c", string(snippet), "sh"}, s.Args[1:]...), env)
}

func look() (seen, error) {
	wd, err := os.Getwd()
	if err != nil {
		return seen{}, err
	}
	s := seen{
		Args: os.Args[1:], Env: os.Environ(), Dir: wd,
		PID: os.Getpid(), Group: syscall.Getpgrp(),
		Files: map[string]string{}, Pipes: isPipe(os.Stdout) && isPipe(os.Stderr),
		ExitCodeFile: "-",
	}
	if s.Stdin, err = os.Readlink("/proc/self/fd/0"); err != nil {
		return s, err
	}
	for _, dir := range []string{".", "response.json"} {
		info, err := os.Stat(dir)
		if err != nil {
			return s, err
		}
		s.Files[dir] = info.Mode().String()
	}
	if s.Args[0] == "run" {
		info, err := os.Stat(s.Args[len(s.Args)-2])
		if err != nil {
			return s, err
		}
		s.ScriptMode = info.Mode().String()
	}
	if data, err := os.ReadFile(os.Getenv("BUILD_EXIT_CODE_FILE")); err == nil {
		s.ExitCodeFile = string(data)
	}
	return s, nil
}

func isPipe(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&fs.ModeNamedPipe != 0
}

// harness runs jobs with the fake driver.
type harness struct {
	t      *testing.T
	dir    string
	temp   string
	runner *config.Runner
	job    *job.Job
	config Config

	mu     sync.Mutex
	log    strings.Builder
	pauses []time.Duration
}

func newHarness(t *testing.T) *harness {
	t.Helper()
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	h := &harness{t: t, dir: t.TempDir(), temp: t.TempDir()}
	h.runner = &config.Runner{
		Name: "test", URL: "http://127.0.0.1:1", Token: "fakerunnertoken", Executor: "custom",
		BuildsDir: "/builds", CacheDir: "/cache",
		Custom: &config.Custom{
			ConfigExec: self, ConfigArgs: []string{"config"},
			PrepareExec: self, PrepareArgs: []string{"prepare", "-v"},
			RunExec: self, RunArgs: []string{"run"},
			CleanupExec: self, CleanupArgs: []string{"cleanup"},
		},
	}
	h.job = sampleJob()
	h.config = Config{
		Runner: h.runner, TempDir: h.temp,
		Environ: append(os.Environ(), driverDir+"="+h.dir),
		Pause: func(ctx context.Context, d time.Duration) error {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.pauses = append(h.pauses, d)
			return ctx.Err()
		},
	}
	return h
}

func sampleJob() *job.Job {
	return &job.Job{
		ID: 7, Token: "jobtoken", AllowGitFetch: true,
		Info: job.Info{Name: "test job", Stage: "test", ProjectID: 1},
		Git: job.Git{
			RepoURL: "http://gitlab-ci-token:jobtoken@127.0.0.1:1/root/demo.git",
			Ref:     "main", SHA: strings.Repeat("a", 40), Refspecs: []string{"+refs/heads/main:refs/remotes/origin/main"},
		},
		Runner: job.Runner{Timeout: 3600},
		Steps:  []job.Step{{Name: "script", Script: []string{"true"}}},
		Features: job.Features{
			FailureReasons: []string{"unknown_failure", "script_failure", "runner_system_failure", "job_execution_timeout"},
		},
	}
}

// on sets what the driver does in a stage: a shell snippet.
func (h *harness) on(stage, snippet string) {
	h.t.Helper()
	if err := os.WriteFile(filepath.Join(h.dir, stage), []byte(snippet), 0o600); err != nil {
		h.t.Fatal(err)
	}
}

// run runs the job with options, collecting its log.
func (h *harness) run(opts Options) (Result, error) {
	h.t.Helper()
	r, err := New(h.config)
	if err != nil {
		h.t.Fatal(err)
	}
	opts.Log = &h.log
	res, err := r.Run(h.t.Context(), h.job, opts)
	return res, err
}

func (h *harness) mustRun(opts Options) Result {
	h.t.Helper()
	res, err := h.run(opts)
	if err != nil {
		h.t.Fatalf("Run: %v\n%s", err, h.log.String())
	}
	return res
}

// calls are what the driver saw.
func (h *harness) calls() []seen {
	h.t.Helper()
	data, err := os.ReadFile(h.dir + "/calls")
	if err != nil {
		return nil
	}
	var all []seen
	for _, line := range strings.Split(strings.TrimSpace(string(data)), "\n") {
		var s seen
		if err := json.Unmarshal([]byte(line), &s); err != nil {
			h.t.Fatal(err)
		}
		all = append(all, s)
	}
	return all
}

func (h *harness) stages() string {
	var names []string
	for _, s := range h.calls() {
		names = append(names, s.stage())
	}
	return strings.Join(names, " ")
}

func (h *harness) wantStages(want string) {
	h.t.Helper()
	if got := h.stages(); got != want {
		h.t.Errorf("stages:\n got %s\nwant %s\nlog:\n%s", got, want, h.log.String())
	}
}

func (h *harness) wantInLog(parts ...string) {
	h.t.Helper()
	for _, p := range parts {
		if !strings.Contains(h.log.String(), p) {
			h.t.Errorf("the log lacks %q:\n%s", p, h.log.String())
		}
	}
}

func (h *harness) file(name string) string {
	data, err := os.ReadFile(filepath.Join(h.dir, name))
	if err != nil {
		return "<missing>"
	}
	return string(data)
}

// want checks how the job ended.
func want(t *testing.T, got Result, status Status, reason string, code int) {
	t.Helper()
	if got.Status != status || got.FailureReason != reason || got.ExitCode != code {
		t.Errorf("result: %s, reason %q, exit code %d (%s); want %s, %q, %d",
			got.Status, got.FailureReason, got.ExitCode, got.Message, status, reason, code)
	}
}

// onLine returns a callback that closes the channel at the first line with
// the text.
func onLine(text string) (func(string), chan struct{}) {
	c := make(chan struct{})
	var once sync.Once
	return func(line string) {
		if strings.Contains(line, text) {
			once.Do(func() { close(c) })
		}
	}, c
}

// running reports whether a process with the id exists and is no zombie.
func running(pid string) bool {
	out, err := exec.Command("ps", "-o", "stat=", "-p", pid).Output()
	return err == nil && !strings.HasPrefix(strings.TrimSpace(string(out)), "Z")
}

func seconds(n int) *int { return &n }

const (
	reasonSystem  = build.ReasonSystem
	reasonScript  = build.ReasonScript
	reasonTimeout = build.ReasonTimeout
	reasonUnknown = build.ReasonUnknown
)

func atoi(t *testing.T, s string) int {
	t.Helper()
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
