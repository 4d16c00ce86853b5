package main_test

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	driver "github.com/socialweb-computer/tenant-executor/cmd/tenant-executor"
)

// A panic in a goroutine of the driver, wherever, is a failure like any other: the
// system-failure code of the environment, a line with the place, no stack trace, and
// the host hears of the end. The streams that the driver is handed stand for
// mistakes of its own.
func TestPanicInAGoroutine(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		args   []string
		stdin  io.Reader
		stdout func(*bytes.Buffer) io.Writer
		// log is whether the host's log has to tell of it: it tells of stages.
		log bool
	}{
		"writing the script's output": {
			args: []string{"run", "SCRIPT", "build_script"}, stdin: strings.NewReader(""), log: true,
			stdout: func(to *bytes.Buffer) io.Writer {
				return writerFunc(func(p []byte) (int, error) {
					if strings.Contains(string(p), "step 1") {
						panic("stumbled over the output")
					}
					return to.Write(p)
				})
			},
		},
		"reading a person's input": {
			args: []string{"shell", "POD", "--", "cat"}, stdin: readerFunc(func([]byte) (int, error) { panic("stumbled over the keyboard") }),
			stdout: func(to *bytes.Buffer) io.Writer { return to },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t)
			h.settings["log.file"] = filepath.Join(h.folder, "host.log")
			h.play()
			h.theJob()
			h.handOver()
			h.env["SCRIPT"] = h.write("script", "echo step 1; sleep 1000")
			h.env["POD"] = namespace + "/" + h.server.Pods()[0].Name
			for i, arg := range test.args {
				if value := h.env[arg]; value != "" {
					test.args[i] = value
				}
			}
			var env []string
			for name, value := range h.env {
				env = append(env, name+"="+value)
			}
			var stdout, stderr bytes.Buffer
			code := driver.Run(t.Context(), test.args, env, test.stdin, test.stdout(&stdout), &stderr)
			said := stdout.String() + stderr.String()
			if code != systemCode || !strings.Contains(said, "ERROR: the driver: stumbled over ") || !strings.Contains(said, "crash_test.go:") || strings.Contains(said, "goroutine ") {
				t.Errorf("exit code %d:\n%s", code, said)
			}
			if text, err := os.ReadFile(h.settings["log.file"]); test.log && (err != nil || !strings.Contains(string(text), "step failed: the driver: stumbled")) {
				t.Errorf("the host's log has %q, %v", text, err)
			}
		})
	}
}
