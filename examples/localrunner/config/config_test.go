package config

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const sample = `
concurrent = 4
[session_server]
  session_timeout = 1800
[[runners]]
  name = "docker one"
  token = "glrt-t1_abcdefghijkl"
  executor = "docker"
  [runners.docker]
    image = "alpine"
[[runners]]
  name = "tenant"
  url = "https://gitlab.example"
  token = "glrt-xyzxyzxyzxyz"
  executor = "custom"
  builds_dir = "/builds"
  cache_dir = "/cache"
  shell = "bash"
  environment = ["A=1", "B=$A"]
  prepare_timeout = "10m"
  [runners.kubernetes]
    namespace = "jobs"
  [runners.custom_build_dir]
    enabled = true
  [runners.custom]
    config_exec = "/usr/bin/tenant-executor"
    config_args = ["config"]
    run_exec = "/usr/bin/tenant-executor"
    run_args = ["run"]
    graceful_kill_timeout = 30
`

func TestParseTakesTheCustomRunner(t *testing.T) {
	graceful := 30
	want := &Runner{
		Name: "tenant", URL: "https://gitlab.example", Token: "glrt-xyzxyzxyzxyz", Executor: "custom",
		BuildsDir: "/builds", CacheDir: "/cache", Shell: "bash",
		Environment:    []string{"A=1", "B=$A"},
		PrepareTimeout: Duration(10 * time.Minute),
		CustomBuildDir: CustomBuildDir{Enabled: true},
		Custom: &Custom{
			ConfigExec: "/usr/bin/tenant-executor", ConfigArgs: []string{"config"},
			RunExec: "/usr/bin/tenant-executor", RunArgs: []string{"run"},
			GracefulKillTimeout: &graceful,
		},
	}
	for _, name := range []string{"", "tenant"} {
		got, err := parse([]byte(sample), name)
		if err != nil {
			t.Fatalf("name %q: %v", name, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("name %q (-want +got):\n%s", name, diff)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for name, c := range map[string]struct{ data, runner, want string }{
		"typing error in custom": {
			strings.Replace(sample, "run_args", "run_arg", 1), "",
			`[runners.custom] has no key "run_arg"; did you mean "run_args"?`,
		},
		"unknown runner": {sample, "tenent", `no runner is called "tenent"; did you mean "tenant"?`},
		"other executor": {sample, "docker one", `executor "docker"`},
		"none custom":    {strings.Replace(sample, `"custom"`, `"shell"`, 1), "", `no [[runners]] section has executor = "custom"`},
		"empty":          {"", "", "no [[runners]] section"},
		"bad TOML":       {"[[runners]]\nname = 'a\n", "", "line 2"},
		"bad duration":   {strings.Replace(sample, `"10m"`, `"10 minutes"`, 1), "", `"10 minutes" is not a duration`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parse([]byte(c.data), c.runner)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
		})
	}
}

func TestSeconds(t *testing.T) {
	zero, minus, five := 0, -1, 5
	for _, c := range []struct {
		limit *int
		want  time.Duration
	}{{nil, time.Hour}, {&zero, time.Hour}, {&minus, time.Hour}, {&five, 5 * time.Second}} {
		if got := Seconds(c.limit, time.Hour); got != c.want {
			t.Errorf("Seconds(%v) = %v, want %v", c.limit, got, c.want)
		}
	}
}

func TestShortToken(t *testing.T) {
	for token, want := range map[string]string{
		"":                       "",
		"abc":                    "abc",
		"fakerunnertoken":        "fakerunne",
		"glrt-abcdefghijkl":      "abcdefghi",
		"glrt-t1_abcdefghijkl":   "abcdefghi",
		"t3_abcdefghijkl":        "abcdefghi",
		"glrtr-abcdefghijkl":     "abcdefghi",
		"glcbt-64_xxxxxxxxxxx":   "64_xxxxxx",
		"-abcdefghijkl":          "r-abcdefg",
		"abcdefgh_jkl":           "abcdefghr",
		"glrt-t4_abcdefghijklmn": "t4_abcdef",
	} {
		r := Runner{Token: token}
		if got := r.ShortToken(); got != want {
			t.Errorf("ShortToken of %q = %q, want %q", token, got, want)
		}
	}
}
