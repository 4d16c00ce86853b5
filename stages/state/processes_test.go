package state_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/socialweb-computer/tenant-executor/stages/state"
)

// The test program runs itself as another process of the driver, with the
// folder in this variable.
const workerVariable = "STATE_TEST_FOLDER"

func TestMain(m *testing.M) {
	if dir := os.Getenv(workerVariable); dir != "" {
		if err := work(dir, os.Getenv("STATE_TEST_ROUNDS")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// work does what stages do, over and over, and finds every file whole.
func work(dir, rounds string) error {
	n, err := strconv.Atoi(rounds)
	if err != nil {
		return err
	}
	f, err := state.Open(dir)
	if err != nil {
		return err
	}
	for i := range n {
		// One file that all write, of a length that tells whether it is whole.
		text := strings.Repeat(fmt.Sprint(os.Getpid(), "\n"), 500)
		u := undone(os.Getpid()<<8 | i%8)
		if err := errors.Join(f.WriteFile("shared", []byte(text)), f.AddUndone(u)); err != nil {
			return err
		}
		got, err := f.ReadFile("shared")
		if err != nil {
			return err
		}
		line, _, _ := bytes.Cut(got, []byte("\n"))
		if string(got) != strings.Repeat(string(line)+"\n", 500) {
			return fmt.Errorf("a file was seen half written: %d bytes", len(got))
		}
		all, err := f.ListUndone()
		if err != nil {
			return err
		}
		if !f.HasUndone(u) {
			return fmt.Errorf("%d of %d: a file of one's own is gone", i, len(all))
		}
		if err := f.RemoveUndone(u); err != nil {
			return err
		}
		if i == 0 {
			fmt.Println("working")
		}
	}
	return nil
}

func worker(t *testing.T, dir string, rounds int) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), workerVariable+"="+dir, fmt.Sprint("STATE_TEST_ROUNDS=", rounds))
	return cmd
}

// working starts a worker and waits until it is at work.
func working(t *testing.T, dir string, rounds int) *exec.Cmd {
	t.Helper()
	cmd := worker(t, dir, rounds)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err == nil {
		_, err = out.Read(make([]byte, 1))
	}
	if err != nil {
		t.Fatal(err)
	}
	return cmd
}

// Many processes use one folder at once. Some of them are stopped in the
// middle of whatever they do, and hold nobody up: nothing waits for a lock.
// Some are killed, and leave nothing that the others trip over.
func TestManyProcesses(t *testing.T) {
	f, dir := open(t)
	var stopped []*exec.Cmd
	for i := range 6 {
		cmd := working(t, dir, 1<<30)
		signal := syscall.SIGSTOP
		if i%2 == 0 {
			signal = syscall.SIGKILL
		}
		if err := cmd.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		stopped = append(stopped, cmd)
	}
	outs := make([]bytes.Buffer, 8)
	var working []*exec.Cmd
	for i := range outs {
		cmd := worker(t, dir, 10)
		cmd.Stderr = &outs[i]
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		working = append(working, cmd)
	}
	for i, cmd := range working {
		if err := cmd.Wait(); err != nil {
			t.Errorf("%v: %s", err, outs[i].String())
		}
	}
	for _, cmd := range stopped {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
	}
	// At most one cleanup of each of those that did not end by themselves.
	if n := len(list(t, f)); n > len(stopped) {
		t.Errorf("%d cleanups are left", n)
	}
}

// Of many processes that create one file, one does.
func TestOneCreates(t *testing.T) {
	f, _ := open(t)
	done := make(chan error)
	const many = 20
	for i := range many {
		go func() { done <- f.Create("one", []byte(fmt.Sprint(i))) }()
	}
	created := 0
	for range many {
		if err := <-done; err == nil {
			created++
		} else if !errors.Is(err, fs.ErrExist) {
			t.Error(err)
		}
	}
	if created != 1 {
		t.Errorf("%d have created it", created)
	}
}
