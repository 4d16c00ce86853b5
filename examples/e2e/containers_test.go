//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/socialweb-computer/tenant-executor/examples/localrunner/job"
	"github.com/socialweb-computer/tenant-executor/examples/localrunner/runner"
	"github.com/socialweb-computer/tenant-executor/examples/testbed"
)

// The services of a job that runs, seen by a person: what they say, and from
// inside.
func TestPeopleLookAtServices(t *testing.T) {
	const lines = 100
	gate := safe(t.Name())
	j := served("busybox", []job.Image{
		service("redis", "cache redis-seven", "HEALTHCHECK_TCP_PORT=6379"),
		service("service-probe", "probe", fmt.Sprintf("PROBE_LINES=%d", lines), "PROBE_LINE_EVERY=10ms", "HEALTHCHECK_TCP_PORT=8080"),
		service("service-probe", "dying", "PROBE_PORT=0", "PROBE_DIE_AFTER=0s", "PROBE_EXIT_CODE=7"),
	}, "echo begun", bed.Gate(gate))
	id := strconv.FormatInt(j.ID, 10)
	defer bed.Open(gate)
	wait := start(t, bed.Config, j, runner.Options{})
	if err := bed.Arrived(limited(t, jobLimit), gate); err != nil {
		t.Fatal(err)
	}

	type printed struct{ out, says string }
	follow := make(chan printed, 1)
	go func() {
		out, says, _ := asks(t, bed.Config, "logs", id, "--container", "probe", "--follow")
		follow <- printed{out, says}
	}()
	for name, want := range map[string]string{"cache": "Ready to accept connections", "redis-seven": "Ready to accept connections", "dying": "ends by itself with exit code 7"} {
		if out, says, code := asks(t, bed.Config, "logs", id, "-c", name); code != 0 || !strings.Contains(out, want) {
			t.Errorf("logs of %s: exit code %d, %q, %q", name, code, out, says)
		}
	}
	// The node tells the end a little later.
	if err := testbed.Until(limited(t, time.Minute), "logs to tell the end of a service", time.Minute, func(context.Context) (bool, error) {
		_, says, _ := asks(t, bed.Config, "logs", id, "-c", "dying")
		return strings.Contains(says, "Container dying has ended with exit code 7 (Error)."), nil
	}); err != nil {
		t.Error(err)
	}
	if out, _, code := asks(t, bed.Config, "logs", id, "-c", "build"); code != 0 || !strings.Contains(out, "begun\n") {
		t.Errorf("logs of build: exit code %d, %q", code, out)
	}
	if offered, _, _ := asks(t, bed.Config, "__complete", "shell", id, "-c", "r"); !strings.Contains(offered, "redis-seven\t"+bed.Image("redis")) {
		t.Errorf("completion offers %q", offered)
	}

	if out, says, code := asks(t, bed.Config, "shell", id, "-c", "redis-seven", "--", "redis-cli", "ping"); code != 0 || out != "PONG\n" {
		t.Errorf("exit code %d, %q, %q", code, out, says)
	}
	keys, seen, c := onTerminal(t, "shell", id, "-c", "cache", "--config", bed.Config)
	press(t, keys, "stty size; tty; pwd; echo $TERM\n")
	shows(t, seen, "33 99\r\n/dev/pts/0\r\n/data\r\nxterm\r\n")
	press(t, keys, "exit 7\n")
	if _ = c.Wait(); c.ProcessState.ExitCode() != 7 {
		t.Errorf("the shell ended with %d:\n%s", c.ProcessState.ExitCode(), seen)
	}
	for name, want := range map[string]string{"probe": "container probe of the job's Pod ", "dying": " has ended with exit code 7"} {
		if _, says, code := asks(t, bed.Config, "shell", id, "-c", name); code == 0 || !strings.Contains(says, want) {
			t.Errorf("shell in %s: exit code %d, %q", name, code, says)
		}
	}
	if _, says, _ := asks(t, bed.Config, "shell", id, "-c", "probe"); !strings.Contains(says, "has no shell (sh)") {
		t.Errorf("shell says %q", says)
	}
	// The end of a service is none of the job.
	if table, _, _ := asks(t, bed.Config, "ps", id); !strings.Contains(table, "running") {
		t.Errorf("ps:\n%s", table)
	}
	if out, _, code := asks(t, bed.Config, "shell", id, "--", "echo", "on"); code != 0 || out != "on\n" {
		t.Errorf("shell in the job's container: exit code %d, %q", code, out)
	}

	bed.Open(gate)
	wantPassed(t, wait())
	select {
	case got := <-follow:
		for n := range lines {
			if line := fmt.Sprintf("line %d of %d\n", n+1, lines); strings.Count(got.out, line) != 1 {
				t.Errorf("%q is %d times in the log", line, strings.Count(got.out, line))
			}
		}
		if !strings.Contains(got.says, "ontainer probe") {
			t.Errorf("logs --follow says %q", got.says)
		}
	case <-time.After(time.Minute):
		t.Error("logs --follow does not end with the job")
	}
}
