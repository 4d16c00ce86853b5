package main_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/socialweb-computer/tenant-executor/kube/faultserver"
)

// canaryRunner is the token of a runner, of which nobody may see more than the
// short form.
const (
	canaryRunner = "glrt-t3_abcdef123-canary-runner-token-4410"
	shortRunner  = "abcdef123"
)

// finding is a line of doctor's JSON output.
type finding struct{ Check, State, Evidence, Remedy string }

// examined is a harness that doctor finds well: with a runner's config.toml and
// a state folder.
func examined(t *testing.T) *harness {
	t.Helper()
	h := newHarness(t)
	h.secrets()
	h.settings["kubernetes.helper_image"] = "registry.test/gitlab-runner-helper:x86_64-v19.4.0"
	h.settings["tenant.pods_per_node"] = "1"
	if err := os.Mkdir(h.settings["state.dir"], 0o700); err != nil {
		t.Fatal(err)
	}
	h.runnerFile(func(text string) string { return text })
	return h
}

// runnerFile writes the runner's config.toml, after a change.
func (h *harness) runnerFile(change func(string) string) {
	h.t.Helper()
	driver := filepath.Join(h.folder, "tenant-executor")
	if err := os.Symlink(os.Getenv(builtPath), driver); err != nil && !os.IsExist(err) {
		h.t.Fatal(err)
	}
	var stages strings.Builder
	for _, stage := range []string{"config", "prepare", "run", "cleanup"} {
		fmt.Fprintf(&stages, "%s_exec = %q\n%s_args = [%q, \"--config\", %q]\n", stage, driver, stage, stage, h.env["TENANT_EXECUTOR_CONFIG"])
	}
	h.write("config.toml", change(fmt.Sprintf(`concurrent = 10
shutdown_timeout = 60
[[runners]]
name = "unit"
url = "https://gitlab.example.com"
token = %q
executor = "custom"
safe_directory_checkout = true
[runners.custom_build_dir]
enabled = true
[runners.custom]
graceful_kill_timeout = 60
%s`, canaryRunner, stages.String())))
}

// doctor runs doctor and gives its findings.
func (h *harness) doctor(args ...string) (findings []finding, code int) {
	h.t.Helper()
	got := h.stage(append([]string{"doctor", "--output", "json", "--runner-config", filepath.Join(h.folder, "config.toml")}, args...)...)
	var report struct{ Checks []finding }
	if err := json.Unmarshal([]byte(got.stdout), &report); err != nil {
		h.t.Fatalf("%v in %s%s", err, got.stdout, got.stderr)
	}
	for _, text := range []string{got.stdout, got.stderr} {
		if strings.Contains(text, "canary") || strings.Contains(text, "\x1b") {
			h.t.Errorf("the output has a token or a colour in it:\n%s", text)
		}
	}
	return report.Checks, got.code
}

// bad are the findings that are neither ok nor skipped, and what is skipped for
// other reasons than a missing --probe.
func bad(all []finding) (bad []finding, skipped []string) {
	for _, f := range all {
		switch {
		case f.State == "skipped" && !strings.HasPrefix(f.Evidence, "doctor --probe"):
			skipped = append(skipped, f.Check)
		case f.State == "warning" || f.State == "failure":
			bad = append(bad, f)
		}
	}
	return bad, skipped
}

// A well cluster is told to be well, and nothing is changed: not on the
// cluster, not on the host.
func TestDoctorFindsNothing(t *testing.T) {
	t.Parallel()
	h := examined(t)
	h.server.Deny("create", "namespaces") // which only namespace_per_job needs
	all, code := h.doctor()
	found, skipped := bad(all)
	if code != 0 || len(found) > 0 || len(skipped) > 0 {
		t.Errorf("exit code %d, found %q, skipped %q", code, found, skipped)
	}
	for _, r := range h.server.Requests() {
		reads := slices.Contains([]string{"get", "list"}, r.Verb) || strings.HasPrefix(r.Resource, "selfsubject")
		if !reads && r.Query != "dryRun=All" {
			t.Errorf("doctor asked for %s %s %s", r.Verb, r.Resource, r.Query)
		}
	}
	left, err := os.ReadDir(h.settings["state.dir"])
	if err != nil || len(left) > 0 {
		t.Errorf("the state folder holds %v (%v)", left, err)
	}
}

// The shortest configuration names no image: jobs name theirs, and the helper is
// GitLab's. That nobody has told how the gateway counts is worth a warning.
func TestDoctorOfTheShortestConfiguration(t *testing.T) {
	t.Parallel()
	h := examined(t)
	delete(h.settings, "kubernetes.helper_image")
	delete(h.settings, "kubernetes.image")
	delete(h.settings, "tenant.pods_per_node")
	all, code := h.doctor()
	if found, skipped := bad(all); code != 0 || len(found) != 1 || found[0].Check != "pods-per-node" || len(skipped) > 0 {
		t.Errorf("exit code %d, found %q, skipped %q", code, found, skipped)
	}
	var judged string
	for _, r := range h.server.Requests() {
		if r.Query == "dryRun=All" {
			judged = r.Resource
		}
	}
	if judged != "pods" {
		t.Errorf("the cluster was asked to judge %q, want pods", judged)
	}
}

// Where doctor runs as another user, a state folder of its making would be in
// the driver's way.
func TestDoctorMakesNoFolder(t *testing.T) {
	t.Parallel()
	h := examined(t)
	h.settings["state.dir"] = filepath.Join(h.folder, "none")
	all, code := h.doctor()
	if found, skipped := bad(all); code != 0 || len(found) > 0 || len(skipped) > 0 {
		t.Errorf("exit code %d, found %q, skipped %q", code, found, skipped)
	}
	if _, err := os.Stat(h.settings["state.dir"]); !os.IsNotExist(err) {
		t.Errorf("doctor made the state folder: %v", err)
	}
}

// The token of one runner may be in use on several hosts.
func TestDoctorTellsOtherHosts(t *testing.T) {
	t.Parallel()
	h := leaver(t)
	h.secrets()
	like := h.prepared()
	h.other(like, "elsewhere", firstRunner, owned(t, "host", "another"))
	got := h.stage("doctor", "--output", "json", "--runner", firstRunner)
	if want := "Pods of the same runner on other hosts: 1 of host "; !strings.Contains(got.stdout, want) {
		t.Errorf("no %q in\n%s", want, got.stdout)
	}
}

func TestDoctorFinds(t *testing.T) {
	t.Parallel()
	const everything = "apiserver server-certificate clock identity rights namespace nodes leftovers"
	for name, c := range map[string]struct {
		breaks func(*harness)
		// check and state are those of the one finding, evidence and remedy are
		// parts of it.
		check, state, evidence, remedy string
		// skipped are the checks that are skipped.
		skipped string
	}{
		"unknown key": {func(h *harness) { h.settings["kubernetes.namespce"] = "x" },
			"config-values", "failure", `unknown key "kubernetes.namespce"; did you mean "kubernetes.namespace"?`, "correct it", "route helper-image ca key certificate expiry " + everything + " pods-per-node warm runner-jobs runner-hold runner-prepare runner-cancel runner-cleanup state-folder outside"},
		"mount": {func(h *harness) { h.settings["cluster.url"] = "https://kcp.example.com/clusters/root:acme" },
			"config-values", "failure", "this is the kcp mount", "", "route helper-image ca key certificate expiry " + everything + " pods-per-node warm runner-jobs runner-hold runner-prepare runner-cancel runner-cleanup state-folder outside"},
		"key for all": {func(h *harness) { h.chmod("key_file", 0o644) },
			"key", "failure", "mode 0644", "0600", "certificate expiry identity rights namespace nodes leftovers"},
		"key of another": {func(h *harness) { h.settings["cluster.key_file"] = h.server.Credentials(h.t).KeyFile },
			"certificate", "failure", "private key does not match public key", "of one issue", "clock expiry identity rights namespace nodes leftovers"},
		"CA is a token": {func(h *harness) { h.settings["cluster.ca_file"] = h.write("token", "eyJhbGciOi.eyJpc3MiOi.c2ln") },
			"ca", "failure", "it is a bearer token", "certificate-authority-data", everything},
		"expired": {func(h *harness) { h.trust(h.server.ExpiredClient(h.t)) },
			"expiry", "failure", "expired on", "replace it", "clock identity rights namespace nodes leftovers"},
		"expires soon": {func(h *harness) { h.trust(h.server.ClientUntil(h.t, time.Now().Add(3*24*time.Hour+time.Hour))) },
			"expiry", "warning", "in 3 days", "replace it before", ""},
		"foreign client": {func(h *harness) { h.trust(h.server.ForeignClient(h.t)) },
			"apiserver", "failure", `signed by "CN=another CA"`, "", "server-certificate clock identity rights namespace nodes leftovers"},
		"foreign CA": {func(h *harness) { h.trust(h.server.ForeignCA(h.t)) },
			"apiserver", "failure", "unknown authority", "another cluster listens at this port", "server-certificate clock identity rights namespace nodes leftovers"},
		"nobody there": {func(h *harness) { h.server.Down() },
			"apiserver", "failure", "nobody listens at ", "start the tenant cluster", "server-certificate clock identity rights namespace nodes leftovers"},
		"silence": {func(h *harness) { h.server.Fail(-1, "", "", faultserver.Silence()) },
			"apiserver", "failure", "does not answer within 3s", "says nothing", "server-certificate clock identity rights namespace nodes leftovers"},
		"rights": {func(h *harness) { h.server.Deny("create", "pods/exec") },
			"rights", "failure", "may not create pods/exec in namespace ci", "examples/rbac.yaml", "leftovers"},
		"rights, a namespace a job": {func(h *harness) {
			h.settings["kubernetes.namespace_per_job"] = "true"
			h.server.Deny("create", "namespaces")
		}, "rights", "failure", "may not create namespaces in the whole cluster", "examples/rbac-namespace-per-job.yaml", "leftovers"},
		"unknown": {func(h *harness) {
			h.server.Fail(-1, "create", "selfsubjectreviews", faultserver.AnswerStatus(http.StatusUnauthorized, metav1.StatusReasonUnauthorized, "Unauthorized"))
		}, "identity", "failure", "does not know the driver's certificate", "issued by the cluster's CA", "rights namespace nodes leftovers"},
		"namespace": {func(h *harness) {
			h.server.Fail(1, "create", "pods", faultserver.AnswerStatus(http.StatusNotFound, metav1.StatusReasonNotFound, `namespaces "ci" not found`))
		}, "namespace", "failure", `namespaces "ci" not found`, "kubectl create namespace ci", ""},
		"policy": {func(h *harness) {
			h.server.Fail(1, "create", "pods", faultserver.AnswerStatus(http.StatusForbidden, metav1.StatusReasonForbidden, `violates PodSecurity "restricted:latest"`))
		}, "namespace", "failure", "violates PodSecurity", "policy", ""},
		"node": {func(h *harness) { h.server.SetNode("n2", false) },
			"nodes", "warning", "2 nodes, 1 of them not ready", "kubectl describe node", ""},
		"state folder": {func(h *harness) { _ = os.Chmod(h.settings["state.dir"], 0o777) },
			"state-folder", "warning", "mode 0777", "chmod 700", ""},
		"metrics nowhere": {func(h *harness) { h.settings["metrics.textfile"] = filepath.Join(h.folder, "none", "x.prom") },
			"outside", "warning", "x.prom (metrics.textfile) cannot be written by this user: ", "give it to the runner's user", ""},
		"leftover": {func(h *harness) {
			h.env["CUSTOM_ENV_CI_RUNNER_SHORT_TOKEN"] = shortRunner
			h.play()
			h.theJob()
			h.other(h.server.Pods()[0], "old", shortRunner, func(p *corev1.Pod) { expired(p); owned(h.t, "host", "elsewhere")(p) })
		}, "leftovers", "warning", "1 of runner abcdef123: 1 expired", "tenant-executor reap --runner abcdef123", ""},
		"runner's file is broken": {func(h *harness) { h.runnerFile(func(text string) string { return text + "\nx = [" + canaryRunner }) },
			"runner-file", "failure", "it is not valid TOML", "", "runner-entry runner-programs runner-jobs runner-hold runner-prepare runner-cancel runner-cleanup runner-checkout runner-url leftovers"},
		"no such executor": {func(h *harness) { h.runnerFile(replace(`"custom"`, `"kubernetes"`)) },
			"runner-entry", "failure", `no [[runners]] has executor = "custom"`, "examples/runner-config.toml", "runner-programs runner-jobs runner-hold runner-prepare runner-cancel runner-cleanup runner-checkout runner-url leftovers"},
		"program is not there": {func(h *harness) { h.runnerFile(replace(`run_exec = "`, `run_exec = "/nowhere`)) },
			"runner-programs", "failure", "no such file or directory", "install the driver", ""},
		"too many jobs": {func(h *harness) { h.runnerFile(replace("concurrent = 10", "concurrent = 12")) },
			"runner-jobs", "warning", "up to 12 jobs at once", "to 10", ""},
		"nodes are gone too soon": {func(h *harness) {
			h.settings["tenant.hold"] = "20s"
			h.runnerFile(func(text string) string { return "check_interval = 30\n" + text })
		}, "runner-hold", "warning", "nodes go 20s after the last Pod (tenant.hold), and the runner asks for jobs every 30s", "longer than 30s", ""},
		"GitLab on loopback": {func(h *harness) { h.runnerFile(replace("gitlab.example.com", "localhost:8080")) },
			"runner-url", "failure", "in a Pod is the Pod itself", "that Pods reach", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := examined(t)
			c.breaks(h)
			all, code := h.doctor()
			found, skipped := bad(all)
			if len(found) != 1 {
				t.Fatalf("found %q", found)
			}
			f := found[0]
			if f.Check != c.check || f.State != c.state || !strings.Contains(f.Evidence, c.evidence) || !strings.Contains(f.Remedy, c.remedy) || f.Remedy == "" {
				t.Errorf("found %q", f)
			}
			if want := map[string]int{"failure": 1, "warning": 0}[c.state]; code != want {
				t.Errorf("exit code %d, want %d", code, want)
			}
			want := strings.Fields(c.skipped)
			slices.Sort(want)
			slices.Sort(skipped)
			if diff := cmp.Diff(strings.Join(want, " "), strings.Join(skipped, " ")); diff != "" {
				t.Errorf("skipped (-want +got):\n%s", diff)
			}
		})
	}
}

func replace(old, by string) func(string) string {
	return func(text string) string { return strings.ReplaceAll(text, old, by) }
}

// chmod changes the mode of one of the credentials.
func (h *harness) chmod(key string, mode os.FileMode) {
	h.t.Helper()
	if err := os.Chmod(h.settings["cluster."+key], mode); err != nil {
		h.t.Fatal(err)
	}
}

// People get a table, without colours where the output is no terminal.
func TestDoctorTable(t *testing.T) {
	t.Parallel()
	h := examined(t)
	h.server.Down()
	got := h.stage("doctor", "--runner-config", filepath.Join(h.folder, "config.toml"))
	text := h.plain(got.stdout)
	for _, part := range []string{
		"\nCLUSTER\nfailure  apiserver           nobody listens at https://SERVER\n",
		"                             -> start the tenant cluster; if it runs, correct the port in cluster.url, or set cluster.discover_cluster",
		"skipped  server-certificate, clock, identity, rights, namespace: apiserver has failed\n",
		"ok       runner-entry        runner \"unit\"\n",
		"\n1 failed, ",
	} {
		if !strings.Contains(text, part) {
			t.Errorf("the table lacks %q", part)
		}
	}
	if got.code != 1 || got.stderr != "" || strings.Contains(got.stdout, "\x1b") || t.Failed() {
		t.Errorf("exit code %d, stderr %q, stdout\n%s", got.code, got.stderr, text)
	}
}

func TestDoctorIsAskedWrongly(t *testing.T) {
	t.Parallel()
	h := examined(t)
	for _, c := range []struct{ args, says string }{
		{"--output xml", `--output is "xml": use table, json or yaml`},
		{"--gitlab gitlab.example.com", "such as https://gitlab.example.com"},
		{"now", "doctor takes no arguments"},
	} {
		got := h.stage(append([]string{"doctor"}, strings.Fields(c.args)...)...)
		if got.code != systemCode || got.stdout != "" || !strings.Contains(got.stderr, c.says) {
			t.Errorf("%s: exit code %d, stdout %q, stderr %q", c.args, got.code, got.stdout, got.stderr)
		}
	}
}
