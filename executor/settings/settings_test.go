package settings_test

import (
	"flag"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/socialweb-computer/tenant-executor/executor/settings"
)

var update = flag.Bool("update", false, "write generated files instead of comparing them")

const examplePath = "../../examples/config.toml"

// minimal is the shortest file that is accepted.
const minimal = `
[cluster]
url = "https://127.0.0.1:36443"
ca_file = "/etc/x/ca.crt"
cert_file = "/etc/x/client.crt"
key_file = "/etc/x/client.key"
[kubernetes]
helper_image = "helper:1"
`

func TestExampleIsUpToDateAndValid(t *testing.T) {
	got := generated(t, examplePath, settings.Example())
	if _, err := settings.Parse("example", []byte(got)); err != nil {
		t.Errorf("the example is refused: %v", err)
	}
}

func TestReferenceIsUpToDate(t *testing.T) {
	generated(t, "../../docs/reference/configuration.md", settings.Reference())
}

// generated compares a file with what it has to hold.
func generated(t *testing.T, path, want string) string {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("%s is not what the settings say; run make update (-want +got):\n%s", path, diff)
	}
	return string(got)
}

// toml is what is written of the configuration in a text in Markdown.
func toml(text string) string {
	var blocks []string
	for i, block := range strings.Split(text, "```") {
		if rest, found := strings.CutPrefix(block, "toml\n"); found && i%2 == 1 {
			blocks = append(blocks, rest)
		}
	}
	return strings.Join(blocks, "\n")
}

// Every commented key of the reference has to be accepted too, or it would lead
// its reader into an error.
func TestEveryExampleValueIsValid(t *testing.T) {
	var uncommented []string
	other := false
	for _, line := range strings.Split(toml(settings.Reference()), "\n") {
		if rest, found := strings.CutPrefix(line, "# "); found {
			// The other ways to the cluster exclude url; TestWaysToTheCluster
			// has them.
			name, _, isKey := strings.Cut(rest, " = ")
			if isKey && !strings.Contains(name, " ") && !strings.HasPrefix(name, "discover_") && name != "in_cluster" {
				line = rest
			}
			if strings.HasPrefix(rest, "[") && strings.HasSuffix(rest, "]") {
				line = rest
				// A hook is one of three; TestHooks has the others.
				other = strings.Contains(rest, ".http_get") || strings.Contains(rest, ".tcp_socket")
			}
			if other {
				line = "# " + rest
			}
		}
		uncommented = append(uncommented, line)
	}
	text := strings.Join(uncommented, "\n")
	if _, err := settings.Parse("example", []byte(text)); err != nil {
		t.Errorf("%v\nin\n%s", err, text)
	}
	if got := strings.Count(text, "\n[") + strings.Count(text, " = "); got < 40 {
		t.Errorf("only %d keys and tables were tried; the test does not see the example any more", got)
	}
}

func TestDefaults(t *testing.T) {
	s, err := settings.Parse("f", []byte(minimal))
	if err != nil {
		t.Fatal(err)
	}
	if s.Job.BuildsDir != "/builds" || s.Kubernetes.Namespace != "default" || s.Wait.Node.Value() != 15*time.Minute || s.Run.Poll.Value() != 5*time.Second {
		t.Errorf("defaults are not filled in: %+v", s)
	}
	s, err = settings.Parse("f", []byte(minimal+"namespace = \"ci\"\n[wait]\nnode = \"90s\"\n"))
	if err != nil {
		t.Fatal(err)
	}
	if s.Kubernetes.Namespace != "ci" || s.Wait.Node.Value() != 90*time.Second || s.Wait.Start.Value() != 15*time.Minute {
		t.Errorf("written values do not win over defaults, or touch others: %+v", s)
	}
}

func TestRefusals(t *testing.T) {
	for _, test := range []struct {
		name, text string
		// want are parts of the error.
		want []string
	}{
		{"empty file", "", []string{"cluster.url is not set", "cluster.ca_file is not set"}},
		{"mistyped key", minimal + "namspace = \"x\"", []string{"line 9", `"kubernetes.namspace"`, `did you mean "kubernetes.namespace"?`}},
		{"key in the wrong table", minimal + "poll = \"5s\"", []string{`did you mean "run.poll"?`}},
		{"mistyped table", minimal + "[wiat]\nnode = \"1m\"", []string{`did you mean "wait`}},
		{"key like no other", minimal + "zzzzzzzzzzzzzz = 1", []string{"zzzzzzzzzzzzzz", "examples/config.toml"}},
		{"two mistakes", minimal + "namspace = \"x\"\nimag = \"y\"", []string{"namspace", "imag"}},
		{"not TOML", "[cluster", []string{"line 1"}},
		{"wrong type", minimal + "image = 12", []string{"line 9", "image"}},
		{"no time", minimal + "[wait]\nnode = \"ten minutes\"", []string{"wait.node", "ten minutes", "90s"}},
		{"time without unit", minimal + "[wait]\nnode = 10", []string{"line 10", "wait.node"}},
		{"budget too small", minimal + "[wait]\nnode = \"0s\"", []string{"wait.node is 0s", "at least 1s"}},
		{"negative", minimal + "[run]\ncancel_grace = \"-1s\"", []string{"run.cancel_grace"}},
		{"silence too short", minimal + "[run]\nsilence = \"1s\"", []string{"run.silence is 1s", "at least 3s"}},
		{"spool too small", minimal + "[run]\nspool_limit = \"1Mi\"", []string{"run.spool_limit", "16Mi"}},
		{"no spool", minimal + "[run]\nspool_limit = \"lots\"", []string{"run.spool_limit", "lots"}},
		{"no nodes", minimal + "[tenant]\nceiling = 0", []string{"tenant.ceiling is 0", "at least 1"}},
		{"number as text", minimal + "[tenant]\nceiling = \"10\"", []string{"line 10", "tenant.ceiling"}},
		{"none at all", minimal + "[tenant]\npods_per_node = 0", []string{"tenant.pods_per_node is 0", "leave it out"}},
		{"fewer than none", minimal + "[tenant]\npods_per_node = -1", []string{"tenant.pods_per_node"}},
		{"pull policy", minimal + "pull_policy = \"Always\"", []string{`"Always"`, "always, if-not-present, never"}},
		{"quantity", minimal + "cpu_limit = \"1,5\"", []string{"kubernetes.cpu_limit", "1,5", "500m"}},
		{"unit", minimal + "memory_limit = \"2GB\"", []string{"kubernetes.memory_limit", "2GB"}},
		{"request above limit", minimal + "cpu_request = \"2\"\ncpu_limit = \"1500m\"", []string{"kubernetes.cpu_request is 2", "cpu_limit, which is 1500m"}},
		{"namespace", minimal + "namespace = \"Not_Valid\"", []string{"kubernetes.namespace", "Not_Valid"}},
		{"selector", minimal + "node_selector = { \"a b\" = \"c\" }", []string{"kubernetes.node_selector", "a b"}},
		{"label name", minimal + "pod_labels = { \"a b\" = \"c\" }", []string{"kubernetes.pod_labels", "a b"}},
		{"value of a node's label", minimal + "node_selector = { a = \"b c\" }", []string{"kubernetes.node_selector", "b c"}},
		{"negative request", minimal + "cpu_request = \"-1\"", []string{"kubernetes.cpu_request", "0 or more"}},
		{"limit of nothing", minimal + "memory_limit = \"0\"", []string{"kubernetes.memory_limit", "above 0"}},
		{"gate", minimal + "namespace_overwrite_allowed = \"ci-(\"", []string{"kubernetes.namespace_overwrite_allowed", "ci-("}},
		{"ceiling of a resource", minimal + "helper_memory_limit_overwrite_max_allowed = \"lots\"", []string{"kubernetes.helper_memory_limit_overwrite_max_allowed", "lots"}},
		{"builds_dir", minimal + "[job]\nbuilds_dir = \"builds/\"", []string{"job.builds_dir", "whole path"}},
		{"root as cache", minimal + "[job]\ncache_dir = \"/\"", []string{"job.cache_dir"}},
		{"shell", minimal + "[job]\nshell = \"pwsh\"", []string{"job.shell", "bash or sh"}},
		{"linger without an image", minimal + "[warm]\nlinger = \"3m\"", []string{"warm.pause_pod_image is not set"}},
		{"policy without an image", minimal + "[[warm.policy]]\nidle_count = 1", []string{"warm.pause_pod_image is not set"}},
		{"negative linger", minimal + "[warm]\nlinger = \"-1s\"", []string{"warm.linger is -1s"}},
		{"linger below a second", minimal + "[warm]\nlinger = \"10ms\"", []string{"warm.linger is 10ms", "at least 1s"}},
		{"lifetime too short", minimal + "[warm]\nlifetime = \"5s\"", []string{"warm.lifetime is 5s", "at least 10s"}},
		{"negative limit", minimal + "[warm]\nmax_pause_pods = -1", []string{"warm.max_pause_pods is -1"}},
		{"priority class", minimal + "[warm]\npause_pod_priority_class_name = \"No Name\"", []string{"warm.pause_pod_priority_class_name", "No Name"}},
		{"periods", minimal + "[[warm.policy]]\n[[warm.policy]]\nperiods = [\"9-17\"]", []string{"warm.policy 2", `"9-17"`, "five fields"}},
		{"timezone", minimal + "[[warm.policy]]\ntimezone = \"Berlin\"", []string{"warm.policy 1", "Europe/Berlin"}},
		{"idle time", minimal + "[[warm.policy]]\nidle_time = \"soon\"", []string{"warm.policy 1: idle_time", "soon"}},
		{"negative idle count", minimal + "[[warm.policy]]\nidle_count = -2", []string{"warm.policy 1", "idle_count is -2"}},
		{"count that is no number", minimal + "[[warm.policy]]\nidle_count = \"two\"", []string{"line 10", "idle_count"}},
		{"mistyped key of a policy", minimal + "[[warm.policy]]\nidle_cuont = 2", []string{"line 10", `did you mean "warm.policy.idle_count"?`}},
		{"transport", strings.Replace(minimal, "ca_file", "transport = \"http\"\nca_file", 1), []string{`cluster.transport is "http"`, "spdy, websocket"}},
		{"relative file", strings.Replace(minimal, "/etc/x/ca.crt", "ca.crt", 1), []string{"cluster.ca_file", "whole path"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := settings.Parse("driver.toml", []byte(test.text))
			if err == nil {
				t.Fatal("accepted")
			}
			for _, part := range append(test.want, "driver.toml") {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("the error lacks %q:\n%v", part, err)
				}
			}
		})
	}
}

func TestURL(t *testing.T) {
	for url, part := range map[string]string{
		"http://127.0.0.1:36443":                         "https://",
		"https://127.0.0.1:36443/clusters/root:org:acme": "kcp mount",
		"https://10.0.0.5:6443":                          "loopback",
		"https://example.com":                            "loopback",
		"https://user:pw@127.0.0.1:6443":                 "nothing more",
		"https://127.0.0.1:6443/api":                     "without a path",
		"://":                                            "not an address",
	} {
		_, err := settings.Parse("f", []byte(strings.Replace(minimal, "https://127.0.0.1:36443", url, 1)))
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("url %s: error %v, want one with %q", url, err, part)
		}
		if err != nil && strings.Contains(err.Error(), "user:pw") {
			t.Errorf("url %s: the error shows the password: %v", url, err)
		}
	}
	for _, url := range []string{"https://127.0.0.1:36443", "https://localhost:1", "https://[::1]:36443/", "https://127.8.9.1:6443"} {
		if _, err := settings.Parse("f", []byte(strings.Replace(minimal, "https://127.0.0.1:36443", url, 1))); err != nil {
			t.Errorf("url %s is refused: %v", url, err)
		}
	}
}

func TestWarm(t *testing.T) {
	s, err := settings.Parse("f", []byte(minimal))
	if err != nil {
		t.Fatal(err)
	}
	if s.Warm.Used() || s.Warm.Lifetime.Value() != 15*time.Minute {
		t.Errorf("an empty file keeps nodes warm, or lacks defaults: %+v", s.Warm)
	}
	// What stands in [runners.kubernetes.autoscaler] can be carried over.
	s, err = settings.Parse("f", []byte(minimal+`
[warm]
max_pause_pods = 10
pause_pod_image = "pause:1"
pause_pod_priority_class_name = "idle"
[[warm.policy]]
idle_time = "5m0s"
[[warm.policy]]
periods = ["* 8-17 * * mon-fri"]
timezone = "UTC"
idle_count = 5
idle_time = "30m0s"
scale_factor = 0.5
scale_factor_limit = 8
`))
	if err != nil {
		t.Fatal(err)
	}
	policies, err := s.Warm.Compile()
	if err != nil || !s.Warm.Used() {
		t.Fatal(s.Warm.Used(), err)
	}
	monday := time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)
	if p := policies.At(monday); p.Wanted(0) != 5 || p.Wanted(14) != 7 || p.Wanted(40) != 8 || p.IdleTime != 30*time.Minute {
		t.Errorf("on Monday morning: %+v", p)
	}
	if p := policies.At(monday.Add(-6 * time.Hour)); p.Wanted(40) != 0 || p.IdleTime != 5*time.Minute {
		t.Errorf("in the night: %+v", p)
	}
	if s, err = settings.Parse("f", []byte(minimal+"[warm]\nlinger = \"3m\"\npause_pod_image = \"pause:1\"")); err != nil || !s.Warm.Used() {
		t.Errorf("linger alone: used %v, %v", s.Warm.Used(), err)
	}
}
