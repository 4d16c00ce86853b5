package main_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
)

// The tests of this package run the built program as GitLab Runner runs it,
// against a scripted cluster.

// builtPath is the environment variable by which TestMain tells the tests
// where the program is.
const builtPath = "TENANT_EXECUTOR_UNDER_TEST"

// testsAtOnce is how many tests run at once.
const testsAtOnce = 10

// update has the tests write their golden files instead of comparing them.
var update = flag.Bool("update", false, "write golden files instead of comparing them")

func TestMain(m *testing.M) {
	flag.Parse()
	// The tests wait more than they compute.
	if err := flag.Set("test.parallel", strconv.Itoa(testsAtOnce)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(buildAndRun(m))
}

func buildAndRun(m *testing.M) int {
	folder, err := os.MkdirTemp("", "tenant-executor-test")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(folder) //nolint:errcheck // a leftover in the temporary folder
	program := filepath.Join(folder, "tenant-executor")
	args := []string{"build", "-o", program}
	if raceDetector {
		args = append(args, "-race")
	}
	build := exec.Command("go", append(args, ".")...)
	build.Stdout, build.Stderr = os.Stderr, os.Stderr
	if err := build.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "building the program:", err)
		return 1
	}
	if err := os.Setenv(builtPath, program); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}
