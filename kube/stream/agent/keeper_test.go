package agent

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What an entrypoint exports reaches the stages, wherever the keeper can be
// read.
func TestContainerEnvironment(t *testing.T) {
	own := []string{"A=own"}
	for name, test := range map[string]struct {
		mark, environ string
		want          []string
	}{
		"no entrypoint":   {"", "B=keeper\x00", own},
		"an entrypoint":   {"17\n", "B=keeper\x00C=two\nlines\x00D=\x00", []string{"B=keeper", "C=two\nlines", "D="}},
		"another process": {"18\n", "B=keeper\x00", own},
		"not a number":    {"../17", "B=keeper\x00", own},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			root, proc := filepath.Join(dir, "build"), filepath.Join(dir, "proc")
			if err := os.MkdirAll(filepath.Join(proc, "17"), 0o755); err != nil {
				t.Fatal(err)
			}
			files := map[string]string{filepath.Join(proc, "17", "environ"): test.environ}
			if test.mark != "" {
				files[KeeperMark(root)] = test.mark
			}
			for path, text := range files {
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(test.want, containerEnvironment(root, proc, own)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
