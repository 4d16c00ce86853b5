package testbed

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Root is the folder of the repository, found from the working directory.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "examples", "localtenant", "go.mod")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("the working directory is not in a checkout of tenant-executor")
		}
	}
}

// builtVariable is the folder of programs that are built already: two that
// build at once would be in each other's way.
const builtVariable = "TESTBED_PROGRAMS"

// Programs builds the programs of the repository, as `make build` does, and
// gives the folder they are in.
func Programs(root string) (string, error) {
	if built := os.Getenv(builtVariable); built != "" {
		return built, nil
	}
	build := exec.Command("make", "-C", root, "build")
	build.Stdout, build.Stderr = os.Stderr, os.Stderr
	if err := build.Run(); err != nil {
		return "", fmt.Errorf("make build: %w", err)
	}
	return filepath.Join(root, "bin"), nil
}
