package images

import (
	"context"
	"crypto/sha256"
	"embed"
	"fmt"
	"io/fs"
	"strings"
)

// ownSource is part of every key: a change in how layers are made makes them
// anew, and nobody has to remember a version number.
//
//go:embed *.go
var ownSource embed.FS

// keyOf is the name of a layer in the store: a hash of all its inputs.
func keyOf(ctx context.Context, w *workshop, part Layer) (string, error) {
	inputs, err := part.inputs(ctx, w)
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	err = fs.WalkDir(ownSource, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasSuffix(name, "_test.go") {
			return err
		}
		text, err := ownSource.ReadFile(name)
		fmt.Fprintf(sum, "%s %d\n%s", name, len(text), text)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("read the source of package images: %w", err)
	}
	fmt.Fprintf(sum, "%T %s\n%s", part, w.architecture, inputs)
	return fmt.Sprintf("%x", sum.Sum(nil))[:40], nil
}
