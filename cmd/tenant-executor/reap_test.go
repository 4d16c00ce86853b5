package main_test

import (
	"encoding/json"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/socialweb-computer/tenant-executor/kube/faultserver"
)

// reaped is what reap found, by name.
func (h *harness) reaped(args ...string) map[string]map[string]any {
	h.t.Helper()
	got := h.stage(append([]string{"reap", "--output", "json"}, args...)...)
	if got.code != 0 || got.stderr != "" {
		h.t.Fatalf("exit code %d, stderr %q", got.code, got.stderr)
	}
	var list []map[string]any
	if err := json.Unmarshal([]byte(got.stdout), &list); err != nil || list == nil {
		h.t.Fatalf("%v in %s", err, got.stdout)
	}
	found := map[string]map[string]any{}
	for _, one := range list {
		found[one["name"].(string)] = one
	}
	return found
}

// secrets has the cluster answer with Secrets.
func (h *harness) secrets(names ...string) {
	list := metav1.PartialObjectMetadataList{}
	for _, name := range names {
		list.Items = append(list.Items, metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: namespace, UID: "secret-uid", Labels: map[string]string{domain + "job": "0123456789abcdef", domain + "runner": firstRunner},
		}})
	}
	text, err := json.Marshal(list)
	if err != nil {
		h.t.Fatal(err)
	}
	h.server.Fail(-1, "list", "secrets", faultserver.Answer(http.StatusOK, string(text)))
	h.server.Fail(-1, "delete", "secrets", faultserver.Answer(http.StatusOK, "{}"))
}

func TestReap(t *testing.T) {
	t.Parallel()
	h := leaver(t)
	h.secrets("alone")
	like := h.prepared()
	if found := h.reaped(); len(found) != 1 || found["alone"]["reason"] != "no Pod" {
		t.Errorf("got %v", found)
	}
	h.other(like, "dead", firstRunner, owned(t, "pid", impossible))
	h.other(like, "expired", firstRunner, func(p *corev1.Pod) { expired(p); owned(t, "host", "elsewhere")(p) })
	h.other(like, "another-runners", secondRunner, owned(t, "pid", impossible))
	want := map[string]any{"dead": "runner gone", "expired": "expired", "alone": "no Pod"}
	for _, dry := range []bool{true, false} {
		args := []string{"--runner", firstRunner}
		if dry {
			args = append(args, "--dry-run")
		}
		got := map[string]any{}
		for name, one := range h.reaped(args...) {
			got[name] = one["reason"]
			if one["removed"] != !dry || one["kind"] == "Pod" && one["job"] != "99" {
				t.Errorf("dry run %t: %v", dry, one)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("dry run %t (-want +got):\n%s", dry, diff)
		}
		if n := len(h.server.Pods()); dry && n != 4 || !dry && n != 2 {
			t.Errorf("dry run %t: %d Pods are left", dry, n)
		}
	}
	if n := h.server.Requests().Count("delete", "secrets"); n != 2 {
		t.Errorf("%d Secrets were deleted", n)
	}
}

// A token that is mistyped finds nothing, which must not be taken for good news.
func TestReapOfAnotherRunner(t *testing.T) {
	t.Parallel()
	h := leaver(t)
	h.secrets()
	like := h.prepared()
	h.other(like, "another-runners", secondRunner, owned(t, "pid", impossible))
	h.expect(h.stage("reap", "--runner", "typo"), 0, "Nothing is left over of runner typo.\n",
		"WARNING: no job Pod there is of runner typo; they are of "+secondRunner+", "+firstRunner+"\n")
}

func TestReapTable(t *testing.T) {
	t.Parallel()
	h := leaver(t)
	h.secrets()
	like := h.prepared()
	h.expect(h.stage("reap"), 0, "Nothing is left over of runner "+firstRunner+".\n", "")
	h.other(like, "dead", firstRunner, owned(t, "pid", impossible))
	// A Pod's age is the one thing here that differs from run to run.
	reap := func(args ...string) result {
		got := h.stage(append([]string{"reap"}, args...)...)
		got.stdout = regexp.MustCompile(`n1    \d+s +`).ReplaceAllString(got.stdout, "n1    0s   ")
		return got
	}
	row := func(result string) string {
		return "KIND  NAMESPACE  NAME  JOB  REASON       NODE  AGE  RESULT\n" +
			"Pod   ci         dead  99   runner gone  n1    0s   " + result + "\n"
	}
	h.expect(reap("--dry-run"), 0, row("would be deleted"), "")
	h.server.Fail(1, "delete", "pods", faultserver.AnswerStatus(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, "a finalizer"))
	h.expect(reap(), systemCode, row("not deleted: deleting Pod ci/dead: a finalizer"),
		lines("ERROR: the tenant cluster at https://SERVER: deleting Pod ci/dead: a finalizer", "Report it with this message."))
	h.expect(reap(), 0, row("deleted"), "")
}

// reap does undone cleanups, of its own cluster.
func TestReapDoesUndoneCleanups(t *testing.T) {
	t.Parallel()
	h := leaver(t)
	h.secrets()
	h.settings["cleanup.timeout"] = "1s"
	lost := h.prepared()
	h.server.Down()
	h.stage("cleanup")
	h.server.Up(t)
	for _, dry := range []string{"--dry-run=true", "--dry-run=false"} {
		if found := h.reaped(dry); len(found) != 1 || found[lost.Name]["reason"] != "cleanup undone" {
			t.Errorf("%s: got %v", dry, found)
		}
	}
	if len(h.server.Pods()) != 0 || len(h.undone()) != 0 {
		t.Errorf("left: Pods %v, files %v", h.names(), h.undone())
	}
}

func TestReapSaysWhatItNeeds(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(*harness)
		args   []string
		want   string
	}{
		"no runner":      {func(h *harness) { delete(h.env, "CUSTOM_ENV_CI_RUNNER_SHORT_TOKEN") }, nil, "--runner is not set"},
		"unknown output": {func(*harness) {}, []string{"--output", "xml"}, `--output is "xml": use table, json or yaml`},
		"argument":       {func(*harness) {}, []string{"all"}, "takes no arguments"},
		"no state folder": {func(h *harness) { h.settings["state.dir"] = filepath.Join(h.write("file", ""), "below") }, nil,
			"without the state folder neither undone cleanups nor dead runners are known"},
		"not reachable": {func(h *harness) {
			h.server.Fail(-1, "", "", faultserver.AnswerStatus(http.StatusForbidden, metav1.StatusReasonForbidden, "no"))
		}, nil, "the tenant cluster at"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := leaver(t)
			h.secrets()
			test.change(h)
			got := h.stage(append([]string{"reap"}, test.args...)...)
			if got.code != systemCode || !strings.Contains(got.stderr, test.want) {
				t.Errorf("exit code %d, stderr %q; want %q", got.code, got.stderr, test.want)
			}
		})
	}
}
