package owner_test

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/socialweb-computer/tenant-executor/stages/owner"
)

// The test program plays the runner, a wrapper and the driver.
const (
	roleVariable = "OWNER_TEST_ROLE"
	jobVariable  = "JOB_RESPONSE_FILE"
)

func TestMain(m *testing.M) {
	switch os.Getenv(roleVariable) {
	case "driver":
		found, err := system().Find(os.Getpid(), jobVariable, os.Getenv(jobVariable))
		if err != nil {
			fmt.Println("error:", err)
		} else {
			fmt.Println(found)
		}
		// Stays until its pipe is closed, so that the test can look at it.
		_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
		os.Exit(0)
	default:
		os.Exit(m.Run())
	}
}

func system() owner.Host { return owner.System(owner.Identify("test"), "here") }

// driver is what a driver found out that a shell started, from the line that
// it printed.
func driver(t *testing.T, script string) (found string, cmd *exec.Cmd) {
	t.Helper()
	cmd = exec.CommandContext(t.Context(), "sh", "-c", script, os.Args[0])
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), roleVariable + "=driver", "ATTEMPT=" + filepath.Join(t.TempDir(), "response.json")}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed, or has ended
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(line), cmd
}

// The runner is found behind wrappers of any depth: the shell here plays it,
// since it does not have the job in its own environment.
func TestFindTheRunner(t *testing.T) {
	for name, script := range map[string]string{
		"called at once":   `env JOB_RESPONSE_FILE="$ATTEMPT" "$0"; :`,
		"a wrapper":        `env JOB_RESPONSE_FILE="$ATTEMPT" sh -c '"$0"; :' "$0"; :`,
		"wrappers":         `env JOB_RESPONSE_FILE="$ATTEMPT" sh -c 'sh -c "\"\$0\"; :" "$0"; :' "$0"; :`,
		"an older job too": `export JOB_RESPONSE_FILE=/other; env JOB_RESPONSE_FILE="$ATTEMPT" "$0"; :`,
	} {
		t.Run(name, func(t *testing.T) {
			line, cmd := driver(t, `echo {} >"$ATTEMPT"; `+script)
			found, err := owner.Parse(line)
			if err != nil {
				t.Fatalf("%v: %s", err, line)
			}
			if found.PID != cmd.Process.Pid {
				t.Errorf("the runner is process %d, found was %d", cmd.Process.Pid, found.PID)
			}
			if found.Hostname != "here" || found.Start == 0 || !strings.HasSuffix(found.Attempt, "/response.json") {
				t.Errorf("got %+v", found)
			}
			if life := system().Life(found, time.Now(), nil); life != owner.Alive {
				t.Errorf("a runner that lives is %d", life)
			}
			kill(t, cmd)
			if life := system().Life(found, time.Now(), nil); life != owner.Gone {
				t.Errorf("a runner that was killed, and is a zombie: %d", life)
			}
			_ = cmd.Wait() // it was killed
			if life := system().Life(found, time.Now(), nil); life != owner.Gone {
				t.Errorf("a runner that was killed: %d", life)
			}
		})
	}
}

// kill kills the process and waits until it is dead, without taking its state
// away: then it is a zombie.
func kill(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", cmd.Process.Pid))
		if err != nil || strings.Contains(string(text), ") Z ") {
			return
		}
	}
}

// By hand, and where the runner has died already, there is none.
func TestFindNoRunner(t *testing.T) {
	for name, script := range map[string]string{
		"by hand": `"$0"; :`,
		// Its caller, a subshell, has ended before it may look: the pipe opens
		// after that.
		"orphaned":               `mkfifo "$ATTEMPT"; (JOB_RESPONSE_FILE="$ATTEMPT" sh -c 'read _ <"$JOB_RESPONSE_FILE"; exec "$0"' "$0" <&3 &) 3<&0; echo >"$ATTEMPT"; exec sleep 1000`,
		"a session of one's own": `JOB_RESPONSE_FILE="$ATTEMPT" setsid -w "$0"; :`,
	} {
		t.Run(name, func(t *testing.T) {
			line, _ := driver(t, script)
			if !strings.HasPrefix(line, "error: "+owner.ErrUnknown.Error()) {
				t.Errorf("got %s", line)
			}
		})
	}
	if _, err := (owner.Host{Proc: "/proc"}).Find(os.Getpid(), jobVariable, "/job"); !errors.Is(err, owner.ErrUnknown) {
		t.Errorf("on a host without a name: %v", err)
	}
}

// fakeHost is a host with one process, 812, in a /proc of the test's own.
func fakeHost(t *testing.T) (owner.Host, owner.Owner) {
	t.Helper()
	proc := t.TempDir()
	write(t, proc, "sys/kernel/random/boot_id", "boot-1\n")
	write(t, proc, "stat", "cpu 1 2 3\nbtime 1767225600\nprocesses 4\n")
	write(t, proc, "812/stat", stat("S", 5000))
	if err := errors.Join(os.MkdirAll(filepath.Join(proc, "self/ns"), 0o700), os.Symlink("pid:[4026531836]", filepath.Join(proc, "self/ns/pid"))); err != nil {
		t.Fatal(err)
	}
	attempt := filepath.Join(proc, "response.json")
	write(t, proc, "response.json", "{}")
	host := owner.Host{Proc: proc, Identity: "host-1", Hostname: "h", Signal: func(pid int, signal syscall.Signal) error {
		if _, err := os.Stat(filepath.Join(proc, fmt.Sprint(pid))); err != nil {
			return syscall.ESRCH
		}
		return nil
	}}
	return host, owner.Owner{Host: "host-1", Hostname: "h", Boot: "boot-1", Space: "pid:[4026531836]", PID: 812, Start: 5000, Attempt: attempt}
}

// stat is a /proc/PID/stat of a process whose name is made to mislead.
func stat(state string, start int) string {
	return fmt.Sprintf("812 (gitlab) Z 1 (run) %s 1 812 812 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 9 0 %d 1000 100\n", state, start)
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
}

// Only a proof makes an owner dead.
func TestLife(t *testing.T) {
	booted := time.Unix(1767225600, 0)
	for _, test := range []struct {
		name   string
		change func(proc string, host *owner.Host, o, self *owner.Owner)
		want   owner.Life
	}{
		{"it lives", func(string, *owner.Host, *owner.Owner, *owner.Owner) {}, owner.Alive},
		{"another host", func(_ string, _ *owner.Host, o, _ *owner.Owner) { o.Host, o.PID = "host-2", 999 }, owner.Unknown},
		{"a host without a name", func(_ string, h *owner.Host, o, _ *owner.Owner) { h.Identity, o.Host, o.PID = "", "", 999 }, owner.Unknown},
		{"no such process", func(_ string, _ *owner.Host, o, _ *owner.Owner) { o.PID = 999 }, owner.Gone},
		{"its number belongs to another", func(_ string, _ *owner.Host, o, _ *owner.Owner) { o.Start = 4999 }, owner.Gone},
		{"zombie", func(p string, _ *owner.Host, _, _ *owner.Owner) { write(t, p, "812/stat", stat("Z", 5000)) }, owner.Gone},
		{"it may not be looked at", func(p string, h *owner.Host, _, _ *owner.Owner) {
			h.Signal = func(int, syscall.Signal) error { return syscall.EPERM }
			_ = os.RemoveAll(filepath.Join(p, "812"))
		}, owner.Alive},
		{"a shape of /proc that is not known", func(p string, _ *owner.Host, _, _ *owner.Owner) { write(t, p, "812/stat", "812 x") }, owner.Alive},
		{"another PID namespace", func(_ string, _ *owner.Host, o, _ *owner.Owner) { o.Space, o.PID = "pid:[2]", 999 }, owner.Unknown},
		{"an earlier start of its container", func(p string, _ *owner.Host, o, _ *owner.Owner) {
			o.Space, o.Container = "pid:[2]", podUID+"/runner"
			inContainer(t, p, "runner")
		}, owner.Gone},
		{"another container of its Pod", func(p string, _ *owner.Host, o, _ *owner.Owner) {
			o.Space, o.Container = "pid:[2]", podUID+"/runner"
			inContainer(t, p, "sidecar")
		}, owner.Unknown},
		{"this start of its container", func(p string, _ *owner.Host, o, _ *owner.Owner) {
			o.Container = podUID + "/runner"
			inContainer(t, p, "runner")
		}, owner.Alive},
		{"the host was booted since", func(_ string, _ *owner.Host, o, _ *owner.Owner) { o.Boot = "boot-0" }, owner.Gone},
		{"a twin of the host", func(p string, _ *owner.Host, o, _ *owner.Owner) {
			o.Boot = "boot-0"
			write(t, p, "stat", fmt.Sprintln("btime", booted.Add(-48*time.Hour).Unix()))
		}, owner.Unknown},
		{"nothing is known of the boot", func(p string, _ *owner.Host, o, _ *owner.Owner) {
			o.PID = 999
			write(t, p, "stat", "cpu\n")
		}, owner.Unknown},
		{"the attempt is over", func(p string, _ *owner.Host, _, _ *owner.Owner) { _ = os.Remove(filepath.Join(p, "response.json")) }, owner.Over},
		{"nobody of this runner asks, who may not look", func(p string, _ *owner.Host, _, self *owner.Owner) {
			_ = os.Remove(filepath.Join(p, "response.json"))
			self.PID = 813
		}, owner.Alive},
		{"another runner asks", func(p string, _ *owner.Host, _, self *owner.Owner) {
			self.PID = 813
			_ = os.Symlink("/", filepath.Join(p, "812/root"))
		}, owner.Alive},
		{"the attempt is over, another runner asks", func(p string, _ *owner.Host, _, self *owner.Owner) {
			self.PID = 813
			_ = errors.Join(os.Remove(filepath.Join(p, "response.json")), os.Symlink("/", filepath.Join(p, "812/root")))
		}, owner.Over},
		{"another runner asks, and the owner has another /tmp", func(p string, _ *owner.Host, o, self *owner.Owner) {
			self.PID = 813
			write(t, p, "812/root/tmp/job/response.json", "{}")
			o.Attempt = "/tmp/job/response.json"
		}, owner.Alive},
		{"another runner asks, and a link of the owner leads out", func(p string, _ *owner.Host, o, self *owner.Owner) {
			self.PID = 813
			_ = errors.Join(os.MkdirAll(filepath.Join(p, "812/root"), 0o700), os.Symlink("/tmp", filepath.Join(p, "812/root/tmp")))
			o.Attempt = "/tmp/no-such-job/response.json"
		}, owner.Alive},
		{"an attempt without a whole path", func(_ string, _ *owner.Host, o, _ *owner.Owner) { o.Attempt = "response.json" }, owner.Alive},
	} {
		t.Run(test.name, func(t *testing.T) {
			host, o := fakeHost(t)
			self := o
			self.Attempt = "/another"
			test.change(host.Proc, &host, &o, &self)
			if got := host.Life(o, booted.Add(-time.Hour), &self); got != test.want {
				t.Errorf("got %d, want %d", got, test.want)
			}
		})
	}
}

const podUID = "0b5cf8a8-6f5e-4b0c-9d39-1f2d4c7a9e10"

// inContainer has /proc show what a container sees of its mounts.
func inContainer(t *testing.T, proc, name string) {
	t.Helper()
	write(t, proc, "self/mountinfo", "2201 2190 254:1 /var/lib/kubelet/pods/"+podUID+"/etc-hosts /etc/hosts rw,relatime - ext4 /dev/vda1 rw\n"+
		"2202 2190 254:1 /var/lib/kubelet/pods/"+podUID+"/containers/"+name+"/5d0f1b2c /dev/termination-log rw,relatime - ext4 /dev/vda1 rw\n")
}

func TestOwnerAsText(t *testing.T) {
	_, o := fakeHost(t)
	got, err := owner.Parse(o.String())
	if diff := cmp.Diff(o, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	for _, text := range []string{"", "x", "{}", `{"host":"h"}`, `{"host":"h","boot":"b","pidNamespace":"s","pid":0}`} {
		if _, err := owner.Parse(text); err == nil {
			t.Errorf("%q was taken for an owner", text)
		}
	}
}

func TestIdentify(t *testing.T) {
	if owner.Identify("ab", "c") == owner.Identify("a", "bc") {
		t.Error("two hosts have one name")
	}
}
