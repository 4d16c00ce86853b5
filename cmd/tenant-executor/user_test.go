package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// With the job's flag, prepare has the build container make the file by which
// the runner's scripts know its user; without it nothing is made.
func TestPrepareTellsTheUser(t *testing.T) {
	t.Parallel()
	for flag, want := range map[string]bool{"": false, "false": false, "true": true} {
		h := newHarness(t)
		h.play()
		builds := t.TempDir()
		h.settings["job.builds_dir"] = builds
		h.env["CUSTOM_ENV_FF_DISABLE_UMASK_FOR_KUBERNETES_EXECUTOR"] = flag
		if got := h.stage("prepare"); got.code != 0 {
			t.Errorf("flag %q: exit code %d, %s", flag, got.code, got.stdout+got.stderr)
		}
		if _, err := os.Stat(filepath.Join(builds, ".gitlab-build-uid-gid")); (err == nil) != want {
			t.Errorf("flag %q: the file: %v", flag, err)
		}
	}
}

// A folder of builds that the user cannot write to fails the job at once: the
// next attempt would meet the same.
func TestPrepareWithSomebodyElsesBuilds(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.play()
	h.settings["job.builds_dir"] = filepath.Join(t.TempDir(), "nosuch")
	h.env["CUSTOM_ENV_FF_DISABLE_UMASK_FOR_KUBERNETES_EXECUTOR"] = "1"
	got := h.stage("prepare")
	if got.code != buildCode {
		t.Errorf("exit code %d, want %d", got.code, buildCode)
	}
	for _, part := range []string{"FF_DISABLE_UMASK_FOR_KUBERNETES_EXECUTOR", "/nosuch/.gitlab-build-uid-gid", "fs_group"} {
		if !strings.Contains(got.stdout+got.stderr, part) {
			t.Errorf("the job log lacks %q: %s", part, got.stdout+got.stderr)
		}
	}
}
