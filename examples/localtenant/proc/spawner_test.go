package proc

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func sleeper(t *testing.T) Spec {
	return Spec{Name: "sleeper", Path: "/bin/sh", Args: []string{"-c", "echo up; exec sleep 1000"}, Log: filepath.Join(t.TempDir(), "log")}
}

func TestCloseKillsChildren(t *testing.T) {
	spawner := NewSpawner()
	child, err := spawner.Start(sleeper(t))
	if err != nil {
		t.Fatal(err)
	}
	if !child.Running() {
		t.Fatalf("the child has ended: %s", child.Ending())
	}
	spawner.Close()
	if child.Running() {
		t.Fatal("the child outlives its spawner")
	}
	if ending := child.Ending(); ending != "signal: killed" {
		t.Errorf("the child ended with %q", ending)
	}
	if _, err := spawner.Start(sleeper(t)); !errors.Is(err, ErrSpawnerClosed) {
		t.Errorf("a closed spawner gave %v", err)
	}
}

// parentVariable makes the test program the parent of TestChildrenDieWithTheirParent.
const parentVariable = "LOCALTENANT_TEST_PARENT"

// TestParent is no test: it starts a child, tells its id, and waits to be
// killed.
func TestParent(t *testing.T) {
	if os.Getenv(parentVariable) == "" {
		t.Skip("only as the parent in TestChildrenDieWithTheirParent")
	}
	child, err := NewSpawner().Start(Spec{Name: "sleeper", Path: "/bin/sleep", Args: []string{"1000"}, Log: os.DevNull})
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println("child", child.PID())
	<-child.Done()
}

func TestChildrenDieWithTheirParent(t *testing.T) {
	parent := exec.Command(os.Args[0], "-test.run=^TestParent$")
	parent.Env = append(os.Environ(), parentVariable+"=1")
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	var pid int
	if _, err := fmt.Fscanf(out, "child %d\n", &pid); err != nil {
		t.Fatal(err)
	}
	// A handle rather than the id, which may belong to another one day.
	child, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(child)
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait() // it was killed, and says so
	ended, err := unix.Poll([]unix.PollFd{{Fd: int32(child), Events: unix.POLLIN}}, 10_000)
	if err != nil || ended != 1 {
		t.Errorf("the child outlives its parent by 10 seconds (%v)", err)
		_ = unix.PidfdSendSignal(child, unix.SIGKILL, nil, 0)
	}
}

func TestKillChild(t *testing.T) {
	spawner := NewSpawner()
	defer spawner.Close()
	child, err := spawner.Start(sleeper(t))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := child.Kill(); err != nil {
			t.Fatal(err)
		}
	}
	if child.Running() {
		t.Error("it runs still")
	}
}

func TestChildsOutput(t *testing.T) {
	spawner := NewSpawner()
	defer spawner.Close()
	spec := Spec{Name: "speaker", Path: "/bin/sh", Args: []string{"-c", "echo out; echo err >&2; exit 3"}, Log: filepath.Join(t.TempDir(), "log")}
	child, err := spawner.Start(spec)
	if err != nil {
		t.Fatal(err)
	}
	if ending := child.Ending(); ending != "exit status 3" {
		t.Errorf("ending is %q", ending)
	}
	text, err := os.ReadFile(spec.Log)
	if err != nil {
		t.Fatal(err)
	}
	if string(text) != "out\nerr\n" {
		t.Errorf("the log is %q", text)
	}
	spec.Path = "/no/such/program"
	if _, err := spawner.Start(spec); err == nil || !strings.Contains(err.Error(), "speaker") {
		t.Errorf("a program that is not there gave %v", err)
	}
}
