package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// driver runs the stages on this machine. It becomes what $STATE/STAGE says,
// or runs the script.
const driver = `#!/bin/sh
stage=$1; [ "$1" = run ] && stage=$3
[ -e "$STATE/$stage" ] && . "$STATE/$stage"
case $1 in
config) echo "{\"builds_dir\":\"$STATE/builds\",\"cache_dir\":\"$STATE/cache\",\"shell\":\"bash\",\"builds_dir_is_shared\":true}" ;;
run)
	rm -f "$BUILD_EXIT_CODE_FILE"
	HOME=$STATE bash "$2" && exit 0
	echo $? >"$BUILD_EXIT_CODE_FILE"
	exit 1 ;;
esac
`

type app struct {
	t       *testing.T
	dir     string
	signals chan os.Signal
	stdout  watched
	stderr  bytes.Buffer
}

// watched is an output that can be waited for.
type watched struct {
	mu   sync.Mutex
	buf  bytes.Buffer
	want string
	seen chan struct{}
}

func (w *watched) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.buf.Write(p)
	if w.seen != nil && strings.Contains(w.buf.String(), w.want) {
		close(w.seen)
		w.seen = nil
	}
	return len(p), nil
}

func (w *watched) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.buf.String()
}

// wait returns a channel that is closed once the text has been written.
func (w *watched) wait(text string) <-chan struct{} {
	w.want, w.seen = text, make(chan struct{})
	return w.seen
}

func newApp(t *testing.T, pipeline string) *app {
	t.Helper()
	for _, name := range []string{"bash", "git"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skip(name + " is not installed")
		}
	}
	a := &app{t: t, dir: t.TempDir(), signals: make(chan os.Signal, 2)}
	a.write("driver", driver)
	if err := os.Chmod(a.dir+"/driver", 0o700); err != nil {
		t.Fatal(err)
	}
	config := "[[runners]]\nname = 'test'\ntoken = 'token'\nexecutor = 'custom'\n[runners.custom]\n"
	for _, stage := range []string{"config", "prepare", "run", "cleanup"} {
		config += stage + "_exec = '" + a.dir + "/driver'\n" + stage + "_args = ['" + stage + "']\n"
	}
	a.write("config.toml", config)
	a.write("src/ci.yml", pipeline)
	return a
}

func (a *app) write(name, text string) {
	a.t.Helper()
	file := filepath.Join(a.dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		a.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		a.t.Fatal(err)
	}
}

func (a *app) execute(args ...string) int {
	a.t.Helper()
	return execute(a.t.Context(), args, surroundings{
		stdout: &a.stdout, stderr: &a.stderr, signals: a.signals,
		environ: append(os.Environ(), "STATE="+a.dir),
	})
}

func (a *app) run(args ...string) int {
	a.t.Helper()
	return a.execute(append([]string{
		"run", "--config", a.dir + "/config.toml", "--report", a.dir + "/report", "--temp-dir", a.dir,
		a.dir + "/src/ci.yml",
	}, args...)...)
}

func (a *app) report() map[string]jobReport {
	a.t.Helper()
	data, err := os.ReadFile(a.dir + "/report")
	if err != nil {
		a.t.Fatal(err)
	}
	var r report
	if err := json.Unmarshal(data, &r); err != nil {
		a.t.Fatal(err)
	}
	jobs := map[string]jobReport{}
	for _, j := range r.Jobs {
		jobs[j.Name] = j
	}
	return jobs
}

func (a *app) wantExit(got, want int) {
	a.t.Helper()
	if got != want {
		a.t.Fatalf("exit code %d, want %d\n%s\n%s", got, want, a.stdout.String(), a.stderr.String())
	}
}

func (a *app) wantOutput(parts ...string) {
	a.t.Helper()
	for _, p := range parts {
		if !strings.Contains(a.stdout.String()+a.stderr.String(), p) {
			a.t.Errorf("the output lacks %q:\n%s\n%s", p, a.stdout.String(), a.stderr.String())
		}
	}
}

func TestRunPasses(t *testing.T) {
	a := newApp(t, `
one: {stage: build, script: [cat ci.yml, echo "$MORE $S"], variables: {S: {value: verysecret, masked: true}}}
two: {script: [exit 3], allow_failure: true}
`)
	a.wantExit(a.run("--log-dir", a.dir+"/logs", "--variable", "MORE=more text", "--job-id", "100"), exitPassed)
	a.wantOutput("more text [MASKED]", "section_start:", "Job succeeded")
	jobs := a.report()
	if j := jobs["one"]; j.Status != "success" || j.ID != 100 || len(j.Calls) != 7 || j.ExitCode != nil {
		t.Errorf("one: %+v", j)
	}
	if j := jobs["two"]; j.Status != "failed" || j.ID != 101 || !j.AllowedToFail || *j.ExitCode != 3 {
		t.Errorf("two: %+v", j)
	}
	log, err := os.ReadFile(a.dir + "/logs/100-one.log")
	if err != nil || !strings.Contains(string(log), "section_start:") {
		t.Errorf("log file: %v\n%s", err, log)
	}
}

func TestRunExitCodes(t *testing.T) {
	for name, c := range map[string]struct {
		pipeline string
		stage    string // what the driver does in build_script
		args     []string
		want     int
		output   string
	}{
		"job fails":      {"a: {script: exit 1}", "", nil, exitFailed, "1 of 1 jobs did not pass"},
		"system failure": {"a: {script: exit 1}", "exit 2", nil, exitSystem, "system failure"},
		"bad pipeline":   {"a: {scripts: x}", "", nil, exitUsage, `did you mean "script"?`},
		"unknown job":    {"alpha: {script: x}", "", []string{"alhpa"}, exitUsage, `did you mean "alpha"?`},
		"unknown flag":   {"a: {script: x}", "", []string{"--nope"}, exitUsage, "unknown flag"},
		"bad sections":   {"a: {script: x}", "", []string{"--sections", "x"}, exitUsage, "want raw, plain or auto"},
		"all addresses":  {"a: {script: x}", "", []string{"--listen", "0.0.0.0:0"}, exitUsage, "say with --url"},
		"bad project":    {"a: {script: x}", "", []string{"--project", "demo"}, exitUsage, "group/name"},
		"bad variable":   {"a: {script: x}", "", []string{"--variable", "x"}, exitUsage, "KEY=VALUE"},
	} {
		t.Run(name, func(t *testing.T) {
			a := newApp(t, c.pipeline)
			if c.stage != "" {
				a.write("build_script", c.stage)
			}
			a.wantExit(a.run(c.args...), c.want)
			a.wantOutput(c.output)
		})
	}
}

func TestRunPlainInParallel(t *testing.T) {
	a := newApp(t, "a: {script: echo I am a}\nb: {script: echo I am b}")
	a.wantExit(a.run("--parallel", "2"), exitPassed)
	a.wantOutput("a | I am a\n", "b | I am b\n", "a | ── step_script took ", "b | ── get_sources\n")
	if strings.Contains(a.stdout.String(), "\x1b") || strings.Contains(a.stdout.String(), "section_start") {
		t.Errorf("marks or colours in plain text:\n%s", a.stdout.String())
	}
}

const slow = `
a:
  stage: build
  script: [echo begun, while :; do sleep 0.1; done]
  after_script: [echo afterwards $CI_JOB_STATUS]
b: {script: x}
`

func TestInterruptOnceCancels(t *testing.T) {
	a := newApp(t, slow)
	begun := a.stdout.wait("\nbegun")
	go func() { <-begun; a.signals <- os.Interrupt }()
	a.wantExit(a.run(), exitFailed)
	a.wantOutput("afterwards canceled", "cancelling the jobs", `job "b" is skipped`)
	if j := a.report()["a"]; j.Status != "canceled" {
		t.Errorf("got %+v", j)
	}
}

func TestInterruptTwiceAborts(t *testing.T) {
	a := newApp(t, slow)
	a.write("after_script", "echo hanging; while :; do sleep 0.1; done")
	begun := a.stdout.wait("\nbegun")
	go func() {
		<-begun
		again := make(chan struct{})
		a.stdout.mu.Lock()
		a.stdout.want, a.stdout.seen = "hanging", again
		a.stdout.mu.Unlock()
		a.signals <- os.Interrupt
		<-again
		a.signals <- os.Interrupt
	}()
	a.wantExit(a.run(), exitFailed)
	a.wantOutput("aborting the jobs")
	if j := a.report()["a"]; j.Status != "canceled" || j.Calls[len(j.Calls)-2].Stage != "after_script" {
		t.Errorf("got %+v", j)
	}
}

func TestTerminateShutsDown(t *testing.T) {
	a := newApp(t, slow)
	begun := a.stdout.wait("\nbegun")
	go func() { <-begun; a.signals <- syscall.SIGTERM }()
	a.wantExit(a.run(), exitSystem)
	a.wantOutput("aborted: terminated")
}

func TestCancelAfter(t *testing.T) {
	a := newApp(t, slow)
	a.wantExit(a.run("--cancel-after", "2s", "a"), exitFailed)
	a.wantOutput("ERROR: Job failed: canceled")
}

func TestExport(t *testing.T) {
	a := newApp(t, "a: {script: [echo $F], after_script: [x], variables: {F: {value: \"it's\", file: true}}}")
	out := a.dir + "/out"
	a.wantExit(a.execute("export", "--job", "a", "--out", out, a.dir+"/src/ci.yml"), exitPassed)
	var names []string
	entries, err := os.ReadDir(out + "/scripts")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	want := "01-prepare_script 02-get_sources 03-clear_worktree 04-build_script 05-after_script 06-cleanup_file_variables"
	if got := strings.Join(names, " "); got != want {
		t.Errorf("scripts: %s, want %s", got, want)
	}
	env, err := exec.Command("sh", "-c", ". "+out+`/environment.sh; echo "$CUSTOM_ENV_F $CUSTOM_ENV_CI_PROJECT_DIR $TMPDIR"; cat "$JOB_RESPONSE_FILE"`).Output()
	if err != nil || !strings.HasPrefix(string(env), "it's /builds/root/demo "+out+"\n{\"id\":") {
		t.Errorf("environment: %v\n%s", err, env)
	}
	a.wantExit(a.execute("export", "--job", "a", "--out", out, a.dir+"/src/ci.yml"), exitUsage)
	a.wantOutput("is not empty")
	a.wantExit(a.execute("export", "--job", "x", "--out", a.dir+"/other", a.dir+"/src/ci.yml"), exitUsage)
}

func TestExportServes(t *testing.T) {
	a := newApp(t, "a: {script: x}")
	serving := a.stdout.wait("serving at")
	ended := make(chan int)
	go func() {
		ended <- a.execute("export", "--job", "a", "--serve", "--out", a.dir+"/out", "--builds-dir", a.dir+"/b", a.dir+"/src/ci.yml")
	}()
	<-serving
	if out, err := exec.Command("bash", a.dir+"/out/scripts/02-get_sources").CombinedOutput(); err != nil {
		t.Errorf("get_sources: %v\n%s", err, out)
	}
	if _, err := os.Stat(a.dir + "/b/root/demo/ci.yml"); err != nil {
		t.Error(err)
	}
	a.signals <- os.Interrupt
	select {
	case code := <-ended:
		a.wantExit(code, exitPassed)
	case <-time.After(30 * time.Second):
		t.Fatal("an interrupt does not end the server")
	}
}

func TestThirdInterruptLeavesTheJobs(t *testing.T) {
	a := newApp(t, slow)
	// A driver that does not end, not even when it is aborted.
	a.write("build_script", `trap '' TERM; echo $$ >"$STATE/pid"; echo begun; while :; do sleep 0.1; done`)
	begun := a.stdout.wait("\nbegun")
	go func() {
		<-begun
		for range 3 {
			a.signals <- os.Interrupt
		}
	}()
	a.wantExit(a.run("--shutdown-timeout", "1s"), exitSystem)
	a.wantOutput("shutting down", "the job was left as it was")
	pid, err := os.ReadFile(a.dir + "/pid")
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("kill", "-KILL", strings.TrimSpace(string(pid))).CombinedOutput(); err != nil {
		t.Errorf("the driver does not run on: %v %s", err, out)
	}
}
