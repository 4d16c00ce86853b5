package agent_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/socialweb-computer/tenant-executor/kube/stream/agent"
)

// shells are the ones that run scripts.
var shells = []string{"bash", "dash", "busybox"}

// connectIn connects to a front whose stages find one shell and no other, and
// have a folder of their own as TMPDIR.
func connectIn(t *testing.T, shell, root, temp string) *connection {
	t.Helper()
	program, err := exec.LookPath(shell)
	if err != nil {
		t.Fatalf("%v (make shells installs it)", err)
	}
	dir := t.TempDir()
	for _, tool := range []string{"cat", "mkfifo", "sed", "seq", "sleep", "tee", "yes"} {
		path := program // busybox is all of them
		if shell != "busybox" {
			if path, err = exec.LookPath(tool); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Symlink(path, filepath.Join(dir, tool)); err != nil {
			t.Fatal(err)
		}
	}
	names := []string{"sh"}
	if shell == "bash" {
		names = append(names, "bash")
	}
	for _, name := range names {
		if err := os.Symlink(program, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return connectBy(t, root, func(folder string, lock *os.File) error {
		process, err := os.StartProcess("/proc/self/exe", []string{"podagent", agent.VerbSupervise, folder}, &os.ProcAttr{
			Env:   []string{"PATH=" + dir, "TMPDIR=" + temp, "HOME=" + temp},
			Files: []*os.File{nil, nil, nil, lock},
			Sys:   &syscall.SysProcAttr{Setsid: true},
		})
		if err != nil {
			return err
		}
		return process.Release()
	})
}

// forms are those of a script: as it is, and as the runner writes it, evaluated by
// a process below the first shell. The second of these is that of
// FF_USE_LEGACY_BASH_EVAL.
var forms = map[string]func(script string) string{
	"as it is": func(script string) string { return script },
	"wrapped": func(script string) string {
		return "trap 'exit 1' TERM\nset -o errexit\n(trap 'exit 1' TERM; eval " + quoted(script) + ") </dev/null\nexit 0\n"
	},
	"legacy": func(script string) string {
		return "trap 'exit 1' TERM\nset -o errexit\n: | eval " + quoted(script) + "\nexit 0\n"
	},
}

func quoted(script string) string {
	return "'" + strings.ReplaceAll(script, "'", `'\''`) + "'"
}
