package runner

import (
	"encoding/json"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/socialweb-computer/tenant-executor/examples/localrunner/job"
)

const plainStages = "config prepare prepare_script get_sources build_script cleanup_file_variables cleanup"

func TestOrdinaryJob(t *testing.T) {
	h := newHarness(t)
	h.on("config", `echo '{"driver":{"name":"fake","version":"1.2"},"job_env":{"STATE":"s1"},"hostname":"node-1"}'`)
	h.on("build_script", `echo from the script; echo and its error >&2`)
	// What the runner has in its own environment counts least.
	h.config.Environ = append(h.config.Environ, "TMPDIR=/elsewhere", "STATE=of the runner", EnvPrefix+"CI_SERVER=no")
	var started []string
	res := h.mustRun(Options{OnCall: func(c Call) {
		if c.PID == 0 {
			t.Errorf("%s: no process id", c.Stage)
		}
		started = append(started, c.Stage)
	}})
	want(t, res, Success, "", 0)
	h.wantStages(plainStages)
	h.wantInLog(
		"Using Custom executor with driver fake 1.2...",
		"from the script\n", "and its error\n", "'build_script' stage", ":step_script\r", "Job succeeded")
	if diff := cmp.Diff(strings.Fields(plainStages), started); diff != "" {
		t.Errorf("OnCall (-want +got):\n%s", diff)
	}

	calls := h.calls()
	for _, c := range calls {
		dir := c.value("TMPDIR")
		if c.Dir != dir || !strings.HasPrefix(dir, h.temp+"/custom-executor") {
			t.Errorf("%s: works in %s, TMPDIR is %s", c.stage(), c.Dir, dir)
		}
		if c.PID != c.Group {
			t.Errorf("%s: process %d is in group %d", c.stage(), c.PID, c.Group)
		}
		if c.Stdin != "/dev/null" || !c.Pipes {
			t.Errorf("%s: stdin %s, pipes %v", c.stage(), c.Stdin, c.Pipes)
		}
		if diff := cmp.Diff(map[string]string{".": "drwx------", "response.json": "-rw-------"}, c.Files); diff != "" {
			t.Errorf("%s: modes (-want +got):\n%s", c.stage(), diff)
		}
		wantState := "s1"
		if c.stage() == "config" {
			wantState = "of the runner"
		}
		if got := c.value(EnvPrefix + "CI_SERVER"); got != "yes" {
			t.Errorf("%s: CI_SERVER = %q", c.stage(), got)
		}
		if got := c.value("STATE"); got != wantState {
			t.Errorf("%s: job_env STATE = %q, want %q", c.stage(), got, wantState)
		}
		for key, value := range map[string]string{
			"BUILD_FAILURE_EXIT_CODE": "1", "SYSTEM_FAILURE_EXIT_CODE": "2",
			"BUILD_EXIT_CODE_FILE": dir + "/build_exit_code", "JOB_RESPONSE_FILE": dir + "/response.json",
		} {
			if got := c.value(key); got != value {
				t.Errorf("%s: %s = %q, want %q", c.stage(), key, got, value)
			}
		}
	}
	if diff := cmp.Diff([]string{"prepare", "-v"}, calls[1].Args); diff != "" {
		t.Errorf("arguments of prepare (-want +got):\n%s", diff)
	}
	runArgs := calls[2].Args
	if len(runArgs) != 3 || !strings.HasPrefix(runArgs[1], calls[2].Dir+"/script") || !strings.HasSuffix(runArgs[1], "/script") ||
		calls[2].ScriptMode != "-rwx------" || runArgs[1] == calls[3].Args[1] {
		t.Errorf("arguments of run: %v, then %v; mode %s", runArgs, calls[3].Args, calls[2].ScriptMode)
	}
	if left, err := os.ReadDir(h.temp); err != nil || len(left) > 0 {
		t.Errorf("left in the temporary folder: %v, %v", left, err)
	}
}

// TestExitCodes has a case for each kind of end that a run call can have.
func TestExitCodesOfRun(t *testing.T) {
	for name, c := range map[string]struct {
		snippet string
		status  Status
		reason  string
		code    int
		message string
	}{
		"success":            {`exit 0`, Success, "", 0, ""},
		"build failure":      {`exit 1`, Failed, reasonScript, 1, "exit status 1"},
		"with exit code":     {`echo 42 >"$BUILD_EXIT_CODE_FILE"; exit 1`, Failed, reasonScript, 42, "exit status 42"},
		"CRLF":               {`printf '137\r\n2\n' >"$BUILD_EXIT_CODE_FILE"; exit 1`, Failed, reasonScript, 137, "exit status 137"},
		"empty file":         {`: >"$BUILD_EXIT_CODE_FILE"; exit 1`, Failed, reasonSystem, 0, "unknown Custom executor executable exit code 2; executable execution terminated with: exit status 1"},
		"blank before":       {`echo " 3" >"$BUILD_EXIT_CODE_FILE"; exit 1`, Failed, reasonSystem, 0, "exit code 2"},
		"text behind":        {`echo "3 x" >"$BUILD_EXIT_CODE_FILE"; exit 1`, Failed, reasonSystem, 0, "exit code 2"},
		"system failure":     {`echo 42 >"$BUILD_EXIT_CODE_FILE"; exit 2`, Failed, reasonSystem, 0, "exit status 2"},
		"unknown code":       {`exit 137`, Failed, reasonSystem, 0, "unknown Custom executor executable exit code 137; executable execution terminated with: exit status 137"},
		"signal":             {`kill -KILL $$`, Failed, reasonSystem, 0, "unknown Custom executor executable exit code -1; executable execution terminated with: signal: killed"},
		"zero with the file": {`echo 42 >"$BUILD_EXIT_CODE_FILE"; exit 0`, Success, "", 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			h.on("build_script", c.snippet)
			res := h.mustRun(Options{})
			want(t, res, c.status, c.reason, c.code)
			if !strings.Contains(res.Message, c.message) {
				t.Errorf("message %q lacks %q", res.Message, c.message)
			}
			h.wantStages(plainStages)
			switch {
			case c.status == Success:
			case c.reason == reasonSystem:
				h.wantInLog("ERROR: Job failed (system failure): " + res.Message)
			default:
				h.wantInLog("ERROR: Job failed: " + res.Message)
			}
		})
	}
}

// TestPrepareAttempts has a case for each kind of end of config and prepare.
func TestPrepareAttempts(t *testing.T) {
	three := func(s string) string { return strings.TrimSpace(strings.Repeat(s+" ", 3)) }
	for name, c := range map[string]struct {
		stage, snippet string
		stages         string
		status         Status
		reason         string
		code           int
		message        string
		pauses         int
	}{
		"config build failure":   {"config", `exit 1`, "config cleanup", Failed, reasonScript, 1, "exit status 1", 0},
		"config system failure":  {"config", `exit 2`, three("config cleanup"), Failed, reasonSystem, 0, "exit status 2", 3},
		"config bad JSON":        {"config", `echo '{"a":'`, three("config cleanup"), Failed, reasonSystem, 0, "error while parsing JSON output", 3},
		"config trailing text":   {"config", `echo '{} x'`, three("config cleanup"), Failed, reasonSystem, 0, "error while parsing JSON output", 3},
		"config number in env":   {"config", `echo '{"job_env":{"A":1}}'`, three("config cleanup"), Failed, reasonSystem, 0, "error while parsing JSON output", 3},
		"config unknown shell":   {"config", `echo '{"shell":"fish"}'`, three("config cleanup"), Failed, reasonSystem, 0, "shell fish not found", 3},
		"config empty builds":    {"config", `echo '{"builds_dir":""}'`, "config cleanup", Failed, reasonScript, 0, "the builds_dir is not configured", 0},
		"prepare build failure":  {"prepare", `echo 3 >"$BUILD_EXIT_CODE_FILE"; exit 1`, "config prepare cleanup", Failed, reasonScript, 3, "exit status 3", 0},
		"prepare system failure": {"prepare", `exit 2`, three("config prepare cleanup"), Failed, reasonSystem, 0, "exit status 2", 3},
		"prepare unknown code":   {"prepare", `exit 9`, three("config prepare cleanup"), Failed, reasonSystem, 0, "exit code 9", 3},
		"prepare unparsable":     {"prepare", `echo x >"$BUILD_EXIT_CODE_FILE"; exit 1`, three("config prepare cleanup"), Failed, reasonSystem, 0, "exit code 2", 3},
		"prepare killed":         {"prepare", `kill -KILL $$`, three("config prepare cleanup"), Failed, reasonSystem, 0, "signal: killed", 3},
		"prepare second time": {
			"prepare", `test -e "$DIR/once" && exit 0; : >"$DIR/once"; exit 2`,
			"config prepare cleanup " + plainStages, Success, "", 0, "", 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			h.on(c.stage, c.snippet)
			res := h.mustRun(Options{})
			want(t, res, c.status, c.reason, c.code)
			h.wantStages(c.stages)
			if !strings.Contains(res.Message, c.message) {
				t.Errorf("message %q lacks %q", res.Message, c.message)
			}
			if len(h.pauses) != c.pauses || c.pauses > 0 && h.pauses[0] != 3*time.Second {
				t.Errorf("pauses: %v, want %d of 3s", h.pauses, c.pauses)
			}
			dirs := map[string]bool{}
			for _, s := range h.calls() {
				dirs[s.Dir] = true
				if s.stage() == "config" && s.ExitCodeFile != "-" {
					t.Errorf("a new attempt finds an exit code: %q", s.ExitCodeFile)
				}
			}
			if len(dirs) != res.Attempts {
				t.Errorf("%d temporary folders in %d attempts", len(dirs), res.Attempts)
			}
			if c.pauses > 0 {
				h.wantInLog("ERROR: Preparation failed: ", "Will be retried in 3s ...")
			}
		})
	}
}

func TestDriverThatCannotStartIsTriedThreeTimes(t *testing.T) {
	h := newHarness(t)
	h.runner.Custom.PrepareExec = h.dir + "/nothing-there"
	res := h.mustRun(Options{})
	want(t, res, Failed, reasonSystem, 0)
	h.wantStages("config cleanup config cleanup config cleanup")
	h.wantInLog("failed to start command: ")
}

func TestTooLargeVariableStopsEveryCall(t *testing.T) {
	h := newHarness(t)
	h.job.Variables = job.Variables{{Key: "BIG", Value: strings.Repeat("x", 140_000)}}
	res := h.mustRun(Options{})
	want(t, res, Failed, reasonSystem, 0)
	h.wantStages("")
	h.wantInLog("argument list too long", "Cleanup script failed: failed to start command")
}

func TestMissingRunExec(t *testing.T) {
	h := newHarness(t)
	h.runner.Custom.RunExec = ""
	res := h.mustRun(Options{})
	want(t, res, Failed, reasonScript, 0)
	h.wantStages("")
	h.wantInLog("custom executor is missing RunExec")
}

func TestOptionalCallsAreLeftOut(t *testing.T) {
	h := newHarness(t)
	h.runner.Custom.ConfigExec, h.runner.Custom.PrepareExec, h.runner.Custom.CleanupExec = "", "", ""
	want(t, h.mustRun(Options{}), Success, "", 0)
	h.wantStages("prepare_script get_sources build_script cleanup_file_variables")
}

func TestConfigOverridesFolders(t *testing.T) {
	h := newHarness(t)
	h.job.Image = job.Image{Name: "alpine:$TAG"}
	h.job.Variables = job.Variables{{Key: "TAG", Value: "3"}, {Key: "F", Value: "content", File: true}, {Key: "REF", Value: "see $F"}}
	h.on("config", `echo '{"builds_dir":"/b","cache_dir":"/c","builds_dir_is_shared":true,"unknown":1,"job_env":{"CUSTOM_ENV_TAG":"lost"}}'`)
	want(t, h.mustRun(Options{}), Success, "", 0)
	calls := h.calls()
	for i, expected := range []map[string]string{
		{"CI_BUILDS_DIR": "", "CI_PROJECT_DIR": "", "RUNNER_TEMP_PROJECT_DIR": ".tmp", "REF": "see .tmp/F"},
		{"CI_BUILDS_DIR": "/b", "CI_PROJECT_DIR": "/b/fakerunne/0/root/demo", "RUNNER_TEMP_PROJECT_DIR": "/b/fakerunne/0/root/demo.tmp",
			"REF": "see /b/fakerunne/0/root/demo.tmp/F", "F": "content", "CI_JOB_IMAGE": "alpine:3", "TAG": "3"},
	} {
		for key, value := range expected {
			if got := calls[i].value(EnvPrefix + key); got != value {
				t.Errorf("%s: %s = %q, want %q", calls[i].stage(), key, got, value)
			}
		}
	}
}

func TestStageOrderOfAFullJob(t *testing.T) {
	h := newHarness(t)
	h.job.Steps = []job.Step{
		{Name: "script", Script: []string{"true"}},
		{Name: "Release", Script: []string{"true"}},
		{Name: "after_script", Script: []string{"true"}},
	}
	h.job.Cache = []job.Cache{{Key: "k", Paths: []string{"c"}, When: job.WhenAlways}}
	h.job.Artifacts = []job.Artifact{{Paths: []string{"a"}, When: job.WhenAlways}}
	h.job.Dependencies = []job.Dependency{{ID: 1, ArtifactsFile: job.ArtifactsFile{Filename: "a.zip"}}}
	before := "config prepare prepare_script get_sources restore_cache download_artifacts "
	for name, c := range map[string]struct {
		failing, snippet, stages string
		status                   Status
	}{
		"passes":               {"", "", before + "build_script step_release after_script archive_cache upload_artifacts_on_success cleanup_file_variables cleanup", Success},
		"script fails":         {"build_script", "exit 1", before + "build_script after_script archive_cache_on_failure upload_artifacts_on_failure cleanup_file_variables cleanup", Failed},
		"script fails hard":    {"build_script", "exit 2", before + "build_script after_script archive_cache_on_failure upload_artifacts_on_failure cleanup_file_variables cleanup", Failed},
		"second step fails":    {"step_release", "exit 1", before + "build_script step_release after_script archive_cache_on_failure upload_artifacts_on_failure cleanup_file_variables cleanup", Failed},
		"prepare_script fails": {"prepare_script", "exit 1", "config prepare prepare_script cleanup", Failed},
		"get_sources fails":    {"get_sources", "exit 1", "config prepare prepare_script get_sources archive_cache_on_failure upload_artifacts_on_failure cleanup_file_variables cleanup", Failed},
		"download fails":       {"download_artifacts", "exit 1", before + "archive_cache_on_failure upload_artifacts_on_failure cleanup_file_variables cleanup", Failed},
		"after_script fails":   {"after_script", "exit 1", before + "build_script step_release after_script archive_cache upload_artifacts_on_success cleanup_file_variables cleanup", Success},
		"cache fails":          {"archive_cache", "exit 1", before + "build_script step_release after_script archive_cache upload_artifacts_on_success cleanup_file_variables cleanup", Failed},
		"upload fails":         {"upload_artifacts_on_success", "exit 1", before + "build_script step_release after_script archive_cache upload_artifacts_on_success cleanup_file_variables cleanup", Failed},
		"last stage fails":     {"cleanup_file_variables", "exit 2", before + "build_script step_release after_script archive_cache upload_artifacts_on_success cleanup_file_variables cleanup", Success},
	} {
		t.Run(name, func(t *testing.T) {
			h2 := newHarness(t)
			h2.job = h.job
			if c.failing != "" {
				h2.on(c.failing, c.snippet)
			}
			res := h2.mustRun(Options{})
			if res.Status != c.status {
				t.Errorf("status %s, want %s (%s)", res.Status, c.status, res.Message)
			}
			h2.wantStages(c.stages)
			for _, s := range h2.calls() {
				later := strings.Contains("after_script archive_cache archive_cache_on_failure upload_artifacts_on_failure cleanup_file_variables", s.stage())
				status := s.value(EnvPrefix + "CI_JOB_STATUS")
				if scripted := strings.Contains(c.stages, "after_script"); !later && status != "running" && s.stage() != "cleanup" && s.stage() != "upload_artifacts_on_success" ||
					later && scripted && status == "running" {
					t.Errorf("%s: CI_JOB_STATUS is %s", s.stage(), status)
				}
			}
		})
	}
}

func TestAfterScriptErrorsCountWhenAsked(t *testing.T) {
	h := newHarness(t)
	h.job.Steps = append(h.job.Steps, job.Step{Name: "after_script", Script: []string{"x"}})
	h.job.Variables = job.Variables{{Key: "AFTER_SCRIPT_IGNORE_ERRORS", Value: "false"}}
	h.on("after_script", `echo 9 >"$BUILD_EXIT_CODE_FILE"; exit 1`)
	want(t, h.mustRun(Options{}), Failed, reasonScript, 9)
}

func TestExitCodeFileIsNeverReset(t *testing.T) {
	h := newHarness(t)
	h.job.Steps = append(h.job.Steps, job.Step{Name: "after_script", Script: []string{"x"}})
	h.job.Artifacts = []job.Artifact{{Paths: []string{"a"}}}
	h.on("after_script", `echo 9 >"$BUILD_EXIT_CODE_FILE"; exit 1`)
	h.on("upload_artifacts_on_success", `exit 1`)
	want(t, h.mustRun(Options{}), Failed, reasonScript, 9)
}

func TestGetSourcesAttempts(t *testing.T) {
	h := newHarness(t)
	h.job.Variables = job.Variables{{Key: "GET_SOURCES_ATTEMPTS", Value: "3"}}
	h.on("get_sources", `exit 1`)
	want(t, h.mustRun(Options{}), Failed, reasonScript, 1)
	h.wantStages("config prepare prepare_script get_sources clear_worktree get_sources get_sources cleanup_file_variables cleanup")
	if diff := cmp.Diff([]time.Duration{5 * time.Second, 10 * time.Second}, h.pauses); diff != "" {
		t.Errorf("pauses (-want +got):\n%s", diff)
	}
}

func TestCleanupOutputStaysOutOfTheJobLog(t *testing.T) {
	h := newHarness(t)
	var log strings.Builder
	h.config.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	h.on("cleanup", `echo to stdout; echo to stderr >&2; exit 3`)
	want(t, h.mustRun(Options{}), Success, "", 0)
	if strings.Contains(h.log.String(), "to std") {
		t.Errorf("cleanup's output is in the job log:\n%s", h.log.String())
	}
	h.wantInLog("WARNING: Cleanup script failed: unknown Custom executor executable exit code 3")
	for _, part := range []string{
		`level=DEBUG msg="to stdout" job=7 cleanup_std=out`, `level=WARN msg="to stderr" job=7 cleanup_std=err`,
	} {
		if !strings.Contains(log.String(), part) {
			t.Errorf("the runner's log lacks %q:\n%s", part, log.String())
		}
	}
}

func TestSecretsAreMasked(t *testing.T) {
	h := newHarness(t)
	h.job.Variables = job.Variables{{Key: "P", Value: "pass"}, {Key: "S", Value: "$P-word", Masked: true}}
	h.on("config", `echo "config pass-word" >&2`)
	h.on("build_script", `echo "is pass-word"`)
	h.mustRun(Options{})
	if strings.Contains(h.log.String(), "pass-word") {
		t.Errorf("a masked value is in the log:\n%s", h.log.String())
	}
	h.wantInLog("config [MASKED]", "is [MASKED]")
}

func TestResponseFileIsTheJob(t *testing.T) {
	h := newHarness(t)
	h.job.Image = job.Image{Name: "alpine:$TAG"}
	h.job.Variables = job.Variables{{Key: "TAG", Value: "3"}}
	h.on("config", `cp "$JOB_RESPONSE_FILE" "$DIR/response"`)
	h.mustRun(Options{})
	var got job.Job
	if err := json.Unmarshal([]byte(h.file("response")), &got); err != nil {
		t.Fatal(err)
	}
	wanted := *h.job
	wanted.Image.Name = "alpine:3"
	if diff := cmp.Diff(wanted, got); diff != "" {
		t.Errorf("response.json (-want +got):\n%s", diff)
	}
	if h.job.Image.Name != "alpine:$TAG" {
		t.Errorf("the caller's job was changed: image %q", h.job.Image.Name)
	}
}
