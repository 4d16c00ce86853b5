package images

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// GoProgram is a layer with one static program, compiled from a main package
// of this module. The package may use other modules but no other package of
// this one, so its own folder and the module's files say all about it.
type GoProgram struct {
	// Package is the folder of the main package, relative to the module's,
	// like ./helper.
	Package string
	// Path is the program's place in the image, without a leading slash.
	Path string
	// Architecture is what it is compiled for; "" is that of the image. With
	// another one it cannot be run there.
	Architecture string
}

// architecture is what the program is compiled for.
func (g GoProgram) architecture(w *workshop) string {
	if g.Architecture != "" {
		return g.Architecture
	}
	return w.architecture
}

// Label names the program.
func (g GoProgram) Label() string { return "program " + filepath.Base(g.Path) }

func (g GoProgram) inputs(ctx context.Context, w *workshop) (string, error) {
	version, err := w.run.output(ctx, w.source, nil, "go", "env", "GOVERSION")
	if err != nil {
		return "", fmt.Errorf("ask for Go's version: %w", err)
	}
	files, err := filepath.Glob(filepath.Join(w.source, g.Package, "*.go"))
	if err != nil {
		return "", fmt.Errorf("find the source of %s: %w", g.Package, err)
	}
	files = slices.DeleteFunc(files, func(file string) bool { return strings.HasSuffix(file, "_test.go") })
	if len(files) == 0 {
		return "", fmt.Errorf("no Go source in %s of %s", g.Package, w.source)
	}
	files = append(files, filepath.Join(w.source, "go.mod"), filepath.Join(w.source, "go.sum"))
	sum := sha256.New()
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return "", fmt.Errorf("read the source of %s: %w", g.Package, err)
		}
		fmt.Fprintf(sum, "%s %d\n%s", filepath.Base(file), len(text), text)
	}
	return fmt.Sprintf("%s %s %s %s %x", strings.TrimSpace(string(version)), g.architecture(w), g.Package, g.Path, sum.Sum(nil)), nil
}

func (g GoProgram) fill(ctx context.Context, w *workshop, t *tree) error {
	if err := g.checkImports(ctx, w); err != nil {
		return err
	}
	folder, err := os.MkdirTemp(w.store.dir, temporary)
	if err != nil {
		return fmt.Errorf("make a folder to compile in: %w", err)
	}
	defer func() { _ = os.RemoveAll(folder) }()
	program := filepath.Join(folder, "program")
	_, err = w.run.output(ctx, w.source, goEnv(g.architecture(w)), "go", "build", "-trimpath", "-buildvcs=false",
		"-ldflags=-s -w -buildid=", "-o", program, g.Package)
	if err != nil {
		return fmt.Errorf("compile %s: %w", g.Package, err)
	}
	body, err := os.ReadFile(program)
	if err != nil {
		return fmt.Errorf("read the compiled %s: %w", g.Package, err)
	}
	return t.add(Entry{Path: g.Path, Mode: 0o755, Body: string(body)})
}

// checkImports keeps the promise that the inputs are complete.
func (g GoProgram) checkImports(ctx context.Context, w *workshop) error {
	const ours = "{{with .Module}}{{if .Main}}{{$.ImportPath}}{{end}}{{end}}"
	output, err := w.run.output(ctx, w.source, goEnv(g.architecture(w)), "go", "list", "-deps", "-f", ours, g.Package)
	if err != nil {
		return fmt.Errorf("list what %s imports: %w", g.Package, err)
	}
	if imports := strings.Fields(string(output)); len(imports) > 1 {
		return fmt.Errorf("%s must not import other packages of its module, a change there would go unnoticed: %s",
			g.Package, strings.Join(imports[:len(imports)-1], ", "))
	}
	return nil
}

// goEnv is what makes go build a static program.
func goEnv(architecture string) []string {
	return []string{"CGO_ENABLED=0", "GOOS=linux", "GOARCH=" + architecture, "GOWORK=off"}
}
