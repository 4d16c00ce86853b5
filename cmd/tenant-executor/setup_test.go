package main_test

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/socialweb-computer/tenant-executor/kube/faultserver"
)

// counted counts what is read.
type counted struct {
	io.Reader
	bytes *atomic.Int64
}

func (c counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.bytes.Add(int64(n))
	return n, err
}

// The agent comes packed where the helper's image can unpack it, whole where it
// cannot, and counts only if it is what was sent.
func TestAgentArrives(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		// gzip is what stands for it in the image, "" for none.
		gzip, want string
		packed     bool
	}{
		{"packed", "exec %gzip% \"$@\"", "", true},
		{"whole", "", "", false},
		{"damaged", "%gzip% \"$@\" | head -c 1000000", "the agent does not run here as it was sent (1000000 bytes)", true},
		{"unpacked by nobody", "exit 1", "readying the helper container ended with exit code 1", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t)
			p := h.play()
			p.path = t.TempDir()
			for _, program := range []string{"sh", "bash", "cat", "chmod", "head", "ln", "mkdir", "mv", "uname", "wc"} {
				link(t, program, filepath.Join(p.path, program))
			}
			write := func(name, text string) {
				t.Helper()
				if err := os.WriteFile(filepath.Join(p.path, name), []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			write("gitlab-runner", "")
			if test.gzip != "" {
				real, err := exec.LookPath("gzip")
				if err != nil {
					t.Fatal(err)
				}
				write("gzip", strings.ReplaceAll(test.gzip, "%gzip%", real))
			}
			var sent atomic.Int64
			h.server.OnExec(func(e *faultserver.Exec) {
				if e.Args[0] == "sh" {
					e.Stdin = counted{e.Stdin, &sent}
				}
				p.exec(e)
			})
			got := h.stage("prepare")
			if test.want != "" {
				if got.code != buildCode || !strings.Contains(got.stdout, test.want) {
					t.Errorf("ended with %d, want %q:\n%s", got.code, test.want, got.stdout)
				}
				return
			}
			if got.code != 0 {
				t.Fatalf("ended with %d:\n%s", got.code, got.stdout)
			}
			agent, err := os.Stat(filepath.Join(p.volume(h.server.Pods()[0].Name), "podagent"))
			if err != nil {
				t.Fatal(err)
			}
			if packed := sent.Load() < agent.Size(); packed != test.packed {
				t.Errorf("%d bytes were sent for a program of %d", sent.Load(), agent.Size())
			}
			h.expect(h.run("build_script", "echo done"), 0, "done\n", "")
		})
	}
}

// The job's image runs before the helper is made ready, as whichever user, and may
// make any name in the folder that all users write to. The helper's user, root
// perhaps, runs nothing that is not its own and writes through no link.
func TestSetupBesideAHostileImage(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("other users' files are needed, and only root makes them")
	}
	for name, hostile := range map[string]string{
		"files":   "for n in podagent podagent.new helper bin helper.keeper; do echo hostile >$n; done",
		"folders": "mkdir -p podagent podagent.new helper/stages helper/home-0 bin; ln -s /bin/false bin/git; chmod -R 777 podagent helper bin",
		"links":   "for n in podagent podagent.new helper.keeper .setup.$$.0; do ln -s ../outside $n; done; ln -s ../elsewhere helper; ln -s ../elsewhere bin",
		// It goes on while the helper is made ready.
		"in a race": "(while [ -d . ]; do mkdir podagent helper bin; rmdir podagent helper bin; done) >/dev/null 2>&1 &",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t)
			p := h.play()
			h.env["TENANT_EXECUTOR_POD"] = h.podName("0a1b2c")
			volume := p.volume(h.env["TENANT_EXECUTOR_POD"])
			outside, elsewhere := filepath.Join(p.base, "outside"), filepath.Join(p.base, "elsewhere")
			if err := errors.Join(os.Chmod(p.base, 0o711), os.Mkdir(volume, 0o777), os.Chmod(volume, 0o777),
				os.WriteFile(outside, []byte("precious"), 0o666), os.Mkdir(elsewhere, 0o777)); err != nil {
				t.Fatal(err)
			}
			image := exec.Command("sh", "-c", hostile)
			image.Dir = volume
			image.Env = append(os.Environ(), p.mark())
			image.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 1234, Gid: 1234}, Setpgid: true}
			if err := image.Run(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = syscall.Kill(-image.Process.Pid, syscall.SIGKILL) })
			got := h.stage("prepare")
			if name == "in a race" && got.code == buildCode && strings.Contains(got.stdout, "is another user's: the job's image has made it") {
				return // found out, which is right too
			}
			if got.code != 0 {
				t.Fatalf("ended with %d:\n%s", got.code, got.stdout)
			}
			for _, name := range []string{"podagent", "helper", "bin"} {
				info, err := os.Lstat(filepath.Join(volume, name))
				if err != nil {
					t.Fatal(err)
				}
				if uid := info.Sys().(*syscall.Stat_t).Uid; uid != 0 || info.Mode()&os.ModeSymlink != 0 {
					t.Errorf("%s belongs to user %d, mode %s", name, uid, info.Mode())
				}
			}
			h.expect(h.run("get_sources", "echo $HOME; command -v git; echo done"), 0, "/\n"+gitPath(t)+"\ndone\n", "")
			if text, err := os.ReadFile(outside); err != nil || string(text) != "precious" {
				t.Errorf("a file elsewhere holds %q, %v", text, err)
			}
			if left, err := os.ReadDir(elsewhere); err != nil || len(left) > 0 {
				t.Errorf("a folder elsewhere holds %v, %v", left, err)
			}
		})
	}
}

// gitPath is where this host's git is.
func gitPath(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// link lets a program of this host be there under a path.
func link(t *testing.T, program, path string) {
	t.Helper()
	found, err := exec.LookPath(program)
	if err == nil {
		err = os.Symlink(found, path)
	}
	if err != nil {
		t.Fatal(err)
	}
}
