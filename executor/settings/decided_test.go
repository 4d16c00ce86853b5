package settings_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/socialweb-computer/tenant-executor/executor/settings"
)

const whole = `
[cluster]
url = "https://127.0.0.1:36443"
ca_file = "/etc/ca.crt"
cert_file = "/etc/client.crt"
key_file = "/etc/client.key"

[kubernetes]
namespace = "ci"
namespace_overwrite_allowed = "^ci-"
cleanup_grace_period_seconds = 3

[kubernetes.node_selector]
pool = "ci"

[run]
cancel_grace = "7s"

[state]
dir = "/srv/state"

[[warm.policy]]
idle_count = 2
periods = ["* 8-17 * * mon-fri"]

[warm]
pause_pod_image = "pause:1"
`

func TestDecided(t *testing.T) {
	before, err := settings.Parse("driver.toml", []byte(whole))
	if err != nil {
		t.Fatal(err)
	}
	text, err := before.Decide().Text()
	if err != nil {
		t.Fatal(err)
	}
	decided, err := settings.ParseDecided("new_key = 1\n" + text)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before.Decide(), decided, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("what was decided has changed on its way (-want +got):\n%s", diff)
	}
	// An edit changes nothing of it, and what was not decided is as in the file.
	after := before
	after.Cluster.URL, after.Kubernetes.Namespace, after.Run.CancelGrace, after.Kubernetes.Image = "https://127.0.0.1:1", "other", "1s", "debian:12"
	got := decided.Over(after)
	if got.Cluster.URL != before.Cluster.URL || got.Kubernetes.Namespace != "ci" || got.Run.CancelGrace != "7s" || got.Kubernetes.Image != "debian:12" {
		t.Errorf("over an edited file: %+v", got)
	}
	if _, err := settings.ParseDecided("[cluster]\nurl = \"http://example.com\"\n"); err == nil {
		t.Error("an address that no configuration may have is taken")
	}
}

// Later stages are handed nothing that may hold a secret: every text of the
// [kubernetes] table is a canary, but for the few that they need.
func TestDecidedHoldsNoSecrets(t *testing.T) {
	var s settings.Settings
	const canary = "canary-9931"
	for _, field := range s.Kubernetes.Fields() {
		field.SetText(canary)
		field.SetMap(map[string]string{canary: canary})
	}
	s.Kubernetes.Services = []settings.Service{{Name: canary, Environment: []string{canary}}}
	s.Inherit.ConfigFile = canary
	text, err := s.Decide().Text()
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(text, "\n") {
		key, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		known := map[string]bool{"namespace": true, "namespace_overwrite_allowed": true, canary: true, "'" + canary + "'": true}
		if strings.Contains(line, canary) && !known[key] {
			t.Errorf("%s", line)
		}
	}
}

// Whatever is wrong with the file elsewhere, or however little of it is written
// yet, the cluster and the namespace are read if they are there; a namespace is
// never guessed.
func TestEssential(t *testing.T) {
	for _, test := range []struct {
		name, text string
		want       bool
	}{
		{"whole", whole, true},
		{"an unknown key", whole + "[job]\nbuild_dir = \"/x\"\n", true},
		{"a value that cannot be", strings.Replace(whole, `"7s"`, `"soon"`, 1), true},
		{"a value of another type", strings.Replace(whole, `"7s"`, `7`, 1), true},
		{"no TOML below", whole + "]]]\n<<<<<<< HEAD\n", true},
		{"empty", "", false},
		{"no namespace", strings.Replace(whole, `namespace = "ci"`, "", 1), false},
		{"no cluster", strings.Replace(whole, "url =", "#", 1), false},
		{"a key that is no file", strings.Replace(whole, `ca_file = "/etc/ca.crt"`, "ca_file = 1", 1), false},
	} {
		got, err := settings.Essential("driver.toml", []byte(test.text))
		if (err == nil) != test.want {
			t.Errorf("%s: %v", test.name, err)
		}
		if err == nil && (got.Cluster.URL != "https://127.0.0.1:36443" || got.Kubernetes.Namespace != "ci" || got.State.Dir != "/srv/state") {
			t.Errorf("%s: %+v", test.name, got)
		}
	}
	// Cut off anywhere.
	for n := range len(whole) {
		got, err := settings.Essential("driver.toml", []byte(whole[:n]))
		if err == nil && (got.Cluster.KeyFile != "/etc/client.key" || got.Kubernetes.Namespace != "ci") {
			t.Errorf("cut off after %q: %+v", whole[max(0, n-20):n], got)
		}
	}
	if _, err := settings.Essential("driver.toml", []byte(whole[:strings.Index(whole, "[run]")+8])); err != nil {
		t.Errorf("cut off below the namespace: %v", err)
	}
}
