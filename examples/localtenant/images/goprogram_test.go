package images

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// module writes a small Go module with one program.
func module(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestGoProgram(t *testing.T) {
	source := module(t, map[string]string{
		"go.mod": "module example.com/m\n\ngo 1.26.0\n", "go.sum": "",
		"hello/main.go":  "package main\n\nfunc main() { println(\"hello\") }\n",
		"bad/main.go":    "package main\n\nimport \"example.com/m/lib\"\n\nfunc main() { lib.F() }\n",
		"lib/lib.go":     "package lib\n\nfunc F() {}\n",
		"broken/main.go": "package main\n\nfunc main() { nothing() }\n",
	})
	w, err := newWorkshop(Options{Cache: t.TempDir(), Source: source})
	if err != nil {
		t.Fatal(err)
	}
	layer, err := w.layer(t.Context(), GoProgram{Package: "./hello", Path: "bin/hello"})
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	extract(t, layer, root)
	if out, err := exec.Command(filepath.Join(root, "bin/hello")).CombinedOutput(); err != nil || string(out) != "hello\n" {
		t.Errorf("hello = %q, %v", out, err)
	}
	for program, text := range map[string]string{"./bad": "example.com/m/lib", "./broken": "nothing"} {
		if _, err := w.layer(t.Context(), GoProgram{Package: program, Path: "x"}); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: error %v, want %q", program, err, text)
		}
	}
}

func TestGoProgramInputs(t *testing.T) {
	files := map[string]string{"go.mod": "module example.com/m\n", "go.sum": "", "p/main.go": "package main\n"}
	inputs := func() string {
		t.Helper()
		w, err := newWorkshop(Options{Cache: t.TempDir(), Source: module(t, files)})
		if err != nil {
			t.Fatal(err)
		}
		text, err := GoProgram{Package: "./p", Path: "p"}.inputs(t.Context(), w)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	before := inputs()
	files["p/main_test.go"] = "package main\n"
	if diff := cmp.Diff(before, inputs()); diff != "" {
		t.Errorf("a test changes the inputs: %s", diff)
	}
	for _, name := range []string{"p/main.go", "go.mod", "go.sum", "p/other.go"} {
		old, known := files[name]
		files[name] = old + "// changed\n"
		if inputs() == before {
			t.Errorf("a change of %s does not change the inputs", name)
		}
		if files[name] = old; !known {
			delete(files, name)
		}
	}
}
