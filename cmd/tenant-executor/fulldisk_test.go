package main_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Where the exit code cannot be written, the runner finds no file: it takes an
// empty one for a failure of the driver, and the job for one that may be run
// again.
func TestExitCodeOnAFullDisk(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can mount a small disk")
	}
	h := newHarness(t)
	disk := filepath.Join(h.folder, "disk")
	if err := os.Mkdir(disk, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=4k"); err != nil {
		t.Skipf("mounting a small disk: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(disk, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	if err := os.WriteFile(filepath.Join(disk, "all"), make([]byte, 4096), 0o600); err != nil {
		t.Fatal(err)
	}
	h.env["BUILD_EXIT_CODE_FILE"] = filepath.Join(disk, "build_exit_code")
	h.play()
	h.theJob()
	got := h.run("build_script", "exit 42")
	if got.code != buildCode || !strings.Contains(got.stdout, "the runner cannot be told exit code 42") {
		t.Errorf("run ended with %d: %s%s", got.code, got.stdout, got.stderr)
	}
	if left, err := os.ReadDir(disk); err != nil || len(left) != 1 {
		t.Errorf("on the disk: %v, %v", left, err)
	}
	if _, err := os.Stat(h.env["BUILD_EXIT_CODE_FILE"]); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the file is there: %v", err)
	}
}
