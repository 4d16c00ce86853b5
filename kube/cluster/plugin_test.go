package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/socialweb-computer/tenant-executor/kube/cluster"
	"github.com/socialweb-computer/tenant-executor/kube/faultserver"
)

// withPlugin is a discovery whose user logs in by a script. The script counts
// its runs in the file "runs".
func withPlugin(t *testing.T, w *faultserver.Workspace, script, more string) (d cluster.Discovery, runs func() int) {
	t.Helper()
	d = discovery(t, w)
	folder := filepath.Dir(d.Kubeconfig)
	text, err := os.ReadFile(d.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	plugin := fmt.Sprintf("user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: ./plugin, args: [login], interactiveMode: Never, env: [{name: A, value: b}]%s}}", more)
	changed := strings.Replace(string(text), "user: {token: "+faultserver.WorkspaceToken+"}", plugin, 1)
	script = "#!/bin/sh\necho run >> '" + folder + "/runs'\nanswer() { printf '{\"kind\": \"ExecCredential\", \"apiVersion\": \"client.authentication.k8s.io/v1\", \"status\": %s}' \"$1\"; }\n" + script
	for name, data := range map[string]string{d.Kubeconfig: changed, filepath.Join(folder, "plugin"): script} {
		if err := os.WriteFile(name, []byte(data), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	d.Environ, d.Logins = []string{"PATH=" + os.Getenv("PATH"), "GIVEN=yes"}, new(cluster.Logins)
	return d, func() int {
		text, _ := os.ReadFile(filepath.Join(folder, "runs"))
		return strings.Count(string(text), "run\n")
	}
}

const logsIn = `answer '{"token": "` + faultserver.WorkspaceToken + `"}'`

func TestPlugin(t *testing.T) {
	t.Parallel()
	w := faultserver.StartWorkspace(t)
	w.SetCluster(acme, address)
	check := `test "$1 $A $GIVEN ${HOME:-none}" = "login b yes none" || { echo "asked with $* $A $GIVEN $HOME" >&2; exit 1; }
case $KUBERNETES_EXEC_INFO in *'"interactive":false'*) ;; *) echo "$KUBERNETES_EXEC_INFO" >&2; exit 1;; esac
`
	d, runs := withPlugin(t, w, check+logsIn, "")
	wantFound(t, d, address)
	wantFound(t, d, address)
	if n := runs(); n != 1 {
		t.Errorf("the plugin ran %d times", n)
	}
	d, runs = withPlugin(t, w, `answer '{"token": "`+faultserver.WorkspaceToken+`", "expirationTimestamp": "2020-01-01T00:00:00Z"}'`, "")
	wantFound(t, d, address)
	wantFound(t, d, address)
	if n := runs(); n != 2 {
		t.Errorf("with a login that has expired the plugin ran %d times", n)
	}
	// A login that was withdrawn is got anew.
	d, runs = withPlugin(t, w, `if [ "$(wc -l < "${0%/*}/runs")" -gt 1 ]; then `+logsIn+`; else answer '{"token": "old"}'; fi`, "")
	wantFound(t, d, address)
	if n := runs(); n != 2 {
		t.Errorf("with a login that was withdrawn the plugin ran %d times", n)
	}
	d, _ = withPlugin(t, w, `case $KUBERNETES_EXEC_INFO in *'"server":"https://'*'"certificate-authority-data":"'*) `+logsIn+`;; *) echo "$KUBERNETES_EXEC_INFO" >&2; exit 1;; esac`, ", provideClusterInfo: true")
	wantFound(t, d, address)
}

func TestPluginRefused(t *testing.T) {
	t.Parallel()
	const canary = "canary-7719"
	for name, test := range map[string]struct{ script, more, want string }{
		"fails":          {"echo 'cannot reach the \033[31mprovider' >&2; exit 3", "", "it ended with exit status 3: cannot reach the  [31mprovider"},
		"says nothing":   {"", "", "its answer is no ExecCredential"},
		"no JSON":        {"echo " + canary, "", "its answer is no ExecCredential"},
		"no login":       {"answer '{}'", "", "its answer is no ExecCredential"},
		"half a key":     {"answer '{\"token\": \"" + canary + "\", \"clientKeyData\": \"x\"}'", "", "its answer is no ExecCredential"},
		"needs a person": {logsIn, ", interactiveMode: Always", "a runner has no terminal"},
		"other version":  {logsIn, ", apiVersion: client.authentication.k8s.io/v1alpha1", `its apiVersion is "client.authentication.k8s.io/v1alpha1"`},
		"other answer":   {logsIn, ", apiVersion: client.authentication.k8s.io/v1beta1", "has another apiVersion than the kubeconfig says"},
		"too long":       {"head -c 2000000 /dev/zero", "", "it answered more than"},
	} {
		w := faultserver.StartWorkspace(t)
		w.SetCluster(acme, address)
		d, _ := withPlugin(t, w, test.script, test.more)
		var found *cluster.FindError
		_, _, err := d.Find(t.Context())
		if !errors.As(err, &found) || found.Kind != cluster.NoLogin || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), canary) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A cluster that was found once is where it was, although nobody can log in.
func TestPluginFailsLater(t *testing.T) {
	t.Parallel()
	w := faultserver.StartWorkspace(t)
	w.SetCluster(acme, address)
	d, _ := withPlugin(t, w, logsIn, "")
	wantFound(t, d, address)
	d.Logins = nil
	if err := os.WriteFile(filepath.Join(filepath.Dir(d.Kubeconfig), "plugin"), []byte("#!/bin/sh\nexit 1\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if url, fallen, err := d.Find(t.Context()); url != address || fallen == nil || err != nil {
		t.Errorf("%q, %v, %v", url, fallen, err)
	}
}

// A plugin that hangs and traps signals ends with the context, and what is
// waited for is said meanwhile.
func TestPluginThatHangs(t *testing.T) {
	t.Parallel()
	w := faultserver.StartWorkspace(t)
	w.SetCluster(acme, address)
	d, runs := withPlugin(t, w, `trap '' TERM INT HUP; echo $$ > "${0%/*}/pid"; while :; do sleep 1; done`, "")
	ctx, cancel := context.WithCancel(t.Context())
	said := make(chan string, 1)
	d.Waiting = func(text string) { said <- text; cancel() }
	_, _, err := d.Find(ctx)
	if !errors.Is(err, context.Canceled) || runs() != 1 {
		t.Errorf("%v after %d runs", err, runs())
	}
	if text := <-said; !strings.Contains(text, "/plugin, by which the driver logs in to the kcp side (for 10s at most)") {
		t.Errorf("said %q", text)
	}
	wantGone(t, filepath.Join(filepath.Dir(d.Kubeconfig), "pid"))
	// By itself it ends at its budget.
	d.Waiting = nil
	var found *cluster.FindError
	if _, _, err := d.Find(t.Context()); !errors.As(err, &found) || found.Kind != cluster.NoLogin || !strings.Contains(err.Error(), "it has not answered within 10s") {
		t.Errorf("got %v", err)
	}
	wantGone(t, filepath.Join(filepath.Dir(d.Kubeconfig), "pid"))
}

// wantGone waits for the end of the process in a file.
func wantGone(t *testing.T, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(fmt.Sprintf("/proc/%d/exe", pid)); err != nil {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("the plugin still runs")
		}
	}
}

// A server is not believed, nor shown a token, that anybody can pass for.
func TestServerThatAnybodyCanPassFor(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ from, to, want string }{
		"insecure": {"certificate-authority: ca.crt", "insecure-skip-tls-verify: true", "it has insecure-skip-tls-verify"},
		"plain":    {`"https://`, `"http://`, `it has to start with https://`},
	} {
		w := faultserver.StartWorkspace(t)
		w.SetCluster(acme, address)
		d := discovery(t, w)
		text, err := os.ReadFile(d.Kubeconfig)
		if err == nil {
			err = os.WriteFile(d.Kubeconfig, []byte(strings.Replace(string(text), test.from, test.to, 1)), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		var found *cluster.FindError
		if _, _, err := d.Find(t.Context()); !errors.As(err, &found) || found.Kind != cluster.Unusable || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", name, err)
		}
		if n := len(w.Requests()); n != 0 {
			t.Errorf("%s: %d requests", name, n)
		}
	}
}

// Credentials do not follow a server's word to another place.
func TestRedirects(t *testing.T) {
	t.Parallel()
	elsewhere := faultserver.StartWorkspace(t)
	for name, to := range map[string]string{
		"another host":    elsewhere.URL() + "/apis",
		"out of TLS":      "",
		"round and round": "same",
	} {
		w := faultserver.StartWorkspace(t)
		switch to {
		case "":
			to = strings.Replace(w.URL(), "https://", "http://", 1) + "/apis"
		case "same":
			to = w.URL() + "/apis"
		}
		w.Redirect(http.StatusTemporaryRedirect, to)
		d := discovery(t, w)
		var found *cluster.FindError
		if _, _, err := d.Find(t.Context()); !errors.As(err, &found) || found.Kind != cluster.Unusable || !strings.Contains(err.Error(), "where the driver does not follow") {
			t.Errorf("%s: %v", name, err)
		}
		if n := len(w.Requests()); n > 4 {
			t.Errorf("%s: %d requests", name, n)
		}
	}
	if n := len(elsewhere.Requests()); n != 0 {
		t.Errorf("%d requests went elsewhere", n)
	}
}
