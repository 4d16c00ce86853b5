package guest

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestRunsOnlyAsFirstProcess(t *testing.T) {
	err := Run(t.Context(), Config{}, strings.NewReader(""), &bytes.Buffer{}, &bytes.Buffer{})
	if err == nil || !strings.Contains(err.Error(), "localtenant node add") {
		t.Errorf("%v; want to be told how a node is started", err)
	}
}

func TestCommandsOutOfOrder(t *testing.T) {
	node := &guest{supervisor: newSupervisor(&bytes.Buffer{})}
	for _, command := range []string{RestartKubelet, RestartContainerd, "dance", ""} {
		if err := node.do(t.Context(), Command{Do: command}); err == nil {
			t.Errorf("%q before the start was done", command)
		}
	}
}

func TestRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "guest.json")
	if _, err := Read(path); err == nil {
		t.Error("a file that is not there was read")
	}
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(path); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("%v; want an error that names the file", err)
	}
}

func TestPlace(t *testing.T) {
	dir := t.TempDir()
	link, real := filepath.Join(dir, "resolv.conf"), filepath.Join(dir, "real", "stub.conf")
	if err := os.Symlink("real/stub.conf", link); err != nil {
		t.Fatal(err)
	}
	// What only covers is followed, and made nowhere on the machine's disk.
	got, err := Mount{Target: link, File: true, IfThere: true}.place()
	if err != nil || got != real {
		t.Errorf("place is %q, %v; want %q", got, err, real)
	}
	if _, err := os.Stat(real); err == nil {
		t.Error("a file was made on the machine's disk")
	}
	file := filepath.Join(dir, "a", "b", "file")
	if _, err := (Mount{Target: file, File: true}).place(); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(file); err != nil || !info.Mode().IsRegular() {
		t.Errorf("no file at %s: %v", file, err)
	}
	folder := filepath.Join(dir, "c", "d")
	if _, err := (Mount{Target: folder}).place(); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(folder); err != nil || !info.IsDir() {
		t.Errorf("no folder at %s: %v", folder, err)
	}
}

func TestDescribe(t *testing.T) {
	if got := describe(unix.WaitStatus(3 << 8)); got != "exit status 3" {
		t.Errorf("exit 3 is %q", got)
	}
	if got := describe(unix.WaitStatus(9)); got != "signal: killed" {
		t.Errorf("SIGKILL is %q", got)
	}
}
