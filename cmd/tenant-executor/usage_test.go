package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// verbs are all commands, each with arguments that it takes.
var verbs = map[string][]string{
	"config": nil, "prepare": nil, "run": {"script", "build_script"}, "cleanup": nil,
	"ps": nil, "logs": {"4711"}, "attach": {"4711"}, "shell": {"4711"}, "release": {"4711"}, "events": {"4711"}, "render": nil,
	"reap": {"--runner", "x"}, "warm": nil, "migrate": nil, "doctor": nil, "stats": nil, "version": nil,
}

// What a person mistypes is answered by one plain sentence that says what is
// wrong and what to do, and with exit code 2.
func TestMistypedCommands(t *testing.T) {
	t.Parallel()
	type mistake struct {
		args []string
		want string
	}
	mistakes := []mistake{
		{[]string{"docter"}, `there is no command "docter"; did you mean "doctor"? tenant-executor --help lists the commands`},
		{[]string{"--config", "x", "celanup"}, `there is no command "celanup"; did you mean "cleanup"?`},
		{[]string{"stat"}, `did you mean "stats"?`},
		{[]string{"xyzzyx"}, `there is no command "xyzzyx"; tenant-executor --help lists the commands`},
		{[]string{"--confg", "x", "ps"}, "flag"},
		{[]string{"completion", "bsh"}, "bsh"},
		{[]string{"stats", "--last", "x"}, `--last is "x": write a whole number`},
		{[]string{"stats", "--last", "0"}, "--last is 0: it has to be at least 1"},
		{[]string{"stats", "--last"}, "--last needs a value: --last N"},
		{[]string{"stats", "--output", "xml"}, `--output is "xml": use table or json`},
		{[]string{"stats", "--html", "/nowhere/jobs.html"}, "the page was not written (--html): open /nowhere/"},
		{[]string{"ps", "--all-namespaces=perhaps"}, `--all-namespaces is "perhaps": write true or false`},
		{[]string{"ps", "--output", "xml"}, "xml"},
		{[]string{"ps", "-Z"}, "tenant-executor ps has no flag -Z; tenant-executor ps --help lists them"},
		{[]string{"ps", "a", "b"}, "ps takes one job at the most"},
		{[]string{"run", "script"}, "run takes a script file and a stage name"},
		{[]string{"migrate", "--config-file", "/nowhere/config.toml"}, "open /nowhere/config.toml: no such file"},
		{[]string{"doctor", "--gitlab", "gitlab.example.com"}, "write GitLab's address"},
		{[]string{"warm", "--dry-run"}, "--dry-run goes with --once"},
	}
	for verb, args := range verbs {
		mistakes = append(mistakes,
			mistake{append([]string{verb, "--nosuchflag"}, args...), "tenant-executor " + verb + " has no flag --nosuchflag"},
			mistake{append([]string{verb, "--confi=x"}, args...), "tenant-executor " + verb + ` has no flag --confi; did you mean "--config"?`},
			mistake{append(append([]string{verb}, args...), "one", "two", "three"), "three"},
		)
	}
	for _, m := range mistakes {
		t.Run(strings.Join(m.args, " "), func(t *testing.T) {
			t.Parallel()
			h := newHarness(t)
			delete(h.env, "SYSTEM_FAILURE_EXIT_CODE")
			got := h.stage(m.args...)
			if got.code != 2 || got.stdout != "" || !strings.Contains(got.stderr, m.want) {
				t.Errorf("ended with %d: %s%s\nwant %q", got.code, got.stdout, got.stderr, m.want)
			}
			if !strings.HasPrefix(got.stderr, "tenant-executor: ") || strings.Count(got.stderr, "\n") != 1 {
				t.Errorf("not one sentence: %q", got.stderr)
			}
			for _, bad := range []string{"\033", "Report it", "strconv", "pflag", "Usage:"} {
				if strings.Contains(got.stderr, bad) {
					t.Errorf("%q in %q", bad, got.stderr)
				}
			}
		})
	}
}

// A file that is not there is no fault of the driver's, and nothing of what a
// person reads through a pipe has colours.
func TestMissingFiles(t *testing.T) {
	t.Parallel()
	for verb, args := range verbs {
		if verb == "version" || verb == "migrate" || verb == "doctor" {
			continue // they read no configuration, or are about it
		}
		t.Run(verb, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t)
			h.write("script", "true")
			delete(h.env, "SYSTEM_FAILURE_EXIT_CODE")
			got := h.stage(append([]string{verb, "--config", "/nonexist.toml"}, args...)...)
			text := got.stdout + got.stderr
			if got.code != 2 || !strings.Contains(text, "open /nonexist.toml: no such file or directory") || !strings.Contains(text, "--config") || strings.Contains(text, "Report it") {
				t.Errorf("ended with %d: %s", got.code, text)
			}
			stage := verb == "config" || verb == "prepare" || verb == "run" || verb == "cleanup"
			if coloured := strings.Contains(text, "\033"); coloured != stage {
				t.Errorf("colours: %v in %q", coloured, text)
			}
		})
	}
}

// A relative --config is the file that the runner names by its whole path.
func TestDoctorTakesARelativeConfig(t *testing.T) {
	t.Parallel()
	h := examined(t)
	whole, _ := h.doctor("--config", filepath.Join(h.folder, "driver.toml"))
	relative, _ := h.doctor("--config", "driver.toml")
	for i, f := range relative {
		if i < len(whole) && f.State != whole[i].State {
			t.Errorf("%s: %s with the whole path, %+v with a relative one", f.Check, whole[i].State, f)
		}
	}
	if _, err := os.Stat(h.folder); err != nil {
		t.Fatal(err)
	}
}
