package script

import (
	"fmt"
	"path"
	"strings"

	"github.com/socialweb-computer/tenant-executor/examples/localrunner/build"
	"github.com/socialweb-computer/tenant-executor/examples/localrunner/job"
)

// Colours as GitLab Runner uses them (helpers/ansi_colors.go).
const (
	green  = "\x1b[32;1m"
	yellow = "\x1b[0;33m"
	reset  = "\x1b[0;m"
)

// helper is the program that moves artifacts and caches. A custom executor
// looks it up on PATH inside the job's environment, by this name.
const helper = "gitlab-runner"

// Names of files in the folder of file variables.
const (
	envFile       = "gitlab_runner_env"
	cacheEnvFile  = "gitlab_runner_cache_env"
	gitConfigFile = ".gitlab-runner.ext.conf"
	gitTemplate   = "git-template"
)

// writer collects the lines of one stage.
type writer struct {
	b      *build.Build
	quote  func(string) string
	body   strings.Builder
	indent int
}

func newWriter(b *build.Build) *writer {
	w := &writer{b: b, quote: quote}
	if b.Flag(build.FlagPosixEscapes) {
		w.quote = quotePosix
	}
	return w
}

// text puts the shell code around the stage that GitLab Runner puts there: a
// TERM trap in both shells, so that a stopped script exits instead of dying
// by the signal; errexit, pipefail where the shell has it; and one subshell,
// without input, that evaluates the whole stage as a single string.
func (w *writer) text() string {
	var s strings.Builder
	fmt.Fprintf(&s, "#!/usr/bin/env %s\n\ntrap 'exit 1' TERM\n", w.b.Shell())
	if w.b.DebugTrace() {
		s.WriteString("set -o xtrace\n")
	}
	s.WriteString("if (set -o pipefail) 2>/dev/null; then set -o pipefail; fi\n")
	s.WriteString("set -o errexit\nset +o noclobber\n")
	if w.b.Flag(build.FlagLegacyEval) {
		fmt.Fprintf(&s, ": | eval %s\n", w.quote(w.body.String()))
	} else {
		fmt.Fprintf(&s, "(trap 'exit 1' TERM; eval %s) </dev/null\n", w.quote(w.body.String()))
	}
	s.WriteString("exit 0\n")
	return s.String()
}

func (w *writer) line(text string) {
	w.body.WriteString(strings.Repeat("  ", w.indent))
	w.body.WriteString(text)
	w.body.WriteByte('\n')
}

func (w *writer) linef(format string, args ...any) {
	w.line(fmt.Sprintf(format, args...))
}

// words quotes a command and its arguments.
func (w *writer) words(args ...string) string {
	quoted := make([]string, len(args))
	for i, a := range args {
		quoted[i] = w.quote(a)
	}
	return strings.Join(quoted, " ")
}

// run writes one command.
func (w *writer) run(args ...string) {
	w.line(w.words(args...))
	w.checkExitCode()
}

// checkExitCode helps where errexit is not in force.
func (w *writer) checkExitCode() {
	if w.b.Flag(build.FlagExitCodeCheck) {
		w.line("_status=$?; [ $_status -eq 0 ] || exit $_status")
	}
}

func (w *writer) ifThen(condition string, then func()) {
	w.ifElse(condition, then, nil)
}

func (w *writer) ifElse(condition string, then, otherwise func()) {
	w.linef("if %s; then", condition)
	w.indent++
	then()
	w.indent--
	if otherwise != nil {
		w.line("else")
		w.indent++
		otherwise()
		w.indent--
	}
	w.line("fi")
}

// withHelper runs then when the helper program is there. When it is not, the
// stage warns and goes on, as in GitLab Runner (shells/abstract.go,
// guardRunnerCommand): artifacts and caches are lost without an error.
func (w *writer) withHelper(action string, then func()) {
	w.ifElse(w.words(helper, "--version")+" >/dev/null 2>&1", then, func() {
		w.warnf("Missing %s. %s is disabled.", helper, action)
	})
}

func (w *writer) noticef(format string, args ...any) {
	w.line("echo " + w.quote(green+fmt.Sprintf(format, args...)+reset))
}

func (w *writer) warnf(format string, args ...any) {
	w.line("echo " + w.quote(yellow+fmt.Sprintf(format, args...)+reset))
}

// commands writes a user's commands, each after a green line that shows it.
func (w *writer) commands(commands ...string) {
	for _, c := range commands {
		c = strings.TrimSpace(c)
		first, _, multiline := strings.Cut(c, "\n")
		switch {
		case c == "":
			w.line("echo")
			continue
		case multiline:
			w.noticef("$ %s # collapsed multi-line command", first)
		default:
			w.noticef("$ %s", c)
		}
		// Not indented: a here-document must stay as it is.
		w.body.WriteString(c + "\n")
		w.checkExitCode()
	}
}

// temp is the path of a file in the folder of file variables.
func (w *writer) temp(name string) string {
	return path.Join(w.b.TempDir(), name)
}

// removeDir deletes a folder, also one with parts that are not writable.
func (w *writer) removeDir(dir string) {
	w.ifThen("[ -d "+w.quote(dir)+" ]", func() {
		w.run("chmod", "-R", "u+rwX", dir)
	})
	w.run("rm", "-r", "-f", dir)
}

func (w *writer) removeFile(file string) {
	w.run("rm", "-f", file)
}

func (w *writer) export(key, value string) {
	w.linef("export %s=%s", w.quote(key), w.quote(value))
}

// exports writes all variables of the job, secrets too: a stage script needs
// nothing from its surroundings. With files, the content of file variables is
// written as well.
func (w *writer) exports(files bool) {
	w.run("mkdir", "-p", w.b.TempDir())
	for _, v := range w.b.Variables() {
		if !v.File {
			w.export(v.Key, v.Value)
			continue
		}
		if files {
			w.linef("printf '%%s' %s >%s", w.quote(v.Value), w.quote(w.temp(v.Key)))
		}
		w.export(v.Key, w.temp(v.Key))
	}
	w.export("GITLAB_ENV", w.temp(envFile))
	w.run("touch", w.temp(envFile))
	w.linef(`while read -r line; do export "$line"; done <%s`, w.quote(w.temp(envFile)))
}

// enter begins a stage that works in the project folder.
func (w *writer) enter() {
	w.exports(true)
	w.run("cd", w.b.ProjectDir())
}

// fileVariables are the keys of all file variables.
func (w *writer) fileVariables() []string {
	var keys []string
	for _, v := range w.b.Variables() {
		if v.File {
			keys = append(keys, v.Key)
		}
	}
	return keys
}

func (w *writer) hook(name string) []string {
	return w.b.Job.HookScript(name)
}

func step(b *build.Build, stage string) *job.Step {
	for i, s := range b.Job.Steps {
		if StepStage(s.Name) == stage {
			return &b.Job.Steps[i]
		}
	}
	return nil
}
