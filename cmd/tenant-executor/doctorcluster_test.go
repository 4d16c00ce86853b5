package main_test

import (
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/socialweb-computer/tenant-executor/kube/faultserver"
)

// The address of the cluster is looked up as by a stage, and each way in which
// that fails is told apart.
func TestDoctorFindsTheCluster(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change                  func(*harness, *faultserver.Workspace)
		state, evidence, remedy string
	}{
		"found": {func(*harness, *faultserver.Workspace) {}, "ok", `by Cluster object "acme", loopback`, ""},
		"no object": {func(_ *harness, w *faultserver.Workspace) { w.SetObject(acme, "") },
			"failure", "there is no clusters.tenancy.example.com", "cluster.discover_cluster"},
		"no address yet": {func(_ *harness, w *faultserver.Workspace) { w.SetObject(acme, `{"status": {"phase": "Pending"}}`) },
			"failure", `no .status.url (its phase is "Pending")`, "wait until the cluster is ready"},
		"not loopback": {func(_ *harness, w *faultserver.Workspace) { w.SetCluster(acme, "https://10.0.0.1:6443") },
			"failure", "listens on the loopback interface", "run the runner where"},
		"refused": {func(_ *harness, w *faultserver.Workspace) {
			w.Refuse(http.StatusForbidden, metav1.StatusReasonForbidden, "no")
		}, "failure", "does not let its user in", "the right to get the object"},
		"kubeconfig for all": {func(h *harness, _ *faultserver.Workspace) {
			if err := os.Chmod(h.settings["cluster.discover_kubeconfig"], 0o644); err != nil {
				h.t.Fatal(err)
			}
		}, "failure", "mode 0644", "correct the file"},
		"kcp is down": {func(_ *harness, w *faultserver.Workspace) { w.Down() },
			"failure", "does not answer", "start kcp"},
		"kcp is silent": {func(h *harness, w *faultserver.Workspace) { h.silence(w) },
			"failure", "does not answer within 3s", "start kcp"},
		"kcp is silent, and a stage has found the cluster": {func(h *harness, w *faultserver.Workspace) {
			h.expect(h.stage("cleanup"), 0, "", "")
			h.silence(w)
		}, "warning", "where the cluster was last", "start kcp"},
		"kcp is down, and a stage has found the cluster": {func(h *harness, w *faultserver.Workspace) {
			h.expect(h.stage("cleanup"), 0, "", "")
			w.Down()
		}, "warning", "where the cluster was last", "start kcp"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := examined(t)
			w := h.discovers()
			w.SetCluster(acme, h.server.URL())
			c.change(h, w)
			all, _ := h.doctor()
			i := slices.IndexFunc(all, func(f finding) bool { return f.Check == "route" })
			if left, err := os.ReadDir(h.settings["state.dir"]); err != nil || len(left) > 0 && c.state != "warning" {
				t.Errorf("the state folder holds %v (%v)", left, err)
			}
			if f := all[i]; f.State != c.state || !strings.Contains(f.Evidence, c.evidence) || !strings.Contains(f.Remedy, c.remedy) {
				t.Errorf("found %q", f)
			}
		})
	}
}

// silence has the kubeconfig lead to somebody who takes connections and says
// nothing.
func (h *harness) silence(w *faultserver.Workspace) {
	h.t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { _ = listener.Close() })
	path := h.settings["cluster.discover_kubeconfig"]
	text, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, []byte(strings.ReplaceAll(string(text), w.URL(), "https://"+listener.Addr().String())), 0o600)
	}
	if err != nil {
		h.t.Fatal(err)
	}
}

// An apiserver that falls silent halfway is told as what it is; the checks after
// it are skipped when the time for all is over.
func TestDoctorEndsInTime(t *testing.T) {
	t.Parallel()
	h := examined(t)
	h.server.Fail(-1, "create", "selfsubjectaccessreviews", faultserver.Silence())
	h.server.Fail(-1, "create", "pods", faultserver.Silence())
	h.server.Fail(-1, "list", "nodes", faultserver.Silence())
	all, code := h.doctor("--probe")
	found, skipped := bad(all)
	var checks []string
	for _, f := range found {
		checks = append(checks, f.Check)
		if !strings.Contains(f.Evidence, "no answer came in time") || strings.Contains(f.Evidence, "\n") {
			t.Errorf("found %q", f)
		}
	}
	if code != 1 || !slices.Equal(checks, []string{"rights", "namespace", "nodes"}) || !slices.Contains(skipped, "leftovers") || !slices.Contains(skipped, "probe-end") {
		t.Errorf("exit code %d, found %q, skipped %q", code, checks, skipped)
	}
	h.wantNoPods()
}
