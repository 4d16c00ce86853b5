package main_test

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/socialweb-computer/tenant-executor/kube/faultserver"
)

// undone are the files with cleanups to be done.
func (h *harness) undone() []string {
	h.t.Helper()
	files, err := filepath.Glob(filepath.Join(h.settings["state.dir"], "undone-*"))
	if err != nil {
		h.t.Fatal(err)
	}
	return files
}

// A cleanup that cannot reach the cluster is done by the next stage of
// whichever job, also one of another runner.
func TestUndoneCleanupIsDoneLater(t *testing.T) {
	t.Parallel()
	for _, next := range []string{"prepare", "cleanup"} {
		t.Run(next, func(t *testing.T) {
			t.Parallel()
			h := leaver(t)
			h.settings["cleanup.timeout"] = "1s"
			lost := h.prepared()
			h.server.Down()
			for range 2 {
				if got := h.stage("cleanup"); got.code != systemCode || strings.Contains(got.stderr, "WARNING") {
					t.Errorf("exit code %d, stderr %q", got.code, got.stderr)
				}
			}
			if n := len(h.undone()); n != 1 {
				t.Fatalf("%d cleanups are remembered", n)
			}
			h.server.Up(t)
			h.job["id"] = 4712
			h.env["CUSTOM_ENV_CI_RUNNER_SHORT_TOKEN"] = secondRunner
			h.stage(next)
			if slices.Contains(h.names(), lost.Name) || len(h.undone()) != 0 {
				t.Errorf("left: Pods %v, files %v", h.names(), h.undone())
			}
		})
	}
}

// Another attempt at the job takes its undone cleanup over: from then on
// nobody else does it, or it would hit the attempt's own Pod.
func TestUndoneCleanupNeverHitsALaterAttempt(t *testing.T) {
	t.Parallel()
	h := leaver(t)
	h.settings["cleanup.timeout"] = "1s"
	h.prepared()
	h.server.Down()
	h.stage("cleanup")
	h.server.Up(t)
	// This attempt cannot do the cleanup itself, and takes it over all the same.
	h.server.Fail(1, "list", "pods", faultserver.AnswerStatus(http.StatusForbidden, metav1.StatusReasonForbidden, "no lists"))
	first := h.names()[0]
	again := h.prepared()
	h.job["id"] = 4712
	other := h.prepared()
	if got := h.names(); !slices.Equal(got, []string{again.Name, other.Name}) && !slices.Equal(got, []string{first, again.Name, other.Name}) || len(h.undone()) != 0 {
		t.Errorf("left: Pods %v, files %v", got, h.undone())
	}
}

// Two clusters share the folder; a cleanup is done on its own.
func TestUndoneCleanupOfAnotherCluster(t *testing.T) {
	t.Parallel()
	h := leaver(t)
	h.settings["cleanup.timeout"] = "1s"
	h.prepared()
	h.server.Down()
	h.stage("cleanup")
	there := leaver(t)
	there.settings["state.dir"] = h.settings["state.dir"]
	there.job["id"] = 4712
	there.prepared()
	there.stage("cleanup")
	if n := len(h.undone()); n != 1 {
		t.Errorf("%d cleanups are remembered", n)
	}
}

// What a crash leaves in the folder stops no job.
func TestDamagedStateStopsNoJob(t *testing.T) {
	t.Parallel()
	h := leaver(t)
	h.settings["cleanup.timeout"] = "1s"
	h.prepared()
	h.server.Down()
	h.stage("cleanup")
	h.server.Up(t)
	for _, file := range h.undone() {
		if err := os.Truncate(file, 3); err != nil {
			t.Fatal(err)
		}
	}
	dir := h.settings["state.dir"]
	for name, text := range map[string]string{"undone-x": "{", ".tmp-1": "x", "something": "\x00"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	h.nextJob(4712)
	made := h.prepared()
	if got := h.names(); !slices.Equal(got, []string{made.Name}) {
		t.Errorf("left: %v", got)
	}
	// A host that has lost its name knows no owner any more, and leaves alone
	// what may be somebody's.
	if err := os.WriteFile(filepath.Join(dir, "host"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	h.nextJob(4713)
	next := h.prepared()
	if got := h.names(); !slices.Equal(got, []string{made.Name, next.Name}) {
		t.Errorf("left: %v", got)
	}
}

func TestCleanupThatCannotBeRemembered(t *testing.T) {
	t.Parallel()
	h := leaver(t)
	h.settings["cleanup.timeout"] = "1s"
	h.settings["state.dir"] = filepath.Join(h.write("file", ""), "below")
	h.prepared()
	h.server.Down()
	got := h.stage("cleanup")
	if got.code != systemCode || !strings.Contains(got.stderr, "WARNING: This host remembers nothing for the driver, neither cleanups that fail") || !strings.Contains(got.stderr, "not a directory") {
		t.Errorf("exit code %d, stderr %q", got.code, got.stderr)
	}
}
