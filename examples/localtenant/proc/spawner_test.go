package proc

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func sleeper(t *testing.T) Spec {
	return Spec{Name: "sleeper", Path: "/bin/sh", Args: []string{"-c", "echo up; sleep 1000"}, Log: filepath.Join(t.TempDir(), "log")}
}

func TestChildrenDieWithTheSpawner(t *testing.T) {
	spawner := NewSpawner()
	child, err := spawner.Start(sleeper(t))
	if err != nil {
		t.Fatal(err)
	}
	if !child.Running() {
		t.Fatalf("the child has ended: %s", child.Ending())
	}
	spawner.Close()
	if ending := child.Ending(); ending != "signal: killed" {
		t.Errorf("the child ended with %q, want to be killed by the kernel", ending)
	}
	if _, err := spawner.Start(sleeper(t)); !errors.Is(err, ErrSpawnerClosed) {
		t.Errorf("a closed spawner gave %v", err)
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
