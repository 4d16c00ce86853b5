package agent_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/socialweb-computer/tenant-executor/kube/stream/agent"
)

// tailRuns is how often each of these is run: once, or as often as TAIL_RUNS
// says.
func tailRuns(t *testing.T) int {
	t.Helper()
	text := os.Getenv("TAIL_RUNS")
	if text == "" {
		return 1
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// through has what a script prints go through a filter, in the words of a shell.
func through(shell, filter string) string {
	if shell == "dash" { // which has no process substitution
		return "mkfifo $TMPDIR/p.$$; { " + filter + "; } <$TMPDIR/p.$$ & exec >$TMPDIR/p.$$ 2>&1\n"
	}
	return "exec > >(" + filter + ") 2>&1\n"
}

// What filters print that are a little later than the shell is all there, however
// much it is, and however the script ends.
func TestFiltersLoseNothing(t *testing.T) {
	t.Parallel()
	for _, shell := range shells {
		for name, filter := range map[string]string{
			"tee":   "tee $TMPDIR/log",
			"sed":   "sed 's/^/12:00 /'",
			"stamp": `while read -r line; do echo "12:00 $line"; done`,
			"slow":  `while read -r line; do sleep 0.7; echo "12:00 $line"; done`,
			"two":   "sed 's/^/12:00 /' | tee $TMPDIR/log",
			"late":  `line=$(cat); sleep 0.7; echo "$line"`,
			"pipe":  "",
		} {
			for _, lines := range []int{1, 200, 100000} {
				if lines > 1 && name == "slow" || lines > 200 && (testing.Short() || name != "tee" && name != "stamp") {
					continue
				}
				t.Run(fmt.Sprintf("%s/%s/%d", shell, name, lines), func(t *testing.T) {
					t.Parallel()
					for run := range tailRuns(t) {
						for form, wrap := range forms {
							t.Run(fmt.Sprint(form, " ", run), func(t *testing.T) {
								exit := 3
								if (run+len(form))%2 == 0 {
									exit = 0
								}
								script := through(shell, filter) + fmt.Sprintf("seq 1 %d\nexit %d\n", lines, exit)
								if name == "pipe" {
									script = fmt.Sprintf("seq 1 %d | tee $TMPDIR/log &\nexit %d\n", lines, exit)
								}
								out, status := connectIn(t, shell, t.TempDir(), t.TempDir()).run("filter", wrap(script))
								if n := strings.Count(out, "\n"); n != lines || status.Exit != exit {
									t.Errorf("%d lines, want %d; status %+v, want exit code %d; the last: %q", n, lines, status, exit, out[max(len(out)-80, 0):])
								}
							})
						}
					}
				})
			}
		}
	}
}

// Of two pipes each is read to its end.
func TestFiltersLoseNothingApart(t *testing.T) {
	t.Parallel()
	for range tailRuns(t) {
		script := []byte("exec > >(tee $TMPDIR/out) 2> >(tee $TMPDIR/err >&2)\nseq 1 200; seq 1 300 >&2\nexit 3\n")
		r := request("apart", script)
		r.Apart = true
		c := connectIn(t, "bash", t.TempDir(), t.TempDir())
		c.open(r, script, 0)
		c.begun()
		lines := map[agent.Kind]int{}
		for f := c.next(); f.Kind != agent.KindEnd; f = c.next() {
			lines[f.Kind] += strings.Count(string(f.Payload), "\n")
		}
		if lines[agent.KindData] != 200 || lines[agent.KindErrors] != 300 {
			t.Errorf("%d and %d lines, want 200 and 300", lines[agent.KindData], lines[agent.KindErrors])
		}
	}
}

// A process that is left behind does not hold the stage, whether it is silent or
// writes on and on.
func TestWritersThatStayDoNotHoldTheStage(t *testing.T) {
	t.Parallel()
	for name, begin := range map[string]string{
		"silent":        "sleep 600 &",
		"behind a tee":  "sleep 600 | tee $TMPDIR/log &",
		"ended input":   "{ cat; sleep 600; } <$TMPDIR/empty &",
		"without end":   "yes &",
		"now and then":  "while :; do echo x; sleep 0.3; done &",
		"through a tee": through("bash", "tee $TMPDIR/log") + "while :; do echo x; sleep 0.3; done &",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			temp := t.TempDir()
			if err := os.WriteFile(filepath.Join(temp, "empty"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			out, status := connectIn(t, "bash", t.TempDir(), temp).run("stay", begin+"\necho done\nexit 3")
			if !strings.Contains(out, "done\n") || status.Exit != 3 {
				t.Errorf("status %+v, %d bytes", status, len(out))
			}
		})
	}
}

// A stage that is stopped still shows what its traps print, in each shell and
// each form of the runner's scripts.
func TestTrapsAreSeenAtAStop(t *testing.T) {
	t.Parallel()
	for _, shell := range shells {
		for form, wrap := range forms {
			t.Run(shell+"/"+form, func(t *testing.T) {
				t.Parallel()
				script := []byte(wrap("trap 'sleep 0.2; echo in the trap; seq 1 1000; exit 1' TERM\necho ready\nwhile :; do sleep 0.1; done"))
				c := connectIn(t, shell, t.TempDir(), t.TempDir())
				c.open(request("trap", script), script, 0)
				c.begun()
				out := c.readUntil("ready\n")
				c.send(agent.Frame{Kind: agent.KindStop, Offset: 20000})
				rest, status := c.end(int64(len(out)))
				if !status.Stopped || !strings.Contains(rest, "in the trap\n") || !strings.HasSuffix(rest, "\n1000\n") {
					t.Errorf("status %+v, output after the stop %q", status, rest)
				}
			})
		}
	}
}

// The runner's scripts hold the values of the job's variables in the text of one
// command, which a shell prints whose command is killed.
func TestNoShellPrintsTheScriptAtAStop(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"waits":        "echo ready; sleep 600",
		"no trap":      "trap - TERM; echo ready; sleep 600",
		"another":      "echo ready; exec sleep 600",
		"below":        "echo ready; (sleep 600)",
		"kills itself": "trap 'kill -9 $(exec sh -c \"echo \\$PPID\")' TERM; echo ready; while :; do sleep 0.1; done",
		"ignores":      "trap '' TERM; echo ready; while :; do sleep 0.1; done",
	} {
		for form, wrap := range forms {
			if form == "as it is" {
				continue // nothing is printed but its own commands
			}
			for _, shell := range shells {
				t.Run(shell+"/"+form+"/"+name, func(t *testing.T) {
					t.Parallel()
					script := []byte(wrap("export SECRET=canary-4711\n" + script))
					c := connectIn(t, shell, t.TempDir(), t.TempDir())
					c.open(request("secret", script), script, 0)
					c.begun()
					out := c.readUntil("ready\n")
					c.send(agent.Frame{Kind: agent.KindStop, Offset: 500})
					rest, status := c.end(int64(len(out)))
					if !status.Stopped || strings.Contains(out+rest, "4711") {
						t.Errorf("status %+v, output %q", status, out+rest)
					}
				})
			}
		}
	}
}
