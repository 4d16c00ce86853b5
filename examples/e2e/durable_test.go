//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/socialweb-computer/tenant-executor/examples/localrunner/runner"
	"github.com/socialweb-computer/tenant-executor/examples/testbed"
)

// ticking is a script that counts aloud until its gate opens, writes a lot, and
// ends with 3.
func ticking(gate string) string {
	return `n=0; until timeout 1 wget -q -O /dev/null ` + bed.GateURL(gate) + ` 2>/dev/null; do echo tick $n; n=$((n+1)); usleep 10000; done
seq 1 50000
echo end $n; exit 3`
}

// wantTicks checks that the log of a ticking script is whole: nothing missing,
// nothing twice, in order.
func wantTicks(t *testing.T, log string) {
	t.Helper()
	next := 0
	for _, match := range regexp.MustCompile(`(?m)^tick (\d+)$`).FindAllStringSubmatch(log, -1) {
		if match[1] != strconv.Itoa(next) {
			t.Fatalf("tick %s where %d was to come", match[1], next)
		}
		next++
	}
	var numbers strings.Builder
	for i := 1; i <= 50000; i++ {
		fmt.Fprintln(&numbers, i)
	}
	if want := fmt.Sprintf("%send %d\n", &numbers, next); !strings.Contains(log, want) {
		t.Errorf("after %d ticks the log does not end as the script did", next)
	}
	if next < 3 {
		t.Errorf("only %d ticks: the script hardly ran during the fault", next)
	}
}

// A lost connection costs nothing: whatever breaks between the driver and the
// script, the log is whole and the exit code is the script's.
func TestConnectionLossCostsNothing(t *testing.T) {
	const cut = "link down for a while"
	for _, fault := range []struct {
		name string
		do   func(t *testing.T, node string)
	}{
		{"apiserver killed and restarted", func(t *testing.T, _ string) {
			localtenant(t, "apiserver", "kill")
			localtenant(t, "apiserver", "start", "--port", "same")
		}},
		{"kubelet restarted", func(t *testing.T, node string) { localtenant(t, "node", "restart-kubelet", node) }},
		{"containerd restarted", func(t *testing.T, node string) { localtenant(t, "node", "restart-containerd", node) }},
		{cut, func(t *testing.T, node string) {
			localtenant(t, "node", "cut", node)
			// Longer than it takes the node to become NotReady; the configuration
			// gives it a minute before it counts as lost.
			waitWhileCut(t, 20*time.Second)
			localtenant(t, "node", "mend", node)
		}},
	} {
		t.Run(fault.name, func(t *testing.T) {
			gate := safe(t.Name())
			// A silence as long as the driver waits before it tells of an outage, so
			// that it tells of the silence.
			config, err := bed.WriteConfig(testbed.Namespace, "silence = \"5s\"\nnode_lost = \"1m\"\n")
			if err != nil {
				t.Fatal(err)
			}
			j := task(testbed.WithoutSources(bed.Job("")), ticking(gate))
			wait := start(t, config, j, runner.Options{})
			node := nodeOf(t, gate, j.ID)
			fault.do(t, node)
			wantApiserver(t)
			bed.Open(gate)
			out := wait()
			if out.Status != runner.Failed || out.FailureReason != "script_failure" || out.ExitCode != 3 {
				t.Errorf("ended with %s, %s, exit code %d: %s; want the script's 3", out.Status, out.FailureReason, out.ExitCode, out.Message)
			}
			wantTicks(t, out.Log)
			if fault.name == cut {
				recorded(t, "Reconnect", out, aside(),
					varying{regexp.MustCompile(`^tick \d+$`), 3, true}, varying{regexp.MustCompile(`^\d+$`), 50000, true}, varying{regexp.MustCompile(`^end \d+$`), 1, true})
			}
			wantNoPods(t, j.ID)
		})
	}
}

// waitWhileCut lets a fault last: this is the fault itself, not a wait for
// something.
func waitWhileCut(t *testing.T, d time.Duration) {
	t.Helper()
	<-limited(t, d).Done()
}

// kill -9 of the driver leaves the stage running; attach shows the rest and
// ends as the script does.
func TestAttachAfterTheDriverIsKilled(t *testing.T) {
	h := byHand(t, testbed.WithoutSources(bed.Job("true")))
	defer h.do("cleanup")
	if out, code := h.do("prepare"); code != 0 {
		t.Fatalf("prepare: exit code %d, output %q", code, out)
	}
	gate := safe(t.Name())
	driver := h.command("run", h.script(ticking(gate)), "build_script")
	var printed lockedOutput
	driver.Stdout = &printed
	if err := driver.Start(); err != nil {
		t.Fatal(err)
	}
	if err := testbed.Until(context.Background(), "some output", time.Minute, func(context.Context) (bool, error) {
		return strings.Count(printed.String(), "\n") > 20, nil
	}); err != nil {
		t.Fatal(err)
	}
	if err := driver.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = driver.Wait()
	attach := h.command("attach", "build_script")
	var rest, said lockedOutput
	attach.Stdout, attach.Stderr = &rest, &said
	if err := attach.Start(); err != nil {
		t.Fatal(err)
	}
	bed.Open(gate)
	err := attach.Wait()
	if attach.ProcessState.ExitCode() != 3 || !strings.Contains(said.String(), "exit code 3") {
		t.Errorf("attach: %v, said %q", err, said.String())
	}
	wantTicks(t, rest.String())
}

// A process that the script leaves behind holds neither the stage nor the job,
// and lives until the Pod goes: after_script may need it.
func TestBackgroundProcessHoldsNothing(t *testing.T) {
	j := testbed.WithoutSources(bed.Job("sleep 4100 &", "echo started"))
	testbed.AfterScript(j, "ps -o args | grep -c '[s]leep 4100'")
	out := runJob(t, j, runner.Options{})
	wantPassed(t, out)
	if !regexp.MustCompile(`(?m)^1\r?$`).MatchString(plain(out.Log)) {
		t.Error("after_script does not find the process")
	}
}

// A second TERM cuts the grace short, so that a stubborn script does not hold
// the runner.
func TestSecondSignalCutsTheGraceShort(t *testing.T) {
	h := byHand(t, testbed.WithoutSources(bed.Job("true")))
	defer h.do("cleanup")
	if out, code := h.do("prepare"); code != 0 {
		t.Fatalf("prepare: exit code %d, output %q", code, out)
	}
	config, err := os.ReadFile(bed.Config)
	if err != nil {
		t.Fatal(err)
	}
	patient := bed.Config + ".patient"
	if err := os.WriteFile(patient, []byte(strings.Replace(string(config), `cancel_grace = "1s"`, `cancel_grace = "2m"`, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(bed.Driver, "run", "--config", patient, "--job", h.jobFile, h.script("trap '' TERM; echo ready; while :; do sleep 1; done"), "build_script")
	var out lockedOutput
	cmd.Stdout = &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := testbed.Until(context.Background(), "the script", time.Minute, func(context.Context) (bool, error) {
		return strings.Contains(out.String(), "ready"), nil
	}); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	// Signals that come while one is pending merge with it, so it is sent until
	// it has an effect.
	if err := testbed.Until(context.Background(), "the driver to end before the grace of two minutes", time.Minute, func(context.Context) (bool, error) {
		select {
		case <-ended:
			return true, nil
		default:
			return false, cmd.Process.Signal(syscall.SIGTERM)
		}
	}); err != nil {
		t.Fatal(err)
	}
	if code := cmd.ProcessState.ExitCode(); code != 1 {
		t.Errorf("exit code %d, want a build failure", code)
	}
}
