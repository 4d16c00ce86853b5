package main_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/socialweb-computer/tenant-executor/kube/faultserver"
)

const acme = "tenancy.example.com/v1alpha1/clusters/acme"

// discovers has the driver find its cluster by a Cluster object.
func (h *harness) discovers() *faultserver.Workspace {
	h.t.Helper()
	w := faultserver.StartWorkspace(h.t)
	w.SetCluster(acme, h.server.URL())
	delete(h.settings, "cluster.url")
	h.settings["cluster.discover_kubeconfig"] = w.Kubeconfig(h.t)
	h.settings["cluster.discover_cluster"] = "acme"
	return w
}

// One stage asks where the cluster is; the next ones take its word, and
// prepare asks again.
func TestStagesFindTheCluster(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	w := h.discovers()
	for i, want := range []int{2, 2} {
		h.expect(h.stage("cleanup"), 0, "", "")
		if n := len(w.Requests()); n != want {
			t.Errorf("after cleanup %d the kcp side was asked %d times, want %d: %q", i+1, n, want, w.Requests())
		}
	}
	h.refusePods(h.server)
	h.expect(h.stage("prepare"), buildCode, lines(strings.Replace(using, "SERVER", "acme", 1), refused, quotaRemedy), "")
	if n := len(w.Requests()); n != 3 {
		t.Errorf("after prepare the kcp side was asked %d times, want 3: %q", n, w.Requests())
	}
}

const (
	refused     = `ERROR: the job's Pod: creating Pod ci/POD: pods "x" is forbidden: exceeded quota`
	quotaRemedy = "The message is the cluster's own; a setting of the [kubernetes] section causes it."
)

// refusePods has prepare end as soon as it has reached the cluster.
func (h *harness) refusePods(server *faultserver.Server) {
	server.Fail(-1, "create", "pods", faultserver.AnswerStatus(http.StatusForbidden, metav1.StatusReasonForbidden, `pods "x" is forbidden: exceeded quota`))
}

// A stage that finds nobody, or somebody else, at the cluster's last address
// asks where the cluster is by now.
func TestClusterThatHasMoved(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]func(*faultserver.Server){
		"nobody there":                 (*faultserver.Server).Down,
		"another cluster at its place": func(*faultserver.Server) {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t)
			w := h.discovers()
			h.expect(h.stage("cleanup"), 0, "", "")
			moved := faultserver.Start(t)
			w.SetCluster(acme, moved.URL())
			h.trust(moved.Credentials(t))
			leave(h.server)
			h.expect(h.stage("cleanup"), 0, "", "")
			if n := len(moved.Requests()); n != 1 {
				t.Errorf("%d requests came to the new place: %s", n, moved.Requests())
			}
		})
	}
}

// With a cluster that was found once, jobs run without kcp.
func TestJobsRunWithoutKCP(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	w := h.discovers()
	h.refusePods(h.server)
	h.expect(h.stage("prepare"), buildCode, lines(strings.Replace(using, "SERVER", "acme", 1), refused, quotaRemedy), "")
	w.Down()
	h.expect(h.stage("prepare"), buildCode, lines(strings.Replace(using, "SERVER", "acme", 1), refused, quotaRemedy), "")
	h.expect(h.stage("cleanup"), 0, "", "")

	// Where both are down, both are named.
	h.server.Down()
	h.settings["cleanup.timeout"] = "1s"
	got := h.stage("cleanup")
	if got.code != systemCode || !strings.Contains(got.stderr, "connection refused (the kcp side at "+w.URL()+" (") || !strings.Contains(got.stderr, "does not answer") {
		t.Errorf("ended with %d:\n%s", got.code, got.stderr)
	}
}

// A state folder that cannot be used costs a look-up, and a word to whom it
// concerns.
func TestWithoutAStateFolder(t *testing.T) {
	t.Parallel()
	for _, dir := range []string{"", "/proc/nope"} {
		h := newHarness(t)
		h.discovers()
		h.answerSetup()
		if h.settings["state.dir"] = dir; dir == "" {
			h.settings["state.dir"] = h.write("file", "")
		}
		const told = "WARNING: This host remembers nothing for the driver, neither cleanups that fail nor whose Pods are left: making the state folder: mkdir "
		if got := h.stage("prepare"); got.code != 0 || strings.Count(h.plain(got.stdout), told) != 1 {
			t.Errorf("prepare ended with %d: %s", got.code, got.stdout)
		}
		for range 2 {
			if got := h.stage("cleanup"); got.code != 0 || strings.Count(h.plain(got.stderr), told) != 1 || strings.Count(got.stderr, "WARNING") != 1 {
				t.Errorf("cleanup ended with %d: %s", got.code, got.stderr)
			}
		}
		for _, f := range first(h.doctor()) {
			if f.Check == "state-folder" && f.State != "warning" {
				t.Errorf("doctor says %+v", f)
			}
		}
	}
}

func first(findings []finding, _ int) []finding { return findings }

// What cannot work is refused before the cluster is asked for anything, with
// the reason and what to do.
func TestRefusedBeforeAnythingElse(t *testing.T) {
	t.Parallel()
	const (
		findRemedy = "The operator has to correct it, on the kcp side or in the [cluster] section of the driver's configuration."
		fileRemedy = "The operator has to replace or correct the file. It is read again for each connection."
	)
	points := func(url string) func(*harness) {
		return func(h *harness) { h.discovers().SetCluster(acme, url) }
	}
	tests := []struct {
		name   string
		change func(*harness)
		want   []string
	}{
		{"no such object", func(h *harness) { h.discovers().SetObject(acme, "") }, []string{
			`ERROR: finding the tenant cluster: there is no clusters.tenancy.example.com "acme" at https://`,
			"correct cluster.discover_cluster, or point the kubeconfig at the workspace", findRemedy}},
		{"no address yet", func(h *harness) { h.discovers().SetObject(acme, `{"status":{"phase":"Pending"}}`) }, []string{
			`has no .status.url (its phase is "Pending")`, "wait until the cluster is ready", findRemedy}},
		{"forbidden", func(h *harness) {
			h.discovers().Refuse(http.StatusForbidden, metav1.StatusReasonForbidden, "clusters is forbidden")
		}, []string{"does not let its user in: clusters is forbidden; give the kubeconfig's user the right to get the object", findRemedy}},
		{"kcp down", func(h *harness) { h.discovers().Down() }, []string{
			"ERROR: finding the tenant cluster: the kcp side at https://", "does not answer", "start kcp", findRemedy}},
		{"several groups", func(h *harness) {
			w := h.discovers()
			w.SetGroups(faultserver.Group{Name: "a.io", Version: "v1", Resources: []string{"clusters"}}, faultserver.Group{Name: "b.io", Version: "v1", Resources: []string{"clusters"}})
		}, []string{"clusters.a.io, clusters.b.io; choose one with cluster.discover_resource", findRemedy}},
		{"an address elsewhere", points("https://10.1.2.3:6443"), []string{
			`.status.url is "https://10.1.2.3:6443": a tenant cluster listens on the loopback interface of the kcp host; run the runner there`, "cluster.in_cluster", findRemedy}},
		{"the mount", points("https://kcp.example.com/clusters/root:acme"), []string{"this is the kcp mount, which takes bearer tokens only and carries no exec", findRemedy}},
		{"http", points("http://127.0.0.1:6443"), []string{"it has to start with https://", findRemedy}},
		{"a bearer token", func(h *harness) { h.settings["cluster.cert_file"] = h.write("token", "eyJh.eyJi.c2ln\n") }, []string{
			"ERROR: the driver's certificate: FOLDER/token: it holds no certificate (PEM), it is a bearer token", fileRemedy}},
		{"an expired certificate", func(h *harness) { h.trust(h.server.ExpiredClient(h.t)) }, []string{"the certificate expired on ", fileRemedy}},
		{"a key that others can read", func(h *harness) {
			if err := os.Chmod(h.settings["cluster.key_file"], 0o644); err != nil {
				h.t.Fatal(err)
			}
		}, []string{"others can read it (mode 0644)", "chmod 600", fileRemedy}},
		{"not in a Pod", func(h *harness) { h.inPod() }, []string{
			"ERROR: cluster.in_cluster is set: this process does not run in a Pod of the cluster", "The operator has to correct the configuration file."}},
		{"a Pod without a service account", func(h *harness) {
			h.inPod()
			h.env["KUBERNETES_SERVICE_HOST"], h.env["KUBERNETES_SERVICE_PORT"] = "10.0.0.1", "443"
		}, []string{"/var/run/secrets/kubernetes.io/serviceaccount/ca.crt: no such file or directory", fileRemedy}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t)
			test.change(h)
			got := h.stage("prepare")
			if got.code != systemCode || got.stderr != "" {
				t.Errorf("ended with %d, stderr %q", got.code, got.stderr)
			}
			for _, part := range test.want {
				if !strings.Contains(h.plain(got.stdout), part) {
					t.Errorf("the output lacks %q:\n%s", part, h.plain(got.stdout))
				}
			}
			if n := len(h.server.Requests()); n != 0 {
				t.Errorf("the cluster was asked: %s", h.server.Requests())
			}
		})
	}
}

// inPod has the driver believe that it runs in a Pod of the cluster.
func (h *harness) inPod() {
	for _, key := range []string{"url", "ca_file", "cert_file", "key_file"} {
		delete(h.settings, "cluster."+key)
	}
	h.settings["cluster.in_cluster"] = "true"
}

// A certificate of a CA that the cluster does not take is told from one that
// the cluster does not know.
func TestCertificateOfAnotherCA(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.trust(h.server.ForeignClient(t))
	got := h.stage("cleanup")
	for _, part := range []string{`it is signed by "CN=another CA"`, `the cluster takes certificates signed by "CN=test CA" alone`, "examples/rbac.yaml"} {
		if got.code != systemCode || !strings.Contains(got.stderr, part) {
			t.Errorf("ended with %d, the output lacks %q:\n%s", got.code, part, got.stderr)
		}
	}
}

// A certificate that soon expires is spoken of in the runner's log, once a
// day, and in no job's log.
func TestExpiryIsWarnedOf(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	until := time.Now().Add(13*24*time.Hour + time.Hour)
	h.trust(h.server.ClientUntil(t, until))
	h.refusePods(h.server)
	h.expect(h.stage("prepare"), buildCode, lines(using, refused, quotaRemedy), "")
	warning := "WARNING: the client certificate " + h.settings["cluster.cert_file"] + " expires on " + until.UTC().Format("2006-01-02 15:04 UTC") +
		", in 13 days; replace it before that, jobs that run need not stop for it\n"
	h.expect(h.stage("cleanup"), 0, "", warning)
	h.expect(h.stage("cleanup"), 0, "", "")

	notes, err := filepath.Glob(filepath.Join(h.folder, "state", "expiry-*"))
	if err != nil || len(notes) != 1 {
		t.Fatalf("the notes are %q, %v", notes, err)
	}
	for name, text := range map[string]string{
		"a day later":    time.Now().Add(-25 * time.Hour).UTC().Format(time.RFC3339),
		"a damaged note": "2026-1",
		"of the future":  time.Now().Add(100 * time.Hour).UTC().Format(time.RFC3339),
	} {
		if err := os.WriteFile(notes[0], []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := h.stage("cleanup"); h.plain(got.stderr) != warning {
			t.Errorf("%s: stderr %q", name, got.stderr)
		}
	}
	h.trust(h.server.ClientUntil(t, time.Now().Add(15*24*time.Hour)))
	h.expect(h.stage("cleanup"), 0, "", "")
}
