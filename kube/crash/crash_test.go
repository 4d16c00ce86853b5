package crash_test

import (
	"context"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/socialweb-computer/tenant-executor/kube/crash"
)

// stumble panics as a mistake would.
func stumble(at []int) int { return at[3] }

func TestHandlerHears(t *testing.T) {
	for name, begin := range map[string]func(context.Context, func()){
		"Go":    crash.Go,
		"Guard": func(ctx context.Context, f func()) { new(sync.WaitGroup).Go(crash.Guard(ctx, f)) },
	} {
		t.Run(name, func(t *testing.T) {
			heard := make(chan *crash.Panic)
			ctx := crash.Handle(t.Context(), func(p *crash.Panic) { heard <- p })
			ctx, cancel := context.WithCancel(ctx)
			cancel() // a context that has ended leads to it as well
			begin(ctx, func() { stumble(nil) })
			got := (<-heard).Error()
			if !strings.HasPrefix(got, "runtime error: index out of range [3]") || !strings.Contains(got, ".stumble (crash_test.go:") {
				t.Error(got)
			}
		})
	}
}

// What ends well, or by runtime.Goexit as a test does, is no panic.
func TestNoPanic(t *testing.T) {
	ctx := crash.Handle(t.Context(), func(p *crash.Panic) { t.Error(p) })
	var all sync.WaitGroup
	all.Go(crash.Guard(ctx, func() {}))
	all.Wait()
}

// child is what this program does as another process, by this variable.
const child = "TENANT_EXECUTOR_CRASH_TEST"

// A panic that nobody can catch leaves no trace on stderr, which is the job log,
// but in the file; what the program itself says there goes on.
func TestUncaughtPanic(t *testing.T) {
	if path := os.Getenv(child); path != "" {
		stderr, err := crash.Quiet()
		if err = errors.Join(err, crash.Keep(path)); err != nil {
			t.Fatal(err)
		}
		_, _ = stderr.WriteString("a word\n")
		_, _ = os.Stderr.WriteString("a library's word\n")
		ended := make(chan bool)
		go func() { stumble(nil) }()
		<-ended
	}
	file := filepath.Join(t.TempDir(), "crash.log")
	for n := 1; n <= 2; n++ {
		command := exec.Command(os.Args[0], "-test.run=^TestUncaughtPanic$")
		command.Env = append(os.Environ(), child+"="+file)
		var stderr strings.Builder
		command.Stderr = &stderr
		err := command.Run()
		if exit := new(exec.ExitError); !errors.As(err, &exit) || exit.ExitCode() != 2 {
			t.Errorf("ended with %v", err)
		}
		if stderr.String() != "a word\n" {
			t.Errorf("stderr has %q", stderr.String())
		}
		text, err := os.ReadFile(file)
		if got := strings.Count(string(text), "panic: runtime error: index out of range"); err != nil || got != n {
			t.Errorf("the file tells of %d crashes, want %d (%v):\n%s", got, n, err, text)
		}
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file: %v, %v", info.Mode(), err)
	}
	// It does not grow for ever, and is no way to another file.
	if err := os.WriteFile(file, make([]byte, 1<<20+1), 0o600); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(file); crash.Keep(file) != nil || err != nil {
		t.Error(info, err)
	}
	if info, err := os.Stat(file); err != nil || info.Size() != 0 {
		t.Errorf("a file that is too long has %d bytes, %v", info.Size(), err)
	}
	if err := os.Symlink(file, file+".link"); err != nil || crash.Keep(file+".link") == nil {
		t.Errorf("a link is followed (%v)", err)
	}
}

// Every goroutine of the driver is begun so that its panic is heard of.
func TestEveryGoroutineIsGuarded(t *testing.T) {
	exempt := map[string]bool{
		"kube/crash/crash.go":          true, // where it is done
		"cmd/tenant-executor/main.go":  true, // waits for signals before there is a handler
		"cmd/tenant-executor/exit.go":  true, // has its own
		"kube/faultserver":             true, // of tests
		"kube/stream/agent":            true, // runs in the Pod
		"cmd/tenant-executor/testdata": true,
	}
	found := 0
	for _, room := range []string{"cmd", "executor", "stages", "kube"} {
		err := filepath.WalkDir(filepath.Join("../..", room), func(path string, d fs.DirEntry, err error) error {
			name, _ := filepath.Rel("../..", path)
			switch {
			case err != nil:
				return err
			case exempt[name] && d.IsDir():
				return filepath.SkipDir
			case exempt[name], d.IsDir(), !strings.HasSuffix(name, ".go"), strings.HasSuffix(name, "_test.go"):
				return nil
			}
			files := token.NewFileSet()
			file, err := parser.ParseFile(files, path, nil, 0)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.GoStmt:
					t.Errorf("%s: use crash.Go in place of go", files.Position(n.Pos()))
				case *ast.CallExpr:
					if method, is := n.Fun.(*ast.SelectorExpr); is && method.Sel.Name == "Go" && len(n.Args) == 1 {
						if found++; !guarded(n.Args[0]) {
							t.Errorf("%s: the function has to be a crash.Guard", files.Position(n.Pos()))
						}
					}
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if found == 0 {
		t.Error("no sync.WaitGroup was found")
	}
}

// guarded says whether an expression is a call of crash.Guard.
func guarded(e ast.Expr) bool {
	call, is := e.(*ast.CallExpr)
	if !is {
		return false
	}
	f, is := call.Fun.(*ast.SelectorExpr)
	if !is {
		return false
	}
	of, is := f.X.(*ast.Ident)
	return is && of.Name == "crash" && f.Sel.Name == "Guard"
}
