package main_test

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/socialweb-computer/tenant-executor/kube/faultserver"
)

// mostMemory is how much memory the driver may take, whatever a Pod or its node
// answers, in KiB.
const mostMemory = 64 << 10

// hostileLimit is how long a driver may take against it, with the budgets of these
// tests. It is generous: the machine may be busy.
const hostileLimit = 90 * time.Second

// step is a command that the driver runs in a Pod, and who has it run.
type step struct {
	name string
	args []string
	// is says which command it is; the ones before it are honest.
	is func(*faultserver.Exec) bool
	// agent is whether the driver's agent should answer, person whether what it
	// answers is for a person as it is.
	agent, person bool
	// fails is whether the driver has to end with a failure, and patient whether it
	// tries a command that was lost again for longer than a test may take.
	fails, patient bool
}

// preparesUser is the step in which the build container's user is asked for.
const preparesUser = "prepare, the user"

func verb(name string) func(*faultserver.Exec) bool {
	return func(e *faultserver.Exec) bool { return len(e.Args) > 1 && e.Args[1] == name }
}

func steps() []step {
	shell := func(container string) func(*faultserver.Exec) bool {
		return func(e *faultserver.Exec) bool { return e.Container == container && e.Args[0] == "sh" }
	}
	return []step{
		{name: "prepare, the setup", args: []string{"prepare"}, is: shell("helper"), fails: true},
		{name: preparesUser, args: []string{"prepare"}, is: shell("build"), fails: true},
		{name: "prepare, the services", args: []string{"prepare"}, is: verb("ports"), fails: true},
		{name: "run", args: []string{"run", "SCRIPT", "build_script"}, is: verb("front"), agent: true, fails: true},
		{name: "attach, the list", args: []string{"attach", "POD"}, is: verb("list"), fails: true, patient: true},
		{name: "attach", args: []string{"attach", "POD"}, is: verb("front"), agent: true, fails: true},
		{name: "logs, the list", args: []string{"logs", "POD"}, is: verb("list"), fails: true, patient: true},
		{name: "logs", args: []string{"logs", "POD"}, is: verb("front"), agent: true},
		{name: "ps", args: []string{"ps"}, is: verb("list")},
		{name: "shell", args: []string{"shell", "POD", "--", "true"}, is: func(e *faultserver.Exec) bool { return e.Args[0] == "true" }, person: true},
	}
}

// Whatever a program in the Pod or the kubelet of its node sends, in whichever step
// and over whichever transport: the driver ends, in time, with an exit code of the
// runner's, without a stack trace, and in little memory; and no line of its own is
// anything but that.
func TestMemoryAndEndAgainstAHostilePod(t *testing.T) {
	t.Parallel()
	withoutRaceDetector(t)
	for _, step := range steps() {
		for _, over := range []string{spdy, webSocket} {
			t.Run(step.name+" over "+over, func(t *testing.T) {
				t.Parallel()
				h := newHostileHarness(t, over)
				p := h.play()
				if step.args[0] == "prepare" {
					h.settings["wait.reach"] = "5s" // what is honest gets the time of a busy machine
				}
				switch {
				case step.name == preparesUser:
					h.env["CUSTOM_ENV_FF_DISABLE_UMASK_FOR_KUBERNETES_EXECUTOR"] = "true"
				case step.args[0] == "prepare":
					h.job["services"] = []any{map[string]any{"name": "db:1", "variables": []any{map[string]any{"key": "HEALTHCHECK_TCP_PORT", "value": "1"}}}}
				default:
					h.theJob()
					if got := h.run("build_script", "echo an honest stage"); got.code != 0 {
						t.Fatalf("the honest stage ended with %d:\n%s%s", got.code, got.stdout, got.stderr)
					}
				}
				attacks := faultserver.Attacks()
				if step.agent {
					attacks = append(attacks, faultserver.AgentAttacks()...)
				}
				for _, attack := range attacks {
					if attack.Lost && step.patient {
						continue // in the other steps it is shown to end
					}
					h.server.OnExec(func(e *faultserver.Exec) {
						if step.is(e) {
							attack.Do(e)
						} else {
							p.exec(e)
						}
					})
					h.expectToBear(step, attack.Name)
				}
			})
		}
	}
}

// The same of the answers to plain requests, which may be a node's, too.
func TestMemoryAndEndAgainstAHostileServer(t *testing.T) {
	t.Parallel()
	withoutRaceDetector(t)
	run := step{name: "run", args: []string{"run", "SCRIPT", "build_script"}, fails: true}
	for _, test := range []struct {
		step           step
		verb, resource string
		fault          faultserver.Fault
	}{
		{run, "", "pods/exec", faultserver.EndlessHead()},
		{run, "", "pods/exec", faultserver.EndlessBody(403)},
		{run, "", "pods/exec", faultserver.EndlessBody(500)},
		{step{name: "logs of a service", args: []string{"logs", "POD", "-c", "db"}}, "get", "pods/log", faultserver.EndlessBody(403)},
		{step{name: "the last lines of a service", args: []string{"logs", "POD", "-c", "db", "--tail", "5"}}, "get", "pods/log", faultserver.EndlessBody(200)},
		{step{name: "ps", args: []string{"ps"}, fails: true}, "list", "pods", faultserver.EndlessBody(403)},
		{step{name: "cleanup", args: []string{"cleanup"}}, "delete", "pods", faultserver.EndlessBody(403)},
	} {
		for _, over := range []string{spdy, webSocket} {
			t.Run(test.step.name+" over "+over, func(t *testing.T) {
				t.Parallel()
				h := newHostileHarness(t, over)
				h.play()
				h.theJob()
				h.server.Fail(-1, test.verb, test.resource, test.fault)
				h.expectToBear(test.step, "an answer without an end")
			})
		}
	}
}

// withoutRaceDetector leaves a test to the run without the race detector, which
// takes much memory and more time than the test has.
func withoutRaceDetector(t *testing.T) {
	t.Helper()
	if raceDetector {
		t.Skip("make unit runs it without the race detector")
	}
}

// newHostileHarness has short budgets.
func newHostileHarness(t *testing.T, over string) *harness {
	t.Helper()
	h := newHarness(t)
	h.settings["cluster.transport"] = over
	h.settings["wait.services"] = "3s"
	h.settings["run.outage"] = "1s"
	h.settings["run.silence"] = "3s"
	h.settings["run.cancel_grace"] = "0s"
	h.job["services"] = []any{map[string]any{"name": "db:1", "alias": "db"}}
	return h
}

// expectToBear runs the step and looks at how the driver bears what it meets.
func (h *harness) expectToBear(s step, attack string) {
	h.t.Helper()
	pods := h.server.Pods()
	values := map[string]string{"SCRIPT": h.write("script", "echo x")}
	if len(pods) > 0 {
		values["POD"] = pods[len(pods)-1].Namespace + "/" + pods[len(pods)-1].Name
	}
	args := slices.Clone(s.args)
	for i := range args {
		if value, is := values[args[i]]; is {
			args[i] = value
		}
	}
	from := time.Now()
	stage := h.start(args...)
	most, ended := watchMemory(stage.command.Process.Pid, stage.ended)
	if s.person {
		// A person has what the command says as it is, for as long as it likes.
		go func() {
			select {
			case <-time.After(5 * time.Second):
				stage.terminate()
			case <-ended:
			}
		}()
	}
	late := time.AfterFunc(hostileLimit, func() { h.t.Errorf("%s: still going after %s", attack, hostileLimit) })
	<-ended
	late.Stop()
	got := stage.wait()
	switch failed := got.code != 0; {
	case !slices.Contains([]int{0, buildCode, systemCode}, got.code), s.fails && !failed:
		h.t.Errorf("%s: exit code %d\n%.2000s%.2000s", attack, got.code, got.stdout, got.stderr)
	}
	for _, evil := range []string{"section_start:", "\x1b[2J", "\nERROR: Job succeeded"} {
		if said := got.stdout + got.stderr; !s.person && strings.Contains(said, evil) {
			h.t.Errorf("%s: %q is in the job log:\n%.2000q", attack, evil, said)
		}
	}
	h.t.Logf("%s: exit code %d after %s, %d KiB", attack, got.code, time.Since(from).Round(time.Millisecond), *most)
	if *most > mostMemory && !raceDetector {
		h.t.Errorf("%s: the driver took %d KiB, more than %d", attack, *most, mostMemory)
	}
}

// watchMemory follows the most memory that a process has had, in KiB, until it has
// ended. (What the kernel says afterwards counts in the process that started it.)
func watchMemory(pid int, end chan error) (most *int, ended chan struct{}) {
	most, ended = new(int), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case err := <-end:
				end <- err // for whoever waits for it
				return
			case <-time.After(10 * time.Millisecond):
			}
			text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
			if _, rest, found := strings.Cut(string(text), "VmHWM:"); found {
				if n, err := strconv.Atoi(strings.Fields(rest)[0]); err == nil {
					*most = max(*most, n)
				}
			}
		}
	}()
	return most, ended
}
