package inherit_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/socialweb-computer/tenant-executor/executor/inherit"
	"github.com/socialweb-computer/tenant-executor/executor/settings"
)

const secret = "glrt-t3_abcdefghijSECRET"

// runners is a config.toml as registering leaves it, with settings in it.
const runners = `
concurrent = 4
shutdown_timeout = 0

[session_server]
  session_timeout = 1800

[[runners]]
  name = "one"
  limit = 2
  url = "https://gitlab.example.com"
  id = 7
  token = "` + secret + `"
  executor = "kubernetes"
  builds_dir = "/work"
  shell = ""
  proxy_exec = true
  [runners.kubernetes]
    host = "https://127.0.0.1:36443"
    bearer_token_overwrite_allowed = false
    bearer_token = "SECRET"
    Image = "debian:12"
    namespace = ""
    namespace_overwrite_allowed = "^ci-"
    cpu_limit = "2"
    cpu_limit_overwrite_max_allowed = "4"
    helper_memory_request = "128Mi"
    poll_timeout = 600
    poll_interval = 0
    no_such_key = 1
    helper_cpu_limit = 3
    cert_file = "/etc/x/client.crt"
    [runners.kubernetes.node_selector]
      pool = "ci"
    [runners.kubernetes.pod_labels]
      team = "platform"
      "job.runner.gitlab.com/pod" = "x"
    [runners.kubernetes.affinity]
    [runners.kubernetes.autoscaler]
      max_pause_pods = 3
      nonsense = true
      [[runners.kubernetes.autoscaler.policy]]
        idle_count = 2
        idle_time = "5m0s"
        made_up = "x"

[[runners]]
  name = "two"
  token = "t1_othertokenSECRET"
  executor = "custom"
`

func read(t *testing.T, text string) inherit.File {
	t.Helper()
	file, err := inherit.Read("config.toml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return file
}

func TestRead(t *testing.T) {
	file := read(t, runners)
	if file.Concurrent != 4 || len(file.Runners) != 2 {
		t.Fatalf("read %+v", file)
	}
	one, err := file.Find("abcdefghi")
	if err != nil || one.Name != "one" || one.Limit != 2 || one.Executor != "kubernetes" || one.Label() != "one (abcdefghi)" {
		t.Errorf("found %+v, %v", one, err)
	}
	if shown := fmt.Sprintf("%+v", file); strings.Contains(shown, "SECRET") {
		t.Errorf("a token is kept: %s", shown)
	}
	only, err := file.Only()
	if err != nil || only.Name != "two" {
		t.Errorf("the only one is %+v, %v", only, err)
	}
}

func TestFindRefuses(t *testing.T) {
	twice := runners + "[[runners]]\nname = \"three\"\ntoken = \"" + secret + "2\"\nexecutor = \"custom\"\n"
	_, absent := read(t, runners).Find("nosuchone")
	_, ambiguous := read(t, twice).Find("abcdefghi")
	_, several := read(t, twice).Only()
	_, none := read(t, strings.ReplaceAll(runners, `"custom"`, `"shell"`)).Only()
	for _, test := range []struct {
		err  error
		want []string
	}{
		{absent, []string{"config.toml", `"nosuchone"`, "one (abcdefghi), two (othertoke)"}},
		{ambiguous, []string{"several", "one (abcdefghi), three (abcdefghi)"}},
		{several, []string{"2 runners with the custom executor"}},
		{none, []string{"0 runners with the custom executor", "two (othertoke)"}},
	} {
		if test.err == nil {
			t.Errorf("no error that says %q", test.want)
			continue
		}
		for _, part := range test.want {
			if !strings.Contains(test.err.Error(), part) {
				t.Errorf("%v lacks %q", test.err, part)
			}
		}
		if strings.Contains(test.err.Error(), "SECRET") {
			t.Errorf("a token is shown: %v", test.err)
		}
	}
}

func TestReadRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"":                                  "no [[runners]]",
		"concurrent = 3":                    "no [[runners]]",
		"runners = 3":                       "no [[runners]]",
		"[[runners]]\ntoken = SECRET":       "line 2",
		"[[runners]]\ntoken = \"SECRET\" x": "line 2",
	} {
		_, err := inherit.Read("config.toml", []byte(text))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "SECRET") {
			t.Errorf("%q: error %v, want one with %q and no token", text, err, want)
		}
	}
}

// The table is the runner's own test of its short tokens
// (helpers/shorten_token_test.go), as facts.
func TestShortToken(t *testing.T) {
	for token, want := range map[string]string{
		"": "", "short": "short", "veryverylongtoken": "veryveryl",
		"t3_t9Wkyj-HGRkqQ": "t9Wkyj-HG", "t4_t9Wkyj-HGRkqQ": "t4_t9Wkyj",
		"glrt-t9Wkyj-HGRkqQ": "t9Wkyj-HG", "glrt-t1_t9Wkyj-HGRkqQ": "t9Wkyj-HG",
		"glrtr-t9Wkyj-HGRkqQ": "t9Wkyj-HG", "glrtr-t1_t9Wkyj-HGRkqQ": "t1_t9Wkyj",
		"glcbt-t2_t9Wkyj-HGRkqQ": "t2_t9Wkyj",
		"GR1348941Z196cJVywzZpx": "Z196cJVyw", "GR134894-196cJVywzZpx": "GR134894r",
		"glrt--abcdefghijk": "r-abcdefg", "_abcdefghijk": "r_abcdefg",
		"abcdefgh-": "abcdefghr", "_x": "rr", "-abc": "r-ab", "-": "r",
	} {
		if got := inherit.ShortToken(token); got != want {
			t.Errorf("%q is %q in short, want %q", token, got, want)
		}
	}
}

func TestCarry(t *testing.T) {
	one, err := read(t, runners).Find("abcdefghi")
	if err != nil {
		t.Fatal(err)
	}
	got, rows := inherit.Carry(one)
	want := settings.Inherited{
		"cluster": {"url": "https://127.0.0.1:36443", "cert_file": "/etc/x/client.crt"},
		"job":     {"builds_dir": "/work"},
		"kubernetes": {
			"image": "debian:12", "namespace_overwrite_allowed": "^ci-", "cpu_limit": "2", "cpu_limit_overwrite_max_allowed": "4",
			"helper_memory_request": "128Mi", "node_selector": map[string]any{"pool": "ci"}, "pod_labels": map[string]any{"team": "platform"},
		},
		"warm": {
			"max_pause_pods": int64(3), "pause_pod_image": "registry.k8s.io/pause:3.10",
			"policy": []any{map[string]any{"idle_count": int64(2), "idle_time": "5m0s"}},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	states := map[string]inherit.State{}
	for _, row := range rows {
		states[row.Key] = row.State
		if row.State != inherit.Carried && row.Note == "" {
			t.Errorf("nothing says why %s is %s", row.Key, row.State)
		}
		if strings.Contains(row.Note, "SECRET") {
			t.Errorf("a token is shown: %+v", row)
		}
	}
	wantStates := map[string]inherit.State{
		"host": inherit.Differs, "cert_file": inherit.Differs, "bearer_token": inherit.NotPossible,
		"image": inherit.Carried, "namespace_overwrite_allowed": inherit.Carried, "cpu_limit": inherit.Carried, "cpu_limit_overwrite_max_allowed": inherit.Carried,
		"helper_memory_request": inherit.Carried, "node_selector": inherit.Carried,
		"pod_labels": inherit.Carried, "pod_labels.job.runner.gitlab.com/pod": inherit.NotPossible,
		"poll_timeout": inherit.Pointless, "no_such_key": inherit.NotPossible, "helper_cpu_limit": inherit.Refused,
		"autoscaler.max_pause_pods": inherit.Differs, "autoscaler.policy": inherit.Differs,
		"autoscaler.policy.made_up": inherit.NotPossible, "autoscaler.nonsense": inherit.Refused,
		"builds_dir": inherit.Differs, "proxy_exec": inherit.NotPossible,
	}
	if diff := cmp.Diff(wantStates, states); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// A host that is not on the loopback interface is no address of a tenant
// cluster.
func TestCarryRefusesAnotherHost(t *testing.T) {
	r := inherit.Runner{Kubernetes: map[string]any{"host": "https://10.0.0.1:6443"}}
	got, rows := inherit.Carry(r)
	if len(got["cluster"]) != 0 || len(rows) != 1 || rows[0].State != inherit.Refused || !strings.Contains(rows[0].Note, "loopback") {
		t.Errorf("carried %v: %+v", got, rows)
	}
}

// The runner reads its keys in any case; names that people have chosen keep
// theirs.
func TestKeysInAnyCase(t *testing.T) {
	file, err := inherit.Read("config.toml", []byte(`Concurrent = 3
[[Runners]]
Name = "one"
Token = "glrt-abcdefghijkSECRET"
Executor = "custom"
Builds_Dir = "/b"
builds_dir = "/lower"
[Runners.Feature_Flags]
FF_CONCRETE = true
[Runners.Kubernetes]
Image = "x:1"
[Runners.Kubernetes.Pod_Labels]
Team = "A"
[[Runners.Kubernetes.Volumes.Host_Path]]
Name = "ccache"
Mount_Path = "/ccache"
`))
	if err != nil {
		t.Fatal(err)
	}
	if len(file.Runners) != 1 || file.Concurrent != 3 || file.Runners[0].ShortToken != "abcdefghi" || len(file.Custom()) != 1 || file.Runners[0].Has("token") {
		t.Fatalf("got %+v", file)
	}
	keys, rows := inherit.Carry(file.Runners[0])
	kubernetes := keys["kubernetes"]
	if kubernetes["image"] != "x:1" || kubernetes["pod_labels"].(map[string]any)["Team"] != "A" || keys["job"]["builds_dir"] != "/lower" {
		t.Errorf("keys are %v", keys)
	}
	for _, want := range []string{"image", "pod_labels", "volumes", "FF_CONCRETE", "builds_dir"} {
		if !slices.ContainsFunc(rows, func(r inherit.Row) bool { return r.Key == want }) {
			t.Errorf("%s is lost in silence: %v", want, rows)
		}
	}
}
