package deps

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMissing(t *testing.T) {
	missing := Missing(func(path string) bool { return path != "/usr/lib/cni/bridge" && path != "/usr/sbin/runc" })
	if diff := cmp.Diff([]string{"runc", "containernetworking-plugins"}, missing); diff != "" {
		t.Errorf("missing (-want +got):\n%s", diff)
	}
	if missing := Missing(func(string) bool { return true }); len(missing) > 0 {
		t.Errorf("missing where all is there: %v", missing)
	}
}

// fakeApt puts an apt-get in front of the machine's that runs a script. It notes
// its calls, which the script finds in $calls.
func fakeApt(t *testing.T, script string) (calls func() []string) {
	t.Helper()
	dir := t.TempDir()
	noted := filepath.Join(dir, "calls")
	text := "#!/bin/sh\necho \"$*\" >>" + noted + "\ncalls=$(wc -l <" + noted + ")\n" + script
	if err := os.WriteFile(filepath.Join(dir, "apt-get"), []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	return func() []string {
		text, err := os.ReadFile(noted)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Split(strings.TrimSpace(string(text)), "\n")
	}
}

const locked = `echo "E: Could not get lock /var/lib/apt/lists/lock. It is held by process 42 (apt-get)" >&2; exit 100`

// On a fresh machine somebody else often installs at the same time. That is waited
// for, and nothing else is.
func TestInstallWaitsForTheLock(t *testing.T) {
	const update, install = "update -q -o DPkg::Lock::Timeout=300", "install -q -y --no-install-recommends runc -o DPkg::Lock::Timeout=300"
	for name, c := range map[string]struct {
		script, patience string
		calls            []string
		fails            bool
	}{
		"nobody is there": {"", "", []string{update, install}, false},
		"a lock at first": {`[ $calls -gt 2 ] || { ` + locked + `; }`, "", []string{update, update, update, install}, false},
		"a lock for ever": {locked, "0", []string{"update -q -o DPkg::Lock::Timeout=0"}, true},
		"another failure": {`echo "E: Unable to fetch" >&2; exit 100`, "", []string{update}, true},
	} {
		t.Run(name, func(t *testing.T) {
			calls := fakeApt(t, c.script)
			env := append(os.Environ(), "APT_PAUSE=0")
			if c.patience != "" {
				env = append(env, "APT_PATIENCE="+c.patience)
			}
			var out bytes.Buffer
			err := Install(t.Context(), []string{"runc"}, env, &out)
			if (err != nil) != c.fails || c.fails && !strings.Contains(out.String(), "E: ") {
				t.Errorf("%v:\n%s", err, out.String())
			}
			if diff := cmp.Diff(c.calls, calls()); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
		})
	}
}
