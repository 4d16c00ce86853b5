package main_test

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/socialweb-computer/tenant-executor/kube/faultserver"
)

// A stage that tells stdout and stderr apart, over connections that are cut at
// random: the job log has all of both, each in its order, and a person sees
// the one or the other.
func TestStreamsAreToldApart(t *testing.T) {
	t.Parallel()
	const count = 20_000
	h := newHarness(t)
	h.settings["run.separate_stderr"] = "true"
	p := h.play()
	h.theJob()
	chance := rand.New(rand.NewPCG(1, 1))
	p.onLine(func(n int, l *line) {
		if n <= 20 {
			l.cutOut(chance.IntN(60<<10), faultserver.RST)
		}
	})
	got := h.run("build_script", fmt.Sprintf("i=0; while [ $i -lt %d ]; do i=$((i+1)); echo $i; echo error $i >&2; done; exit 42", count))
	if file := h.exitCodeFile(); got.code != buildCode || file != "42\n" {
		t.Errorf("exit code %d, and the runner was handed %q", got.code, file)
	}
	stdout, stderr := numbers(count), regexp.MustCompile(`(?m)^(\d)`).ReplaceAllString(numbers(count), "error $1")
	var out, errors strings.Builder
	for line := range strings.Lines(got.stdout) {
		if strings.HasPrefix(line, "error") {
			errors.WriteString(line)
		} else {
			out.WriteString(line)
		}
	}
	if out.String() != stdout || errors.String() != stderr {
		t.Errorf("the job log has %d bytes of stdout, want %d, and %d of stderr, want %d", out.Len(), len(stdout), errors.Len(), len(stderr))
	}
	if cuts := p.connections() - 1; cuts < 5 {
		t.Errorf("the connection was cut %d times", cuts)
	}

	for only, want := range map[string]string{"stdout": stdout, "stderr": stderr} {
		if got := h.stage("logs", "--only", only); got.code != 0 || got.stdout != want {
			t.Errorf("logs --only %s: exit code %d, %d bytes, want %d: %s", only, got.code, len(got.stdout), len(want), got.stderr)
		}
	}
	if got := h.stage("logs", "--only", "stderr", "--tail", "1"); got.stdout != fmt.Sprintf("error %d\n", count) {
		t.Errorf("the last line of stderr is %q", got.stdout)
	}
	if got := h.stage("logs", "--only", "both"); got.code != systemCode || !strings.Contains(got.stderr, `--only is "both": use stdout or stderr`) {
		t.Errorf("%+v", got)
	}
}

// Of a stage that keeps them together nobody is shown half.
func TestStreamsAreTogether(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.play()
	h.theJob()
	h.expect(h.run("build_script", "echo one; echo two >&2; echo three"), 0, "one\ntwo\nthree\n", "")
	got := h.stage("logs", "--only", "stderr")
	if got.code != buildCode || got.stdout != "" || !strings.Contains(got.stderr, "does not tell stdout and stderr apart: run.separate_stderr was not set when it began") {
		t.Errorf("%+v", got)
	}
}
