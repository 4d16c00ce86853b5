package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// inputs are the files that config has read, under names that the harness does
// not write anew before each stage.
type inputs struct{ own, runners string }

// freeze has the stages read files that a test changes.
func (h *harness) freeze() inputs {
	h.t.Helper()
	i := inputs{runners: h.settings["inherit.config_file"]}
	i.own = h.write("own.toml", h.config())
	h.env["TENANT_EXECUTOR_CONFIG"] = i.own
	return i
}

// breakages are what may happen to each of the files.
func breakages() map[string]func(t *testing.T, path string) {
	edit := func(change func(string) string) func(*testing.T, string) {
		return func(t *testing.T, path string) {
			t.Helper()
			text, err := os.ReadFile(path)
			if err == nil {
				err = os.WriteFile(path, []byte(change(string(text))), 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	return map[string]func(*testing.T, string){
		"gone": func(t *testing.T, path string) {
			t.Helper()
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		},
		"empty":              edit(func(string) string { return "" }),
		"half written":       edit(func(text string) string { return text[:len(text)/2] }),
		"its last line open": edit(func(text string) string { return text + "[run]\npoll = \"5" }),
		"a folder": func(t *testing.T, path string) {
			t.Helper()
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			if err := os.Mkdir(path, 0o700); err != nil {
				t.Fatal(err)
			}
		},
		"another namespace": edit(func(text string) string {
			return strings.ReplaceAll(text, `namespace = "ci"`, `namespace = "elsewhere"`)
		}),
		"overwrites refused": edit(func(text string) string { return strings.ReplaceAll(text, `"^ci-"`, `"^none$"`) }),
		"another runner":     edit(func(text string) string { return strings.ReplaceAll(text, "runner-ab", "runner-cd") }),
		"another cluster": edit(func(text string) string {
			return strings.ReplaceAll(text, "https://127.0.0.1:", "https://127.0.0.2:")
		}),
	}
}

// Whatever happens to the files of the configuration while a job runs, its
// script runs as if nothing had, and no Pod stays.
func TestLateStagesNeedNoConfiguration(t *testing.T) {
	t.Parallel()
	for _, chosen := range []string{"", "ci-chosen"} {
		for what, breaks := range breakages() {
			for _, file := range []string{"own", "runners"} {
				name := file + " file, " + what
				if chosen != "" {
					if file == "runners" {
						continue
					}
					name += ", in a namespace of the job's choice"
				}
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					h := newHarness(t)
					delete(h.settings, "kubernetes.namespace")
					h.settings["kubernetes.namespace_overwrite_allowed"] = "^ci-"
					h.env["CUSTOM_ENV_KUBERNETES_NAMESPACE_OVERWRITE"] = chosen
					h.inherits("", `namespace = "ci"`)
					i := h.freeze()
					h.play()
					h.configured()
					h.theJob()
					path := map[string]string{"own": i.own, "runners": i.runners}[file]
					breaks(t, path)
					if got := h.run("build_script", "echo said; exit 3"); got.code != buildCode || got.stdout != "said\n" || h.exitCodeFile() != "3\n" {
						t.Errorf("run ended with %d and %q: %s%s", got.code, h.exitCodeFile(), got.stdout, got.stderr)
					}
					if got := h.stage("cleanup"); got.code != 0 || len(h.server.Pods()) != 0 {
						t.Errorf("cleanup ended with %d and has left %d Pods: %s", got.code, len(h.server.Pods()), got.stderr)
					}
				})
			}
		}
	}
}

// A file that changes between config and prepare does not take the two apart:
// cleanup finds what prepare has made.
func TestConfigurationChangesBeforePrepare(t *testing.T) {
	t.Parallel()
	for what, breaks := range breakages() {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t)
			h.answerSetup()
			i := h.freeze()
			h.configured()
			breaks(t, i.own)
			got := h.stage("prepare")
			if whole := got.code == 0; !whole && (got.code != systemCode || !strings.Contains(got.stdout, "ERROR: the configuration")) {
				t.Errorf("prepare ended with %d: %s", got.code, got.stdout)
			}
			for _, p := range h.server.Pods() {
				if p.Namespace != namespace {
					t.Errorf("the Pod is in %s", p.Namespace)
				}
			}
			if got := h.stage("cleanup"); got.code != 0 || len(h.server.Pods()) != 0 {
				t.Errorf("cleanup ended with %d and has left %d Pods: %s", got.code, len(h.server.Pods()), got.stderr)
			}
		})
	}
}

// Cleanup works where no config ran, with a file of which only the cluster and
// the namespace can be used; and says what it cannot do.
func TestCleanupWithoutConfig(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		change func(string) string
		code   int
		want   string
	}{
		{"an unknown key", func(text string) string { return text + "[job]\nbuild_dir = \"/x\"\n" }, 0, `WARNING: The configuration cannot be read at present`},
		{"another table breaks off", func(text string) string { return text + "[tenant" }, 0, `WARNING: The configuration cannot be read at present`},
		{"the runner's file is gone", func(text string) string { return text + "[inherit]\nconfig_file = \"/nowhere/config.toml\"\n" }, 0, `WARNING: The configuration cannot be read at present`},
		{"no namespace", func(text string) string {
			return strings.Replace(text, `namespace = "ci"`, `namespace = ci`, 1)
		}, systemCode, "WARNING: This cleanup cannot be remembered for later"},
		{"empty", func(string) string { return "" }, systemCode, "WARNING: This cleanup cannot be remembered for later"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			h := leaver(t)
			h.prepared()
			h.freeze()
			h.write("own.toml", test.change(h.config()))
			got := h.stage("cleanup")
			if got.code != test.code || !strings.Contains(got.stderr, test.want) || (len(h.server.Pods()) == 0) != (test.code == 0) {
				t.Errorf("cleanup ended with %d and has left %d Pods: %s", got.code, len(h.server.Pods()), got.stderr)
			}
		})
	}
}

// A cleanup that cannot even begin is remembered, and done by the next stage
// that can.
func TestCleanupThatCannotBeginIsRemembered(t *testing.T) {
	t.Parallel()
	for _, configured := range []bool{true, false} {
		h := leaver(t)
		if configured {
			h.configured()
		}
		h.prepared()
		key := h.settings["cluster.key_file"]
		if err := os.Rename(key, key+".away"); err != nil {
			t.Fatal(err)
		}
		if configured {
			h.env["TENANT_EXECUTOR_CONFIG"] = filepath.Join(h.folder, "nowhere.toml")
		}
		if got := h.stage("cleanup"); got.code != systemCode || strings.Contains(got.stderr, "cannot be remembered") || len(h.undone()) != 1 {
			t.Errorf("configured %v: cleanup ended with %d: %s; %d cleanups are remembered", configured, got.code, got.stderr, len(h.undone()))
		}
		if err := os.Rename(key+".away", key); err != nil {
			t.Fatal(err)
		}
		h.env["TENANT_EXECUTOR_CONFIG"] = filepath.Join(h.folder, "driver.toml")
		h.job["id"] = 4712
		if got := h.stage("cleanup"); got.code != 0 || len(h.server.Pods()) != 0 || len(h.undone()) != 0 {
			t.Errorf("configured %v: %d Pods and %d cleanups are left: %s", configured, len(h.server.Pods()), len(h.undone()), got.stderr)
		}
	}
}

// What config hands on holds nothing of the job's, nor of the operator's
// secrets, and a job cannot put its own in the place of it.
func TestDecidedIsTheRunnersAlone(t *testing.T) {
	t.Parallel()
	h := leaver(t)
	h.settings["kubernetes.pod_labels_overwrite_allowed"] = "canary-setting"
	h.env["CUSTOM_ENV_TENANT_EXECUTOR_DECIDED"] = `{"job":"x","namespace":"others"}`
	h.configured()
	if text := h.env["TENANT_EXECUTOR_DECIDED"]; text == "" || strings.Contains(text, "canary") || strings.Contains(text, "others") {
		t.Errorf("config hands on %q", text)
	}
	// What belongs to another job is not taken.
	h.job["id"] = 4712
	h.settings["kubernetes.namespace"] = "other"
	h.prepared()
	if got := h.server.Pods(); got[0].Namespace != "other" {
		t.Errorf("the Pod is in %s", got[0].Namespace)
	}
}
