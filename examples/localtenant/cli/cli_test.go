package cli

import (
	"bytes"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/socialweb-computer/tenant-executor/examples/localtenant/daemon"
)

// run runs the command as a user does.
func run(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	cmd := New(Environment{
		In: strings.NewReader(""), Out: &out, Err: &out,
		Getenv: func(string) string { return "" }, Environ: func() []string { return nil }, Now: time.Now,
	})
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(t.Context())
	return out.String(), err
}

func TestEveryVerbExplainsItself(t *testing.T) {
	root := New(Environment{})
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		if cmd.Short == "" || cmd.Hidden {
			t.Errorf("%q says nothing about itself", cmd.CommandPath())
		}
		for _, child := range cmd.Commands() {
			visit(child)
		}
	}
	visit(root)
	help, err := run(t, "--help")
	if err != nil {
		t.Fatal(err)
	}
	for _, verb := range []string{"up", "down", "status", "leftovers", "node", "apiserver", "gateway", "registry", "kcp", "fault", "driver-config", "deps", "build", "kubeconfig"} {
		if !strings.Contains(help, "\n  "+verb+" ") {
			t.Errorf("the help does not list %s", verb)
		}
	}
}

func TestBadInput(t *testing.T) {
	root := filepath.Join(t.TempDir(), "root")
	at := func(args ...string) []string { return append(args, "--state-root", root) }
	for _, test := range []struct {
		args []string
		want string
	}{
		{at("status", "--output", "xml"), "use text or json"},
		{at("status", "--name", "A"), "not a usable tenant name"},
		{[]string{"status", "--state-root", "/"}, "too close to /"},
		{at("node", "add", "a"), "is not running"},
		{at("node", "add", "--wait", "-1s"), "must not be negative"},
		{at("node", "kill"), "accepts 1 arg"},
		{at("apiserver", "start", "--port", "0"), "from 1 to 65535"},
		{at("apiserver", "kill"), "is not running"},
		{at("gateway", "set"), "at least one setting"},
		{at("registry", "set"), "name at least one setting"},
		{at("registry", "mend"), "is not running"},
		{at("registry", "set", "--down"), "is not running"},
		{at("gateway", "show"), "is not running"},
		{at("kcp", "kill"), "is not running"},
		{at("kcp", "start", "--port", "old"), "from 1 to 65535"},
		{at("fault", "set"), "at least one fault"},
		{at("fault", "set", "--never-ready", "1"), "is not running"},
		{at("fault", "clear"), "is not running"},
		{at("fault", "show"), "is not running"},
		{at("driver-config"), "is not running"},
		{at("driver-config", "x"), "unknown command"},
		{at("kubeconfig"), "is not running"},
		{at("up", "--ceiling", "0"), "at least 1"},
		{at("up", "--hold", "-1s"), "must not be negative"},
		{at("fly"), "unknown command"},
		{at("node", "fly"), "unknown command"},
	} {
		_, err := run(t, test.args...)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%v: %v, want an error with %q", test.args, err, test.want)
		}
	}
}

func TestNothingThere(t *testing.T) {
	root := filepath.Join(t.TempDir(), "root")
	out, err := run(t, "leftovers", "--state-root", root)
	if err != nil || out != "nothing\n" {
		t.Errorf("leftovers: %q, %v", out, err)
	}
	out, err = run(t, "status", "--state-root", root, "--output", "json")
	var exit ExitError
	if !errors.As(err, &exit) || exit.Code != 1 || !strings.Contains(out, `"state": "absent"`) {
		t.Errorf("status: %q, %v; want absent and exit code 1", out, err)
	}
}

func TestParsePort(t *testing.T) {
	for text, want := range map[string]daemon.ServerPort{
		"": {Same: true}, "same": {Same: true}, "new": {}, "24444": {Port: 24444},
	} {
		if got, err := parsePort(text); err != nil || got != want {
			t.Errorf("parsePort(%q) = %+v, %v; want %+v", text, got, err, want)
		}
	}
	for _, bad := range []string{"0", "-1", "65536", "80x", "old"} {
		if _, err := parsePort(bad); err == nil {
			t.Errorf("parsePort(%q) was not refused", bad)
		}
	}
}
