package main_test

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
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
