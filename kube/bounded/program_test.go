package bounded_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/socialweb-computer/tenant-executor/kube/bounded"
)

func TestDo(t *testing.T) {
	t.Parallel()
	if got, err := bounded.Do(t.Context(), func() (int, error) { return 7, nil }, nil); got != 7 || err != nil {
		t.Errorf("got %d, %v", got, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	goOn, dropped := make(chan struct{}), make(chan int, 1)
	_, err := bounded.Do(ctx, func() (int, error) { <-goOn; return 7, nil }, func(late int) { dropped <- late })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	close(goOn)
	if got := <-dropped; got != 7 {
		t.Errorf("dropped %d", got)
	}
}

func sh(script string) bounded.Program {
	return bounded.Program{Path: "sh", Args: []string{"-c", script}, Env: []string{"PATH=" + os.Getenv("PATH"), "A=b"}, Stdin: "told"}
}

func TestProgram(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ script, want, err string }{
		{`read -r line; echo "$line $A $HOME"; echo noise >&2`, "told b \n", ""},
		{`echo part; echo "first" >&2; printf 'why \033[31m\n\n' >&2; exit 3`, "part\n", "it ended with exit status 3: why  [31m"},
		{`exit 4`, "", "it ended with exit status 4"},
		{`kill -9 $$`, "", "it ended with signal: killed"},
		// At the limit, and one byte beyond it.
		{`head -c 1048576 /dev/zero | tr '\0' x`, strings.Repeat("x", 1<<20), ""},
		{`head -c 1048577 /dev/zero`, "", "it answered more than 1048576 bytes"},
		{`head -c 100000000 /dev/zero >&2; exit 1`, "", "it ended with exit status 1: " + strings.Repeat(" ", 300) + "…"},
		// What it leaves behind holds nobody up.
		{`sleep 1000 & echo $! >&2; echo done`, "done\n", ""},
	} {
		got, err := sh(test.script).Run(t.Context())
		if string(got) != test.want || fmt.Sprint(err) != test.err && (err != nil || test.err != "") {
			t.Errorf("%s: %d bytes, %v; want %d, %q", test.script, len(got), err, len(test.want), test.err)
		}
	}
	if _, err := (bounded.Program{Path: "/nowhere/program"}).Run(t.Context()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a program that is not there: %v", err)
	}
}

// A program that does not want to end is ended with all its children.
func TestProgramIsEnded(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "pids")
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for ctx.Err() == nil {
			if text, err := os.ReadFile(file); err == nil && strings.Count(string(text), "\n") == 2 {
				cancel()
			}
			time.Sleep(10 * time.Millisecond)
		}
	}()
	_, err := sh(`trap '' TERM INT HUP; (echo $$; exec sleep 1000) > '` + file + `' & echo $! >> '` + file + `'; while :; do sleep 1; done`).Run(ctx)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Fields(string(text)) {
		pid, err := strconv.Atoi(line)
		if err != nil {
			t.Fatal(err)
		}
		for end := time.Now().Add(time.Minute); running(pid); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("process %d is still there", pid)
			}
		}
	}
}

// running reports whether a process is there and no zombie.
func running(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(text), ") Z ")
}
