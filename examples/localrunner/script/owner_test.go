package script_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/socialweb-computer/tenant-executor/examples/localrunner/script"
)

// Where the file is that names the build container's user, everything becomes
// that user's, and cleanup takes the file away.
func TestFilesAreGivenAway(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can give files away")
	}
	for name, shell := range shells(t) {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, shell)
			marker := filepath.Join(w.dir, "builds", ".gitlab-build-uid-gid")
			if err := os.MkdirAll(filepath.Dir(marker), 0o777); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(marker, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chown(marker, 1234, 2345); err != nil {
				t.Fatal(err)
			}
			w.mustRun(script.GetSources)
			for _, made := range []string{"group/demo/hello.txt", "group/demo.tmp"} {
				info, err := os.Stat(filepath.Join(w.dir, "builds", made))
				if err != nil {
					t.Fatal(err)
				}
				if owner := info.Sys().(*syscall.Stat_t); owner.Uid != 1234 || owner.Gid != 2345 {
					t.Errorf("%s belongs to %d:%d, want 1234:2345", made, owner.Uid, owner.Gid)
				}
			}
			w.mustRun(script.Cleanup)
			if _, err := os.Stat(marker); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("cleanup left the file: %v", err)
			}
		})
	}
}
