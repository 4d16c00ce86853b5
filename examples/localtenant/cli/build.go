package cli

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/socialweb-computer/tenant-executor/examples/localtenant/binaries"
	"github.com/socialweb-computer/tenant-executor/examples/localtenant/images"
)

func (c *common) build() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "build",
		Short: "Build Kubernetes and the images into the user's cache",
		Long: `build compiles the components of Kubernetes and makes the images, and keeps both
below XDG_CACHE_HOME (or ~/.cache) in tenant-executor/localtenant. The first time
takes some minutes; when everything is there it takes none.
up builds by itself what is missing.`,
		Example: `  localtenant build
  localtenant build --source ~/src/tenant-executor/examples/localtenant`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			source, err := c.findSource()
			if err != nil {
				return err
			}
			binary, err := c.buildComponents(cmd.Context(), source)
			if err != nil {
				return err
			}
			fmt.Fprintln(c.Out, "components:", binary)
			made, err := c.buildImages(cmd.Context(), source)
			if err != nil {
				return err
			}
			for _, image := range made {
				fmt.Fprintln(c.Out, "image:", image.Reference())
			}
			return nil
		},
	}
	c.addSource(cmd)
	return cmd
}

func (c *common) buildComponents(ctx context.Context, source string) (string, error) {
	cache, err := binaries.CacheDir(c.Getenv)
	if err != nil {
		return "", err
	}
	return binaries.Builder{
		Source: source, Cache: cache, Env: c.Environ(), Out: c.Out, Terminal: c.Terminal, Now: c.Now,
	}.Build(ctx)
}

func (c *common) buildImages(ctx context.Context, source string) ([]images.Image, error) {
	cache, err := binaries.CacheDir(c.Getenv)
	if err != nil {
		return nil, err
	}
	return images.Build(ctx, images.Options{
		Cache: filepath.Join(cache, "images"), Source: source, Out: c.Out, Env: c.Environ(), Now: c.Now,
	})
}
