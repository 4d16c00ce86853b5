package doctor

import (
	"errors"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/socialweb-computer/tenant-executor/executor/settings"
)

// example is a runner's config.toml as examples/runner-config.toml, with a
// secret that must not be seen.
const (
	secret  = "glrt-t3_abcdefghi-secret"
	example = `concurrent = 10
shutdown_timeout = 60
[[runners]]
name = "tenant cluster"
url = "https://gitlab.example.com"
token = "` + secret + `"
executor = "custom"
safe_directory_checkout = true
[runners.custom_build_dir]
enabled = true
[runners.custom]
config_exec = "/usr/local/bin/tenant-executor"
config_args = ["config"]
prepare_exec = "/usr/local/bin/tenant-executor"
prepare_args = ["prepare"]
prepare_exec_timeout = 2400
run_exec = "/usr/local/bin/tenant-executor"
run_args = ["run"]
cleanup_exec = "/usr/local/bin/tenant-executor"
cleanup_args = ["cleanup"]
graceful_kill_timeout = 60
`
)

// entry is the one entry of the example, after a replacement.
func entry(t *testing.T, old, by string) (runnerFile, runnerEntry) {
	t.Helper()
	if !strings.Contains(example, old) {
		t.Fatalf("the example has no %q", old)
	}
	f, err := parseRunnerFile([]byte(strings.Replace(example, old, by, 1)))
	if err != nil || len(f.Runners) != 1 {
		t.Fatalf("%+v, %v", f, err)
	}
	return f, f.Runners[0]
}

// worstOf is the worst of several results, with all that they say.
func worstOf(all []Result) Result {
	w := worst(all)
	var texts []string
	for _, r := range all {
		texts = append(texts, r.Evidence)
	}
	w.Evidence = strings.Join(texts, "; ")
	return w
}

func TestJudgeRunnerFile(t *testing.T) {
	expect(t, map[string]judged{
		"well":             {judgeRunnerFile("/c", false, file(t, 0o600), nil), OK, "0600"},
		"for its group":    {judgeRunnerFile("/c", false, file(t, 0o640), nil), OK, "0640"},
		"for all":          {judgeRunnerFile("/c", false, file(t, 0o644), nil), Warning, "chmod 600 /c"},
		"not there":        {judgeRunnerFile("/c", false, nil, pathError(syscall.ENOENT)), Skipped, "--runner-config"},
		"not this user's":  {judgeRunnerFile("/c", false, nil, pathError(syscall.EACCES)), Skipped, "as root"},
		"named, not there": {judgeRunnerFile("/c", true, nil, pathError(syscall.ENOENT)), Failure, "no such file"},
		"named, broken":    {judgeRunnerFile("/c", true, nil, errNotTOML), Failure, "not valid TOML"},
	})
}

// What the library says about a broken file would quote from it.
func TestBrokenRunnerFileShowsNoToken(t *testing.T) {
	for _, text := range []string{example + "x = [" + secret, strings.Replace(example, `executor = "custom"`, "executor = 5", 1), "token = \"" + secret} {
		_, err := parseRunnerFile([]byte(text))
		if !errors.Is(err, errNotTOML) || strings.Contains(err.Error(), "secret") {
			t.Errorf("got %v", err)
		}
	}
}

func TestRunnersOfTheDriver(t *testing.T) {
	two := example + strings.ReplaceAll(strings.Replace(strings.SplitN(example, "60\n", 2)[1], "abcdefghi", "zyxwvutsr", 1), "tenant-executor\"", "wrapper.sh\"")
	f, err := parseRunnerFile([]byte(two))
	if err != nil {
		t.Fatal(err)
	}
	for short, want := range map[string][2]int{"": {1, 2}, "abcdefghi": {1, 1}, "zyxwvutsr": {0, 1}, "nobody": {0, 0}} {
		ours, customs := f.ours(short)
		if len(ours) != want[0] || len(customs) != want[1] {
			t.Errorf("%q: %d of %d", short, len(ours), len(customs))
		}
	}
	other, _ := entry(t, `executor = "custom"`, `executor = "kubernetes"`)
	if ours, customs := other.ours(""); len(ours) != 0 || len(customs) != 0 {
		t.Errorf("a runner of another executor counts: %d of %d", len(ours), len(customs))
	}
	_, one := entry(t, "", "")
	expect(t, map[string]judged{
		"ours":    {judgeRunnerEntry([]runnerEntry{one}, nil, ""), OK, `runner "tenant cluster"`},
		"others":  {judgeRunnerEntry(nil, []runnerEntry{one}, ""), Failure, "tenant-executor"},
		"none":    {judgeRunnerEntry(nil, nil, ""), Failure, `executor = "custom"`},
		"unknown": {judgeRunnerEntry(nil, nil, "nobody"), Failure, "nobody"},
	})
}

func TestJudgeRunnerPrograms(t *testing.T) {
	there := func(string) error { return nil }
	gone := func(string) error { return exec.ErrNotFound }
	judge := func(old, by string, missing func(string) error, config string) Result {
		_, r := entry(t, old, by)
		return worstOf(judgeRunnerPrograms(r, missing, config))
	}
	const config = settings.DefaultPath
	expect(t, map[string]judged{
		"well":            {judge("", "", there, config), OK, "config, prepare, run and cleanup"},
		"not installed":   {judge("", "", gone, config), Failure, "not found"},
		"no run":          {judge(`run_exec = "/usr/local/bin/tenant-executor"`, "", there, config), Failure, "no run_exec: every job fails"},
		"no cleanup":      {judge(`cleanup_exec = "/usr/local/bin/tenant-executor"`, "", there, config), Failure, "stay until they expire"},
		"no config":       {judge(`config_exec = "/usr/local/bin/tenant-executor"`, "", there, config), Failure, "no builds_dir"},
		"own builds_dir":  {judge("[runners.custom]\nconfig_exec = \"/usr/local/bin/tenant-executor\"", "[runners.custom]", there, config), Failure, "config_exec"},
		"wrapper":         {judge(`run_exec = "/usr/local/bin/tenant-executor"`, `run_exec = "/opt/wrapper.sh"`, there, config), Warning, "not looked into"},
		"wrong stage":     {judge(`["run"]`, `["prepare"]`, there, config), Failure, `without "run"`},
		"other file":      {judge("", "", there, "/etc/other.toml"), Warning, "of config, prepare, run, cleanup is " + config + ", and doctor looks at /etc/other.toml"},
		"other file, too": {judge(`["run"]`, `["run", "--config=/etc/third.toml"]`, there, config), Warning, "of run is /etc/third.toml"},
	})
	_, r := entry(t, `config_exec = "/usr/local/bin/tenant-executor"`, "")
	r.BuildsDir = "/builds"
	expect(t, map[string]judged{"own builds_dir": {worstOf(judgeRunnerPrograms(r, there, config)), Warning, "its own file"}})
}

func TestJudgeRunnerTimes(t *testing.T) {
	s := settings.Defaults()
	jobs := func(old, by string, ceiling int) Result {
		f, r := entry(t, old, by)
		return worstOf(judgeRunnerJobs(f, []runnerEntry{r}, ceiling))
	}
	prepare := func(old, by string) Result {
		_, r := entry(t, old, by)
		return judgeRunnerPrepare(r, s.Wait)
	}
	cancel := func(old, by string) Result {
		_, r := entry(t, old, by)
		return judgeRunnerCancel(r, s.Run)
	}
	cleanup := func(old, by string) Result {
		f, r := entry(t, old, by)
		return judgeRunnerCleanup(f, r, s.Cleanup)
	}
	checkout := func(old, by string) Result {
		_, r := entry(t, old, by)
		return worstOf(judgeRunnerCheckout(r))
	}
	address := func(by string) Result {
		_, r := entry(t, `url = "https://gitlab.example.com"`, by)
		return judgeRunnerURL(r)
	}
	expect(t, map[string]judged{
		"jobs":                   {jobs("", "", 10), OK, "up to 10 jobs"},
		"too many":               {jobs("", "", 5), Warning, "to 5"},
		"limited":                {jobs("executor =", "limit = 5\nexecutor =", 5), OK, "up to 5 jobs"},
		"few":                    {jobs("concurrent = 10", "concurrent = 3", 5), OK, "with more concurrent"},
		"one alone":              {jobs("concurrent = 10", "concurrent = 1", 5), Warning, "a second node is never used -> set concurrent, and limit of the runner, to 5"},
		"one, by default":        {jobs("concurrent = 10", "", 5), Warning, "a second node is never used"},
		"one, and one node":      {jobs("concurrent = 10", "", 1), OK, "up to 1 job at once"},
		"prepare":                {prepare("", ""), OK, "40m0s"},
		"prepare, default":       {prepare("prepare_exec_timeout = 2400", ""), OK, "1h0m0s"},
		"prepare, short":         {prepare("2400", "2220"), Warning, "above 2220 seconds"},
		"prepare_timeout":        {prepare("executor =", "prepare_timeout = \"10m\"\nexecutor ="), Warning, "prepare_timeout is 10m0s"},
		"prepare_timeout, large": {prepare("executor =", "prepare_timeout = \"2h\"\nexecutor ="), OK, "prepare_exec_timeout"},
		"cancel":                 {cancel("", ""), OK, "force_kill_timeout 10s"},
		"cancel, default":        {cancel("graceful_kill_timeout = 60", ""), OK, "10m0s"},
		"cancel, short":          {cancel("graceful_kill_timeout = 60", "graceful_kill_timeout = 10"), Warning, "above 10"},
		"cleanup":                {cleanup("", ""), OK, "shutdown_timeout 1m0s"},
		"cleanup, default":       {cleanup("shutdown_timeout = 60", ""), OK, "shutdown_timeout 30s"},
		"cleanup, shutdown":      {cleanup("shutdown_timeout = 60", "shutdown_timeout = 20"), Warning, "set shutdown_timeout above 20"},
		"cleanup, limit":         {cleanup("graceful", "cleanup_exec_timeout = 20\ngraceful"), Warning, "set cleanup_exec_timeout above 20"},
		"checkout":               {checkout("", ""), OK, ""},
		"no safe directory":      {checkout("safe_directory_checkout = true", ""), Warning, "dubious ownership"},
		"no build dir":           {checkout("enabled = true", "enabled = false"), Warning, "GIT_CLONE_PATH"},
		"address":                {address(`url = "https://gitlab.example.com"`), OK, "gitlab.example.com"},
		"loopback":               {address(`url = "http://127.0.0.1:8080"`), Failure, "is the Pod itself"},
		"loopback by name":       {address(`url = "http://gitlab.localhost"`), Failure, "is the Pod itself"},
		"clone_url":              {address("url = \"https://gitlab.example.com\"\nclone_url = \"http://[::1]/\""), Failure, "clone_url"},
		"no address":             {address(`url = ""`), Failure, "not an address"},
	})
}
