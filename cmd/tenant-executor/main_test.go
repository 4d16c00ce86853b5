package main_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
)

// The tests of this package run the built program as GitLab Runner runs it,
// against a scripted cluster. In the Pods of that cluster the agent runs for
// real, and so do the scripts, on this host.

// builtPath is the environment variable by which TestMain tells the tests
// where the program is.
const builtPath = "TENANT_EXECUTOR_UNDER_TEST"

// testsAtOnce is how many tests run at once.
const testsAtOnce = 10

// update has the tests write their golden files instead of comparing them.
var update = flag.Bool("update", false, "write golden files instead of comparing them")

func TestMain(m *testing.M) {
	flag.Parse()
	// Plain commands, to compare with, are client-go's own.
	klog.SetLogger(logr.Discard())
	// The tests wait more than they compute.
	if err := flag.Set("test.parallel", strconv.Itoa(testsAtOnce)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code, err := buildAndRun(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(code)
}

func buildAndRun(m *testing.M) (int, error) {
	folder, err := os.MkdirTemp("", "tenant-executor-test")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(folder) //nolint:errcheck // a leftover in the temporary folder
	program, err := buildPrograms(folder)
	if err != nil {
		return 0, err
	}
	if err := os.Setenv(builtPath, program); err != nil {
		return 0, err
	}
	return m.Run(), nil
}

// buildPrograms builds the driver with the agent in it as it is now, whatever
// "make agent" has left in the folder that the driver embeds.
func buildPrograms(folder string) (string, error) {
	agent := filepath.Join(folder, "podagent")
	if err := build("-o", agent, "../podagent"); err != nil {
		return "", err
	}
	packed := agent + ".gz"
	if err := pack(agent, packed); err != nil {
		return "", err
	}
	embedded, err := filepath.Abs("../../kube/stream/carry/dist/podagent-linux-" + runtime.GOARCH + ".gz")
	if err != nil {
		return "", err
	}
	// See "go help build": a file that stands in the place of another.
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{embedded: packed}})
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(agent+".json", overlay, 0o600); err != nil {
		return "", err
	}
	program := filepath.Join(folder, "tenant-executor")
	return program, build("-overlay", agent+".json", "-o", program, ".")
}

func build(args ...string) error {
	all := []string{"build"}
	if raceDetector {
		all = append(all, "-race")
	}
	command := exec.Command("go", append(all, args...)...)
	command.Stdout, command.Stderr = os.Stderr, os.Stderr
	if err := command.Run(); err != nil {
		return fmt.Errorf("building the programs: go build %q: %w", args, err)
	}
	return nil
}

func pack(from, to string) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	var packed bytes.Buffer
	w, err := gzip.NewWriterLevel(&packed, gzip.BestSpeed)
	if err != nil {
		return err
	}
	if _, err := w.Write(text); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	return os.WriteFile(to, packed.Bytes(), 0o600)
}
