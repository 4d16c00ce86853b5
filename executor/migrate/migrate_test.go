package migrate_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/pelletier/go-toml/v2"

	"github.com/socialweb-computer/tenant-executor/executor/inherit"
	"github.com/socialweb-computer/tenant-executor/executor/migrate"
	"github.com/socialweb-computer/tenant-executor/executor/settings"
)

const cluster = `
    host = "https://127.0.0.1:36443"
    ca_file = "/x/ca.crt"
    cert_file = "/x/client.crt"
    key_file = "/x/client.key"
    helper_image = "helper:1"
`

func entry(name, token, more string) string {
	return "[[runners]]\nname = \"" + name + "\"\ntoken = \"glrt-" + token + "SECRET\"\nexecutor = \"kubernetes\"\n" + more + "[runners.kubernetes]\n" + cluster
}

func options() migrate.Options {
	return migrate.Options{Program: "/usr/local/bin/tenant-executor", Folder: "/etc/tenant-executor"}
}

func plan(t *testing.T, text, only string, o migrate.Options) []migrate.Migration {
	t.Helper()
	file, err := inherit.Read("/etc/gitlab-runner/config.toml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	all, err := migrate.Plan(file, only, o)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range all {
		if strings.Contains(m.RunnerConfig+m.DriverConfig, "SECRET") {
			t.Errorf("a token is shown: %+v", m)
		}
	}
	return all
}

// The runner's entry is what examples/runner-config.toml shows, and TOML.
func TestRunnerConfig(t *testing.T) {
	m := plan(t, "concurrent = 10\n"+entry("one", "tokenone1", ""), "", options())[0]
	var got, want struct {
		Runners []map[string]any `toml:"runners"`
	}
	if err := toml.Unmarshal([]byte("[[runners]]\n"+m.RunnerConfig), &got); err != nil {
		t.Fatalf("%v in\n%s", err, m.RunnerConfig)
	}
	example, err := os.ReadFile("../../examples/runner-config.toml")
	if err != nil {
		t.Fatal(err)
	}
	if err := toml.Unmarshal(example, &want); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"name", "url", "token"} {
		delete(want.Runners[0], key)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-examples/runner-config.toml +got:\n%s", diff)
	}
	if !strings.Contains(m.Global, "shutdown_timeout = 60") {
		t.Errorf("at the top of the file: %q", m.Global)
	}
}

// What the operator has set already stays.
func TestRunnerConfigKeepsSettings(t *testing.T) {
	m := plan(t, "concurrent = 10\nshutdown_timeout = 90\n"+
		entry("one", "tokenone1", "safe_directory_checkout = false\n[runners.custom_build_dir]\nenabled = false\n"), "", options())[0]
	if m.Global != "" || strings.Contains(m.RunnerConfig, "safe_directory_checkout") || strings.Contains(m.RunnerConfig, "custom_build_dir") {
		t.Errorf("%s%s", m.Global, m.RunnerConfig)
	}
}

// The driver takes the configuration as it is written, and it means what the
// runner's meant.
func TestDriverConfig(t *testing.T) {
	m := plan(t, "concurrent = 10\n"+entry("one", "tokenone1", "")+"cpu_limit = \"2\"\n[runners.kubernetes.pod_labels]\nteam = \"a\"\n", "", options())[0]
	if len(m.Missing) != 0 || len(m.Warnings) != 0 || m.DriverPath != settings.DefaultPath {
		t.Errorf("missing %q, warnings %q, path %s", m.Missing, m.Warnings, m.DriverPath)
	}
	s, err := settings.Parse(m.DriverPath, []byte(m.DriverConfig))
	if err != nil {
		t.Fatalf("%v in\n%s", err, m.DriverConfig)
	}
	if s.Cluster.URL != "https://127.0.0.1:36443" || s.Cluster.KeyFile != "/x/client.key" || s.Kubernetes.CPULimit != "2" || s.Kubernetes.PodLabels["team"] != "a" {
		t.Errorf("got %+v", s)
	}
}

func TestDriverConfigThatInherits(t *testing.T) {
	o := options()
	o.Inherit = true
	all := plan(t, "concurrent = 10\n"+entry("one", "tokenone1", "")+entry("two", "tokentwo1", ""), "", o)
	if len(all) != 2 || all[0].DriverPath != settings.DefaultPath || all[1].DriverPath != settings.DefaultPath || len(all[0].Missing) != 0 {
		t.Fatalf("got %+v", all)
	}
	draft, err := settings.Read("x", []byte(all[0].DriverConfig))
	if err != nil || draft.InheritFrom() != "/etc/gitlab-runner/config.toml" {
		t.Errorf("%v in\n%s", err, all[0].DriverConfig)
	}
}

// Several runners have files of their own, whatever their names.
func TestSeveralRunners(t *testing.T) {
	all := plan(t, entry("Große Büchse", "tokenone1", "")+entry("a/../b", "tokentwo1", "")+entry("a/../b", "tokentri1", "")+entry("", "tokenfor1", "")+
		"[[runners]]\nname=\"docker\"\nexecutor=\"docker\"\n", "", options())
	var paths []string
	for _, m := range all {
		paths = append(paths, m.DriverPath)
		if !strings.Contains(m.RunnerConfig, `prepare_args = ["prepare", "--config", "`+m.DriverPath+`"]`) {
			t.Errorf("the runner would not find %s:\n%s", m.DriverPath, m.RunnerConfig)
		}
	}
	want := []string{"/etc/tenant-executor/gro-e-b-chse.toml", "/etc/tenant-executor/a----b.toml", "/etc/tenant-executor/a----b-tokentri1.toml", "/etc/tenant-executor/tokenfor1.toml"}
	if diff := cmp.Diff(want, paths); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for _, only := range []string{"Große Büchse", "tokenone1"} {
		if one := plan(t, entry("Große Büchse", "tokenone1", "")+entry("b", "tokentwo1", ""), only, options()); len(one) != 1 || one[0].ShortToken != "tokenone1" || one[0].DriverPath != settings.DefaultPath {
			t.Errorf("%s: %+v", only, one)
		}
	}
}

func TestWhatIsMissing(t *testing.T) {
	m := plan(t, "concurrent = 1\n[[runners]]\ntoken = \"x\"\nprepare_timeout = \"10m\"\n[runners.kubernetes]\nhost = \"https://10.0.0.1\"\nhelper_image = \"h:1\"\ncpu_limit = \"lots\"\n", "", options())[0]
	text := strings.Join(m.Missing, "\n")
	for _, part := range []string{"cluster.url is not set", "cluster.ca_file is not set", `kubernetes.cpu_limit is "lots"`} {
		if !strings.Contains(text, part) {
			t.Errorf("what is missing lacks %q:\n%s", part, text)
		}
	}
	warnings := strings.Join(m.Warnings, "\n")
	for _, part := range []string{"concurrent = 1 in /etc/gitlab-runner/config.toml", `prepare_timeout = "10m"`, "32m0s together"} {
		if !strings.Contains(warnings, part) {
			t.Errorf("the warnings lack %q:\n%s", part, warnings)
		}
	}
}

func TestNothingToMigrate(t *testing.T) {
	file, err := inherit.Read("config.toml", []byte("[[runners]]\nname = \"docker\"\nexecutor = \"docker\"\n"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := migrate.Plan(file, "", options()); !errors.Is(err, migrate.ErrNone) {
		t.Errorf("error %v", err)
	}
	if _, err := migrate.Plan(file, "docker", options()); err == nil || !strings.Contains(err.Error(), `"docker"`) {
		t.Errorf("error %v", err)
	}
}

// What the driver would refuse is said, whether it shows in the settings or in
// the Pod that they make.
func TestWhatTheDriverRefusesIsMissing(t *testing.T) {
	for text, want := range map[string]string{
		"cleanup_grace_period_seconds = 0": "cleanup_grace_period_seconds is 0",
		"namespace = \"Not One\"":          `kubernetes.namespace is "Not One"`,
		"[runners.kubernetes.service_container_security_context]\nprivileged = true\nallow_privilege_escalation = false": "service_container_security_context",
		"[runners.kubernetes.node_selector]\n\"kubernetes.io/os\" = \"windows\"":                                         "windows",
	} {
		m := plan(t, "concurrent = 10\n"+strings.Replace(entry("one", "tokenone1", ""), "    helper_image = \"helper:1\"\n", "", 1)+text+"\n", "", options())[0]
		if !strings.Contains(strings.Join(m.Missing, "\n"), want) {
			t.Errorf("%s: missing is %q, want %q in it", text, m.Missing, want)
		}
	}
}

// Values of services' variables are for the file alone.
func TestValuesOfServicesAreNotShown(t *testing.T) {
	m := plan(t, "concurrent = 10\n"+entry("one", "tokenone1", "")+"[[runners.kubernetes.services]]\nname = \"postgres:16\"\nenvironment = [\"POSTGRES_PASSWORD=hunter2\"]\n", "", options())[0]
	if strings.Contains(m.DriverConfig, "hunter2") || !strings.Contains(m.DriverConfig, "POSTGRES_PASSWORD=(not shown)") {
		t.Errorf("shown:\n%s", m.DriverConfig)
	}
	s, err := settings.Parse(m.DriverPath, []byte(m.DriverFile))
	if err != nil || s.Kubernetes.Services[0].Environment[0] != "POSTGRES_PASSWORD=hunter2" {
		t.Errorf("%v in\n%s", err, m.DriverFile)
	}
}

// Old registrations wrote an empty table. A second one would be no TOML, and what
// counts is whether the key is set.
func TestEmptyTableOfBuildFolders(t *testing.T) {
	entryOf := func(more string) string {
		return plan(t, "concurrent = 10\n"+entry("one", "tokenone1", more), "", options())[0].RunnerConfig
	}
	if got := entryOf("[runners.custom_build_dir]\n"); strings.Contains(got, "\n  [runners.custom_build_dir]") || !strings.Contains(got, "that is there:  enabled = true") {
		t.Errorf("with an empty table:\n%s", got)
	}
	if got := entryOf("[runners.custom_build_dir]\nenabled = false\n"); strings.Contains(got, "custom_build_dir") {
		t.Errorf("with a key of the operator's:\n%s", got)
	}
}
