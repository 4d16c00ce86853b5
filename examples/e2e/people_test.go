//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/socialweb-computer/tenant-executor/examples/localrunner/job"
	"github.com/socialweb-computer/tenant-executor/examples/localrunner/runner"
	"github.com/socialweb-computer/tenant-executor/examples/testbed"
)

// onTerminal starts a command of the driver on a terminal of 99 by 33
// characters, and gives the person's end of it.
func onTerminal(t *testing.T, args ...string) (keys *os.File, seen *lockedOutput, c *exec.Cmd) {
	t.Helper()
	c = exec.CommandContext(limited(t, jobLimit), bed.Driver, args...)
	c.Env = []string{"PATH=" + os.Getenv("PATH"), "TERM=xterm"}
	keys, seen = startOnTerminal(t, c, 99, 33)
	return keys, seen, c
}

func startOnTerminal(t *testing.T, c *exec.Cmd, width, height uint16) (keys *os.File, seen *lockedOutput) {
	t.Helper()
	keys, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = keys.Close() })
	number, err := unix.IoctlGetInt(int(keys.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(keys.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	resize(t, keys, width, height)
	terminal, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer terminal.Close() //nolint:errcheck // the command has its own
	c.Stdin, c.Stdout, c.Stderr = terminal, terminal, terminal
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	seen = &lockedOutput{}
	go func() { _, _ = io.Copy(seen, keys) }()
	return keys, seen
}

func resize(t *testing.T, keys *os.File, width, height uint16) {
	t.Helper()
	if err := unix.IoctlSetWinsize(int(keys.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Col: width, Row: height}); err != nil {
		t.Fatal(err)
	}
}

// shows waits until a terminal shows a text.
func shows(t *testing.T, seen *lockedOutput, text string) {
	t.Helper()
	err := testbed.Until(limited(t, time.Minute), "the terminal shows "+strconv.Quote(text), time.Minute, func(context.Context) (bool, error) {
		return strings.Contains(seen.String(), text), nil
	})
	if err != nil {
		t.Fatalf("%v:\n%s", err, seen)
	}
}

func press(t *testing.T, keys *os.File, text string) {
	t.Helper()
	if _, err := io.WriteString(keys, text); err != nil {
		t.Fatal(err)
	}
}

// asks runs a command for a person, without a job file.
func asks(t *testing.T, config string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	c := exec.CommandContext(limited(t, jobLimit), bed.Driver, args...)
	c.Env = []string{"PATH=" + os.Getenv("PATH"), "TENANT_EXECUTOR_CONFIG=" + config}
	var out, errs strings.Builder
	c.Stdout, c.Stderr = &out, &errs
	if err := c.Run(); err != nil && c.ProcessState == nil {
		t.Fatal(err)
	}
	return out.String(), errs.String(), c.ProcessState.ExitCode()
}

// A job that runs, seen by a person.
func TestPeopleLookAtAJob(t *testing.T) {
	j := testbed.WithoutSources(bed.Job("echo begun", bed.Gate("people"), "seq 1 100000"))
	id := strconv.FormatInt(j.ID, 10)
	ended := make(chan testbed.Outcome, 1)
	go func() {
		o, err := bed.Run(limited(t, jobLimit), j, runner.Options{})
		if err != nil {
			t.Error(err)
		}
		ended <- o
	}()
	if err := bed.Arrived(limited(t, jobLimit), "people"); err != nil {
		t.Fatal(err)
	}

	table, _, code := asks(t, bed.Config, "ps", id, "--output", "wide")
	t.Logf("ps:\n%s", table)
	if code != 0 || !strings.Contains(table, "running") || !strings.Contains(table, "build_script (") || !strings.Contains(table, "localtenant") && !strings.Contains(table, "ready") {
		t.Errorf("ps: exit code %d", code)
	}
	if out, says, code := asks(t, bed.Config, "logs", id); code != 0 || !strings.Contains(out, "begun\n") || !strings.Contains(says, "goes on") {
		t.Errorf("logs: exit code %d, %q, %q", code, out, says)
	}
	events, says, code := asks(t, bed.Config, "events", id)
	t.Logf("events:\n%s%s", events, says)
	for _, part := range []string{"Scheduled", "Started", "Pod/job-" + id, "Node/"} {
		if !strings.Contains(events, part) || code != 0 || says != "" {
			t.Errorf("events: exit code %d, no %s", code, part)
		}
	}
	if offered, _, _ := asks(t, bed.Config, "__complete", "logs", id, "b"); !strings.HasPrefix(offered, "build_script\tbuild, running\n") {
		t.Errorf("completion offers %q", offered)
	}
	if out, _, code := asks(t, bed.Config, "shell", id, "--container", "helper", "--", "sh", "-c", "cat /etc/os-release; exit 5"); code != 5 || !strings.Contains(out, "Debian") {
		t.Errorf("a command: exit code %d, %q", code, out)
	}

	keys, seen, c := onTerminal(t, "shell", id, "--config", bed.Config)
	press(t, keys, "stty size; tty; pwd; echo $TERM\n")
	shows(t, seen, "33 99\r\n/dev/pts/0\r\n/builds/"+testbed.Project+"\r\nxterm\r\n")
	resize(t, keys, 120, 40)
	press(t, keys, "sleep 1; stty size\n")
	shows(t, seen, "40 120\r\n")
	press(t, keys, "echo sleep''ing; sleep 1000\n")
	shows(t, seen, "sleeping\r\n")
	press(t, keys, "\x03")
	press(t, keys, "exit 7\n")
	if _ = c.Wait(); c.ProcessState.ExitCode() != 7 {
		t.Errorf("the shell ended with %d:\n%s", c.ProcessState.ExitCode(), seen)
	}

	_, seen, c = onTerminal(t, "logs", id, "build", "--follow", "--config", bed.Config)
	shows(t, seen, "begun\r\n")
	bed.Open("people")
	o := <-ended
	if !strings.Contains(o.Log, "\n100000\n") || o.Status != runner.Success {
		t.Errorf("the job's log is not whole: %s", o.Message)
	}
	if err := c.Wait(); err != nil {
		t.Errorf("logs --follow: %v", err)
	}
}

// What render shows, the cluster takes.
func TestClusterTakesWhatRenderShows(t *testing.T) {
	j := bed.Job("true")
	h := byHand(t, j)
	out, code := h.do("render", "--output", "json")
	if code != 0 {
		t.Fatalf("render: exit code %d, %s", code, out)
	}
	var list struct{ Items []corev1.Pod }
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		t.Fatal(err)
	}
	p := &list.Items[len(list.Items)-1]
	made, err := admin(t).Pods(p.Namespace).Create(limited(t, time.Minute), p, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil || made.Labels[driverDomain+"job-id"] != strconv.FormatInt(j.ID, 10) {
		t.Errorf("%v\n%s", err, out)
	}
}

// The Pod of a failed job stays for a look, and ends when its time is over
// although nobody runs the driver again.
func TestFailedJobStaysForALook(t *testing.T) {
	config, err := bed.WriteConfig(testbed.Namespace, "[debug]\nhold = \"25s\"\n")
	if err != nil {
		t.Fatal(err)
	}
	j := testbed.WithoutSources(bed.Job("echo trace >/builds/trace", "exit 3"))
	j.Variables = append(j.Variables, job.Variable{Key: "TENANT_EXECUTOR_DEBUG_HOLD", Value: "true", Public: true})
	id := strconv.FormatInt(j.ID, 10)
	o, err := bed.RunWith(limited(t, jobLimit), config, j, runner.Options{})
	if err != nil || !strings.Contains(o.Log, "The Pod of this job stays for up to 25 s after the job, for a look: tenant-executor shell "+id) {
		t.Fatalf("%v\n%s", err, o.Log)
	}
	kept := time.Now()
	table, _, _ := asks(t, config, "ps", id)
	t.Logf("ps:\n%s", table)
	if !strings.Contains(table, "held") || !strings.Contains(table, "its end in ") {
		t.Errorf("ps does not show that the Pod is kept")
	}
	keys, seen, c := onTerminal(t, "shell", id, "--config", config)
	shows(t, seen, "This Pod of a failed job is kept until ")
	press(t, keys, "cat /builds/trace\n")
	shows(t, seen, "\r\ntrace\r\n")
	_ = c.Wait()
	shows(t, seen, "the time for which the job's Pod")
	if n := strings.Count(seen.String(), "is kept until"); n != 2 {
		t.Errorf("the end was announced %d times, want 2", n)
	}
	t.Logf("the shell ended with %d, %s after the job:\n%s", c.ProcessState.ExitCode(), time.Since(kept).Round(time.Second), seen)
	if c.ProcessState.ExitCode() == 0 || time.Since(kept) > time.Minute {
		t.Error("the shell has not ended with the Pod")
	}
	err = testbed.Until(limited(t, time.Minute), "the Pod has ended", time.Minute, func(ctx context.Context) (bool, error) {
		list, err := admin(t).Pods(testbed.Namespace).List(ctx, metav1.ListOptions{LabelSelector: driverDomain + "job-id=" + id})
		return err == nil && (len(list.Items) == 0 || list.Items[0].Status.Phase == corev1.PodFailed), err
	})
	if err != nil {
		t.Error(err)
	}
	// The next job takes what is left of it away.
	if o, err := bed.RunWith(limited(t, jobLimit), config, testbed.WithoutSources(bed.Job("true")), runner.Options{}); err != nil || o.Status != runner.Success {
		t.Errorf("%v %s", err, o.Message)
	}
	if left := podsOf(t, ""); strings.Contains(jobsOf(left), id) {
		t.Errorf("left: %s", jobsOf(left))
	}
}
