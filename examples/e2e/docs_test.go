//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/socialweb-computer/tenant-executor/examples/documents"
	"github.com/socialweb-computer/tenant-executor/examples/localrunner/job"
	"github.com/socialweb-computer/tenant-executor/examples/testbed"
)

// scene is a session as it is played: in a folder of its own, with the values of
// the test.
type scene struct {
	t *testing.T
	session
	all    map[string]documents.Document
	dir    string
	values map[string]string
}

// The commands of the documents do what the documents say.
func TestDocuments(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(sessions())) {
		if name != sessionOfAJob && name != sessionOfLocaltenant {
			t.Run(name, func(t *testing.T) { setScene(t, name).play() })
		}
	}
}

// A tenant of its own comes and goes, and is broken in between.
func TestDocumentsOfLocaltenant(t *testing.T) {
	s := setScene(t, sessionOfLocaltenant)
	down := func() {
		if out, err := exec.Command(bed.Program, "down", "--name", bed.Name+"-own").CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	}
	down() // what a run that was cut off has left
	t.Cleanup(down)
	s.play()
}

// A person finds out about a job whose runner and driver were killed.
func TestDocumentsOfAJobThatRuns(t *testing.T) {
	s := setScene(t, sessionOfAJob)
	j := testbed.WithoutSources(bed.Job("echo begun", "wget -q -O /dev/null "+bed.GateURL("documents")+" || true",
		"until [ -e /builds/go ]; do sleep 0.1; done", "echo ended"))
	j.Services = []job.Image{service("redis", "redis")}
	bed.Open("documents")
	a, err := bed.StartApartWith(limited(t, jobLimit), filepath.Join(s.dir, "driver.toml"), testbed.SecondRunner, j)
	if err != nil {
		t.Fatal(err)
	}
	c := until(t, a, "build_script")
	if err := bed.Arrived(limited(t, jobLimit), "documents"); err != nil {
		t.Fatal(err)
	}
	kill(t, a.Command.Process.Pid)
	kill(t, c.PID)
	a.Wait()
	s.values["job"], s.values["runner"] = strconv.FormatInt(j.ID, 10), testbed.RunnerLabel(testbed.SecondRunner)
	s.play()
	wantNoPods(t, j.ID)
}

// setScene makes the folder of a session.
func setScene(t *testing.T, name string) scene {
	t.Helper()
	root, all := theDocuments(t)
	status, err := bed.Status(limited(t, time.Minute))
	bin, abs := filepath.Abs(filepath.Dir(bed.Driver))
	if err := errors.Join(err, abs); err != nil {
		t.Fatal(err)
	}
	s := scene{t: t, session: sessions()[name], all: all, dir: t.TempDir(), values: map[string]string{
		"tenant": bed.Name, "registry": bed.Registry, "address": bed.Address, "access": status.AccessDir,
		"kcp": status.KCP.Kubeconfig, "kubeconfig": status.Kubeconfig, "bin": bin,
	}}
	s.values["dir"] = s.dir
	for _, v := range bed.Job("true").Variables {
		if v.Key == "CI_SERVER_URL" {
			s.values["gitlab"] = v.Value
		}
	}
	// The documents are followed in a checkout with its programs built.
	err = errors.Join(os.Symlink(bin, filepath.Join(s.dir, "bin")), os.Symlink(filepath.Join(root, "examples"), filepath.Join(s.dir, "examples")))
	for _, f := range s.files {
		err = errors.Join(err, os.WriteFile(filepath.Join(s.dir, f.name), []byte(s.filled(f.text)), 0o600))
	}
	if config := s.driverConfig(all); config != "" {
		err = errors.Join(err, os.WriteFile(filepath.Join(s.dir, "driver.toml"), []byte(s.filled(s.here(config, map[string]bool{}))), 0o600))
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// filled has the values of the test in place of their names.
func (s scene) filled(text string) string {
	for name, value := range s.values {
		text = strings.ReplaceAll(text, "{"+name+"}", value)
	}
	return text
}

// theEnd is what the shell prints when it ends, before its exit code.
const theEnd = "@@ end "

func mark(i int) string { return fmt.Sprintf("@@ %d\r\n", i) }

// play types the commands in, and looks at what they print.
func (s scene) play() {
	s.t.Helper()
	commands := s.typed(s.all)
	script := "trap 'printf \"\\n" + theEnd + "%d\\n\" $?' EXIT\nset -eu\n"
	for i, c := range commands {
		script += fmt.Sprintf("printf '\\n@@ %d\\n'\n%s", i, s.filled(s.here(c.Text+"\n", map[string]bool{})))
	}
	shell := exec.CommandContext(limited(s.t, jobLimit), "sh", "-c", script)
	shell.Dir, shell.Env = s.dir, s.environ()
	keys, seen := startOnTerminal(s.t, shell, 200, 50)
	for i, c := range commands {
		for _, r := range s.types {
			if r.command == c.Text {
				s.await(seen, mark(i))
				press(s.t, keys, r.text)
			}
		}
	}
	s.await(seen, theEnd)
	err := shell.Wait()
	text := plain(strings.ReplaceAll(seen.String(), "\r\n", "\n"))
	if err != nil {
		s.t.Errorf("the session ends with %v", err)
	}
	s.compare(commands, text)
	if s.t.Failed() {
		s.t.Logf("the commands are numbered:\n%s\n%s", script, text)
	}
}

// await waits for a text on the terminal, or the end of the session.
func (s scene) await(seen *lockedOutput, text string) {
	s.t.Helper()
	err := testbed.Until(limited(s.t, jobLimit), "the session comes to "+strconv.Quote(text), jobLimit, func(context.Context) (bool, error) {
		shown := seen.String()
		return strings.Contains(shown, text) || strings.Contains(shown, theEnd), nil
	})
	if err != nil {
		s.t.Fatalf("%v:\n%s", err, seen)
	}
}

// compare looks in what each command has printed for what it is to say.
func (s scene) compare(commands []documents.Command, text string) {
	s.t.Helper()
	printed := map[string]string{}
	for i, c := range commands {
		_, after, _ := strings.Cut(text, fmt.Sprintf("\n@@ %d\n", i))
		own, _, _ := strings.Cut(after, "\n@@ ")
		printed[c.Text] += "\n" + own + "\n"
	}
	for _, r := range s.says {
		if !strings.Contains(printed[r.command], s.filled(r.text)) {
			s.t.Errorf("%q does not print %q", r.command, s.filled(r.text))
		}
	}
}

// environ is that of a person who has the driver's configuration and the
// administrator's kubeconfig where they belong. What was compiled is found again.
func (s scene) environ() []string {
	cache, err := os.UserCacheDir()
	if err != nil {
		s.t.Fatal(err)
	}
	return []string{
		"PATH=" + s.values["bin"] + ":" + os.Getenv("PATH"), "HOME=" + s.dir, "XDG_CACHE_HOME=" + cache, "TERM=xterm",
		"KUBECONFIG=" + s.values["kubeconfig"], "TENANT_EXECUTOR_CONFIG=" + filepath.Join(s.dir, "driver.toml"),
	}
}
