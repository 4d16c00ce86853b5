package doctor

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestJudgeOutside(t *testing.T) {
	textfile := outsideFacts{key: "metrics.textfile", path: "/v/x.prom"}
	denied := outsideFacts{key: "log.file", path: "/l/x.log", err: pathError(syscall.EACCES)}
	for name, c := range map[string]struct {
		facts  []outsideFacts
		listen string
		state  State
		says   string
	}{
		"nothing":       {nil, "", OK, "none is wanted"},
		"textfile":      {[]outsideFacts{textfile}, "", OK, "/v/x.prom (metrics.textfile)"},
		"denied":        {[]outsideFacts{textfile, denied}, "", Warning, "/l/x.log (log.file) cannot be written by this user: "},
		"loopback":      {nil, "127.0.0.1:1", OK, "Prometheus at 127.0.0.1:1"},
		"localhost":     {nil, "localhost:1", OK, "Prometheus at localhost:1"},
		"for all":       {nil, ":1", OK, "at :1, also from other hosts"},
		"for all (IP4)": {nil, "0.0.0.0:1", OK, "also from other hosts"},
	} {
		got := judgeOutside(c.facts, c.listen)
		if got.State != c.state || !strings.Contains(got.Evidence, c.says) || (got.State == Warning) != (got.Remedy != "") {
			t.Errorf("%s: %+v", name, got)
		}
		if strings.HasPrefix(c.listen, "l") && strings.Contains(got.Evidence, "other hosts") {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// Nothing is made by the look.
func TestAppendable(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x.log")
	if err := appendable(path); err != nil {
		t.Errorf("a file that can be made: %v", err)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("it was made: %v", err)
	}
	if err := os.WriteFile(path, []byte("a\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := appendable(path); err != nil {
		t.Error(err)
	}
	for _, bad := range []string{filepath.Join(dir, "none", "x.log"), filepath.Join(path, "x.log"), dir} {
		if err := appendable(bad); err == nil {
			t.Errorf("%s can be written", bad)
		}
	}
}
