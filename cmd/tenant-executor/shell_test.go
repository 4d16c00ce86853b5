package main_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"

	"github.com/socialweb-computer/tenant-executor/kube/faultserver"
	"github.com/socialweb-computer/tenant-executor/kube/stream"
)

// seat is a terminal at which a person sits: what the person types goes in at
// one end, and a program has the other.
type seat struct {
	t        *testing.T
	keys     *os.File
	terminal *os.File
	seen     *output
	before   unix.Termios
}

func newSeat(t *testing.T) *seat {
	t.Helper()
	keys, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no terminals here: %v", err)
	}
	number, err := unix.IoctlGetInt(int(keys.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(keys.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	terminal, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	s := &seat{t: t, keys: keys, terminal: terminal, seen: newOutput()}
	s.resize(80, 24)
	s.before = s.mode()
	go func() {
		_, _ = io.Copy(s.seen, keys) // until nobody has the terminal any more
		s.seen.end()
	}()
	t.Cleanup(func() { _ = terminal.Close(); _ = keys.Close() })
	return s
}

func (s *seat) resize(width, height uint16) {
	s.t.Helper()
	if err := unix.IoctlSetWinsize(int(s.keys.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Col: width, Row: height}); err != nil {
		s.t.Fatal(err)
	}
}

func (s *seat) mode() unix.Termios {
	s.t.Helper()
	mode, err := unix.IoctlGetTermios(int(s.terminal.Fd()), unix.TCGETS)
	if err != nil {
		s.t.Fatal(err)
	}
	return *mode
}

func (s *seat) types(text string) {
	s.t.Helper()
	if _, err := io.WriteString(s.keys, text); err != nil {
		s.t.Fatal(err)
	}
}

// sit starts the program on the terminal, in a session of its own.
func (s *seat) sit(h *harness, args ...string) *exec.Cmd {
	s.t.Helper()
	h.handOver()
	c := exec.Command(os.Getenv(builtPath), args...)
	c.Dir, c.Stdin, c.Stdout, c.Stderr = h.folder, s.terminal, s.terminal, s.terminal
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0}
	for name, value := range h.env {
		c.Env = append(c.Env, name+"="+value)
	}
	if err := c.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
	return c
}

// expectGivenBack waits for the program's end, and looks whether the terminal is
// as it was.
func (s *seat) expectGivenBack(c *exec.Cmd, code int) {
	s.t.Helper()
	_ = c.Wait() // its state says how
	if got := c.ProcessState.ExitCode(); got != code {
		s.t.Errorf("exit code %d, want %d; the terminal shows\n%s", got, code, s.seen)
	}
	if diff := cmp.Diff(s.before, s.mode()); diff != "" {
		s.t.Errorf("the terminal is not given back as it was (-before +after):\n%s", diff)
	}
	_ = s.terminal.Close()
}

// playTerminal plays a program on a terminal: it says which size it has, repeats
// what is typed, and ends with 9 at an "x".
func playTerminal(e *faultserver.Exec) {
	if e.Resize == nil {
		e.Error("no terminal")
		return
	}
	go func() {
		for sizes := json.NewDecoder(e.Resize); ; {
			var size stream.Size
			if sizes.Decode(&size) != nil {
				return
			}
			_, _ = fmt.Fprintf(e.Stdout, "size %dx%d\r\n", size.Width, size.Height)
		}
	}()
	for in := bufio.NewReader(e.Stdin); ; {
		key, err := in.ReadByte()
		if err != nil {
			e.WaitGone()
			return
		}
		if key == 'x' {
			e.Exit(9)
			return
		}
		_, _ = fmt.Fprintf(e.Stdout, "key %q\r\n", key)
	}
}

func TestShellOnATerminal(t *testing.T) {
	t.Parallel()
	h := person(t)
	h.env["TERM"] = "xterm-256color"
	h.server.OnExec(playTerminal)
	s := newSeat(t)
	c := s.sit(h, "shell", "4711", "-c", "helper")
	s.seen.waitFor(t, "size 80x24\r\n")
	if mode := s.mode(); mode.Lflag&unix.ICANON != 0 || mode.Lflag&unix.ISIG != 0 {
		t.Error("the terminal is not in raw mode")
	}
	s.types("\x03") // Ctrl-C is the program's
	s.seen.waitFor(t, `key '\x03'`)
	s.resize(132, 50)
	s.seen.waitFor(t, "size 132x50\r\n")
	s.types("x")
	s.expectGivenBack(c, 9)
	s.seen.waitFor(t, "the command ended with exit code 9")
	ran := h.server.Execs()
	last := ran[len(ran)-1]
	if last.Container != "helper" || strings.Join(last.Args[4:], " ") != "xterm-256color /tenant-executor/bin /builds/group/demo /builds /" {
		t.Errorf("ran %q in %s", last.Args, last.Container)
	}
}

// However a shell ends, the person's terminal is given back as it was.
func TestShellGivesTheTerminalBack(t *testing.T) {
	t.Parallel()
	signal := func(s syscall.Signal) func(*harness, *seat, *exec.Cmd) {
		return func(_ *harness, _ *seat, c *exec.Cmd) { _ = c.Process.Signal(s) }
	}
	for name, end := range map[string]struct {
		do   func(*harness, *seat, *exec.Cmd)
		says string
	}{
		"TERM":             {signal(syscall.SIGTERM), "was given up"},
		"INT from outside": {signal(syscall.SIGINT), "was given up"},
		"HUP":              {signal(syscall.SIGHUP), "was given up"},
		"QUIT":             {signal(syscall.SIGQUIT), "was given up"},
		"hung up":          {func(_ *harness, s *seat, _ *exec.Cmd) { s.types("\r~.") }, "was given up"},
		"Pod deleted":      {func(h *harness, _ *seat, _ *exec.Cmd) { h.server.Apply(faultserver.Removed()) }, "was deleted"},
		"node lost":        {func(h *harness, _ *seat, _ *exec.Cmd) { h.server.RemoveNode(node) }, "does not exist any more"},
		"cluster gone":     {func(h *harness, _ *seat, _ *exec.Cmd) { h.server.Down() }, "the connection broke"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := person(t)
			h.server.OnExec(playTerminal)
			s := newSeat(t)
			c := s.sit(h, "shell", "4711")
			s.seen.waitFor(t, "size 80x24\r\n")
			end.do(h, s, c)
			s.expectGivenBack(c, 2)
			s.seen.waitFor(t, end.says)
		})
	}
}

// Without a terminal there is none in the Pod: input, output and exit code are
// as of a command here.
func TestShellWithoutATerminal(t *testing.T) {
	t.Parallel()
	h := person(t)
	got := h.stage("shell", "4711", "--", "sh", "-c", "echo out; echo err >&2; echo $CONTAINER; exit 3")
	if got.code != 3 || got.stdout != "out\nbuild\n" || !strings.HasPrefix(got.stderr, "err\n") {
		t.Errorf("%+v", got)
	}
	script := exec.Command(os.Getenv(builtPath), "shell", "4711", "-c", "helper")
	script.Stdin = strings.NewReader("echo $CONTAINER $TERM; exit 4\n")
	script.Dir = h.folder
	for name, value := range h.env {
		script.Env = append(script.Env, name+"="+value)
	}
	out, _ := script.Output() // its state says how
	if script.ProcessState.ExitCode() != 4 || string(out) != "helper dumb\n" {
		t.Errorf("exit code %d, output %q", script.ProcessState.ExitCode(), out)
	}
}

func TestShellRefuses(t *testing.T) {
	t.Parallel()
	h := person(t)
	h.waitingJob("job-8-x", "8")
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"shell"}, "no job is named"},
		{[]string{"shell", "8"}, "is waiting for a node"},
		{[]string{"shell", "4711", "-c", "x"}, `no container or service "x"; it has build, helper`},
		{[]string{"shell", "4711", "ls"}, `a command behind "--"`},
		{[]string{"shell", "ls"}, `"ls" is no job`},
		{[]string{"shell", "4711", "--"}, `no command is given`},
		{[]string{"shell", "4711", "--", "/no/such/program"}, "no such file"},
		{[]string{"release", "4711"}, "is not one that is kept for a look"},
	} {
		if got := h.stage(test.args...); got.code != 1 && got.code != 2 || !strings.Contains(got.stderr, test.want) {
			t.Errorf("%v: %+v, want %q", test.args, got, test.want)
		}
	}
}

// A shell says until when the Pod is kept.
func TestShellInAKeptPod(t *testing.T) {
	t.Parallel()
	h := person(t)
	h.server.Apply(faultserver.Change(func(p *corev1.Pod) {
		p.Annotations[domain+"held"] = time.Now().Add(14*time.Minute + 30*time.Second).Format(time.RFC3339)
	}))
	h.server.OnExec(playTerminal)
	s := newSeat(t)
	c := s.sit(h, "shell", "4711")
	s.seen.waitFor(t, "This Pod of a failed job is kept until ")
	s.seen.waitFor(t, ", for 14 min ")
	s.types("x")
	s.expectGivenBack(c, 9)
}
