package main_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/socialweb-computer/tenant-executor/kube/faultserver"
)

const entrypointFlag = "CUSTOM_ENV_FF_KUBERNETES_HONOR_ENTRYPOINT"

// What an image's entrypoint says stands in the job log while it runs, before
// the Pod counts as started; what it leaves running goes on to have a say.
func TestEntrypointIsHeard(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.play()
	h.env[entrypointFlag] = "true"
	h.server.OnCreate(faultserver.Scheduled(node), faultserver.Unready("build"))
	h.server.Log("build", at(0), "unpacking")
	prepare := h.start("prepare")
	prepare.stdout.waitFor(t, "unpacking\n")
	h.server.Log("build", at(1500), "ready: 42")
	prepare.stdout.waitFor(t, "ready: 42\n")
	h.server.Apply(faultserver.Running())
	got := prepare.wait()
	if diff := cmp.Diff(lines(using, "unpacking", "ready: 42", ready), h.plain(got.stdout)); diff != "" || got.code != 0 {
		t.Errorf("ended with %d (-want +got):\n%s", got.code, diff)
	}

	h.expect(h.run("prepare_script", "echo one"), 0, "one\n", "")
	h.server.Log("build", at(2000), "a daemon of the entrypoint")
	out := h.run("build_script", "echo two").stdout
	if strings.Count(out, "a daemon of the entrypoint\n") != 1 || strings.Count(out, "two\n") != 1 || strings.Contains(out, "ready") {
		t.Errorf("the stage shows:\n%s", out)
	}
}

// An entrypoint that fails has said why.
func TestEntrypointThatFailsIsHeard(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.env[entrypointFlag] = "true"
	h.server.OnCreate(faultserver.Scheduled(node), faultserver.Terminated("build", "Error", 3))
	h.server.Log("build", at(0), "no licence found")
	got := h.stage("prepare")
	before, failure, found := strings.Cut(got.stdout, "ERROR: ")
	if !found || !strings.HasSuffix(before, "no licence found\n\033[31;1m") || !strings.Contains(failure, "ended before anything ran in it, with exit code 3") {
		t.Errorf("ended with %d:\n%q", got.code, got.stdout)
	}
}

// Without the flag there is no entrypoint to be heard, and nothing is asked for.
func TestEntrypointCostsNothingUnasked(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.play()
	h.server.Log("build", at(0), "not of an entrypoint")
	h.expect(h.stage("prepare"), 0, lines(using, ready), "")
	h.expect(h.run("build_script", "echo done"), 0, "done\n", "")
	if asked := h.server.Requests().Of("get", "pods/log"); len(asked) != 0 {
		t.Errorf("asked for logs: %v", asked)
	}
}

// Services have a say from their start on, in prepare already: a service that
// says much in its first minutes would have begun a new file by the first stage.
func TestServicesAreHeardInPrepare(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.play()
	h.served(nil)
	h.env["CUSTOM_ENV_CI_DEBUG_SERVICES"] = "true"
	h.server.OnCreate(faultserver.Scheduled(node), faultserver.Unready("build"))
	h.server.Log("db", at(0), "first")
	prepare := h.start("prepare")
	prepare.stdout.waitFor(t, "first")
	h.server.RotateLog("db")
	h.server.Log("db", at(10), "second")
	prepare.stdout.waitFor(t, "second")
	h.server.Apply(faultserver.Running())
	if got := prepare.wait(); got.code != 0 {
		t.Fatalf("ended with %d:\n%s", got.code, got.stdout)
	}
	if out := h.run("build_script", "echo done").stdout; strings.Contains(out, "second") {
		t.Errorf("said twice:\n%s", out)
	}
}

// The kubelet gives only the file that a container writes to now. Where lines
// may be missing for that, the reader is told, at the place.
func TestLinesThatMayBeMissingAreSaid(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.play()
	h.served(nil)
	h.env["CUSTOM_ENV_CI_DEBUG_SERVICES"] = "true"
	h.theJob()
	h.server.Log("db", at(0), "first")
	if got := shown(h, h.run("prepare_script", "true").stdout); !cmp.Equal(got, []string{"first"}) {
		t.Fatalf("the first stage shows %q", got)
	}
	h.server.Log("db", at(100), "lost")
	h.server.RotateLog("db")
	h.server.Log("db", at(200), "third")
	h.server.Log("db", at(300), "fourth")
	gap := "Lines may be missing here: the node began a new file for this log while nobody read it."
	if diff := cmp.Diff([]string{gap, "third", "fourth"}, shown(h, h.run("get_sources", "true").stdout)); diff != "" {
		t.Errorf("after a new file (-want +got):\n%s", diff)
	}

	// While somebody reads, nothing is lost and nothing said.
	open := filepath.Join(h.folder, "open")
	r := h.startRun("build_script", "until test -e "+open+"; do sleep 0.1; done")
	h.server.Wait(t, "the log is followed", func() bool { return h.server.FollowsLog("db") == 1 })
	h.server.Log("db", at(400), "fifth")
	r.stdout.waitFor(t, "fifth")
	h.server.RotateLog("db")
	h.server.Log("db", at(500), "sixth")
	r.stdout.waitFor(t, "sixth")
	h.write("open", "")
	if diff := cmp.Diff([]string{"fifth", "sixth"}, shown(h, r.wait().stdout)); diff != "" {
		t.Errorf("while it was followed (-want +got):\n%s", diff)
	}
}
